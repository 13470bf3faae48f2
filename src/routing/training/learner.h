// One step of training in memory: forward, backward, clipping, optimiser, centroids. No files, no clock: a step is a
// function of the state and the batches, down to the bits, for any number of threads.
#pragma once

#include "routing/config/experiment.h"
#include "routing/core/error.h"
#include "routing/model/sequence_model.h"
#include "routing/model/transformer.h"
#include "routing/optim/optimizer.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace routing {

struct TrainingBatch {
  at::Tensor tokens;       // int64 [batch, n]
  at::Tensor sample_ids;   // int64 [batch]
  std::int64_t index = 0;  // its number in the order of the data
  // Of an encoder-decoder, see TokenBatch.
  at::Tensor valid = {};
  at::Tensor source = {};
  at::Tensor source_valid = {};
};

struct StepResult {
  double loss_nats = 0.0;  // mean over the step's targets without padding, without auxiliary losses
  double auxiliary_loss = 0.0;
  double gradient_norm = 0.0;  // before clipping
  double learning_rate = 0.0;
  std::int64_t tokens = 0;
  std::vector<LayerStatistics> routing = {};
};

// The loss or the gradient was not finite; weights, optimiser and centroids are as before the step.
class NotFiniteError : public Error {
 public:
  using Error::Error;
};

// fp32 or bf16; automatic takes bf16 where the processor multiplies it natively.
MatmulPrecision matmul_precision(Precision precision);

class Learner {
 public:
  explicit Learner(const ExperimentConfig& config);

  // One optimiser step over train.accumulation batches.
  StepResult step(std::span<const TrainingBatch> batches);

  SequenceModel& sequence_model() { return *model_; }
  // A ConfigError where the model is an encoder-decoder.
  TransformerImpl& model();
  MatmulPrecision precision() const { return precision_; }
  std::int64_t steps_done() const { return steps_done_; }

  // The optimiser's tensors for a checkpoint, and back; the model's own are named_tensors() of the model.
  std::map<std::string, at::Tensor> optimizer_state() const { return optimizer_->state(); }
  void restore(const std::map<std::string, at::Tensor>& model_tensors,
               const std::map<std::string, at::Tensor>& optimizer_tensors, std::int64_t steps_done,
               const std::string& origin);

 private:
  void backward(const TrainingBatch& batch, StepResult& result);

  ExperimentConfig config_;
  MatmulPrecision precision_;
  std::shared_ptr<SequenceModel> model_;
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t steps_done_ = 0;
  std::uint64_t forwards_ = 0;
};

}  // namespace routing
