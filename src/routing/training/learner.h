// One step of training in memory: forward, backward, clipping, optimiser, centroids. No files, no clock: a step is a
// function of the state and the batches, down to the bits, for any number of threads.
//
// Several ranks take a step together: each on its own rows of every batch, weighted by targets, with gradients and what
// routed heads saw summed over all. They then hold the same weights and centroids, bit for bit.
#pragma once

#include "routing/config/experiment.h"
#include "routing/core/error.h"
#include "routing/distributed/gradient_reducer.h"
#include "routing/distributed/group/rank_group.h"
#include "routing/distributed/optimizer_shards.h"
#include "routing/distributed/rank_rows.h"
#include "routing/distributed/totals_exchange.h"
#include "routing/model/model_memory.h"
#include "routing/model/sequence_model.h"
#include "routing/optim/optimizer.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace routing {

struct StepResult {
  double loss_nats = 0.0;  // mean over the step's targets without padding, without auxiliary losses
  double auxiliary_loss = 0.0;
  // Mean over the targets of what a learned compression of memory loses; before its weight, and no part of the others.
  std::optional<double> reconstruction_loss = std::nullopt;
  double gradient_norm = 0.0;  // before clipping
  double learning_rate = 0.0;
  std::int64_t tokens = 0;  // of all ranks
  std::vector<LayerStatistics> routing = {};
  std::vector<HeadSpan> spans = {};  // after the step
};

// The ranks that learn together. No group means one process.
struct LearnerRanks {
  std::shared_ptr<RankGroup> group = nullptr;
  bool shard_optimizer = false;  // ZeRO stage 1: see OptimizerShards
};

// The loss or the gradient was not finite; weights, optimiser, centroids and memory are as before the step.
class NotFiniteError : public Error {
 public:
  using Error::Error;
};

// fp32 or bf16; automatic takes bf16 where the processor multiplies it natively.
MatmulPrecision matmul_precision(Precision precision);

class Learner {
 public:
  explicit Learner(const ExperimentConfig& config, LearnerRanks ranks = {});

  // One optimiser step over train.accumulation batches.
  StepResult step(std::span<const TokenBatch> batches);

  SequenceModel& model() { return *model_; }
  const std::shared_ptr<SequenceModel>& shared_model() const { return model_; }
  MatmulPrecision precision() const { return precision_; }
  // Whole ones; a step that was given up does not count.
  std::int64_t steps_done() const { return steps_done_; }

  RankGroup& ranks() const { return *ranks_; }
  // Which sequences of a batch this rank takes: those of its data rank, the same as train.sequence_ranks neighbours,
  // each of which computes a piece of them.
  int data_rank() const { return ranks_->rank() / sequence_ranks(); }
  int data_ranks() const { return ranks_->size() / sequence_ranks(); }

  // The optimiser's tensors for a checkpoint, and back; the model's own are named_tensors() of the model. Where the
  // optimiser is sharded all ranks must call, and only rank 0 gets all of it.
  std::map<std::string, at::Tensor> optimizer_state() const;
  bool optimizer_is_sharded() const { return shards_ != nullptr; }
  // Of this rank.
  std::int64_t optimizer_bytes() const { return bytes_of(optimizer_->state()); }
  // Does this rank keep the tensor of this name of an optimiser's state?
  bool keeps_moment(const std::string& name) const { return shards_ == nullptr || shards_->owns(name); }

  // What the layers remember of each stream, for a checkpoint: of all ranks, which must all call. And back, from all
  // streams; each rank takes its own.
  std::map<std::string, at::Tensor> memory_state() const;
  void restore_memory(const std::map<std::string, at::Tensor>& tensors, const std::string& origin);

  // In which order gradients travel; empty in a new run of one rank and before the first step. To be given back before
  // the first step of a resumed run.
  const BucketOrder& bucket_order() const { return reducer_ ? reducer_->order() : bucket_order_; }
  void set_bucket_order(BucketOrder order) { bucket_order_ = std::move(order); }

  void restore(const std::map<std::string, at::Tensor>& model_tensors,
               const std::map<std::string, at::Tensor>& optimizer_tensors, std::int64_t steps_done,
               const std::string& origin);

 private:
  // What this rank adds to the sums of the step.
  struct Sums {
    std::vector<std::int64_t> targets = {};  // of each batch
    std::vector<double> nats = {};
    double auxiliary = 0.0;
    double reconstruction = 0.0;
  };
  int sequence_ranks() const { return static_cast<int>(config_.train.sequence_ranks); }
  // This rank's piece of the sequences of a batch.
  struct OwnPiece {
    TokenBatch batch = {};
    SequencePiece piece = {};
  };
  OwnPiece own_piece(const TokenBatch& batch);
  at::Tensor forward(const TokenBatch& batch, const SequencePiece* piece, Sums& sums);
  TotalsExchange start_exchange(const Sums& sums);
  void backward(const at::Tensor& objective, bool last);
  void finish_exchange(TotalsExchange exchange, std::span<const TokenBatch> batches, StepResult& result);
  void check_finite(std::span<const TokenBatch> batches, const StepResult& result);
  void update(StepResult& result);
  bool learns_compression() const;

  ExperimentConfig config_;
  std::shared_ptr<RankGroup> ranks_;
  MatmulPrecision precision_;
  std::shared_ptr<SequenceModel> model_;
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<OptimizerShards> shards_;
  std::unique_ptr<Optimizer> optimizer_;
  BucketOrder bucket_order_;
  RankRows rows_;                             // of sequences that are split
  std::unique_ptr<GradientReducer> reducer_;  // from the first step on
  ModelMemory memory_;                        // of this rank's streams
  std::int64_t steps_done_ = 0;
  std::uint64_t forwards_ = 0;
};

}  // namespace routing
