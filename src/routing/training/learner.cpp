#include "routing/training/learner.h"

#include "routing/evaluation/likelihood.h"
#include "routing/kernels/cpu_features.h"
#include "routing/model/weights.h"
#include "routing/optim/gradient_norm.h"
#include "routing/optim/make_optimizer.h"
#include "routing/optim/schedule.h"

#include <cmath>
#include <utility>

namespace routing {
namespace {

constexpr const char* kRemedy =
    ". Go on from a checkpoint with --resume auto and a lower train.learning_rate or train.clip";

}  // namespace

MatmulPrecision matmul_precision(Precision precision) {
  if (precision == Precision::fp32) return MatmulPrecision::fp32;
  if (precision == Precision::bf16) return MatmulPrecision::bf16;
  const CpuFeatures& cpu = cpu_features();
  const bool tiles = cpu.amx_bf16 && request_amx_permission() == AmxPermission::granted;
  return cpu.avx512_bf16 || tiles ? MatmulPrecision::bf16 : MatmulPrecision::fp32;
}

Learner::Learner(const ExperimentConfig& config)
    : config_(config),
      precision_(matmul_precision(config.train.precision)),
      model_(make_model(config, at::TensorOptions().dtype(at::kFloat))) {
  model_->train();
  for (const auto& item : model_->named_parameters()) {
    // Biases and gains do not decay.
    parameters_.push_back({.name = item.key(), .value = item.value(), .decay = item.value().dim() > 1});
  }
  optimizer_ = make_optimizer(parameters_, config.train);
}

TransformerImpl& Learner::model() {
  auto* const transformer = dynamic_cast<TransformerImpl*>(model_.get());
  require<ConfigError>(transformer != nullptr, config_.name, ": model.encoder_layers is ", config_.model.encoder_layers,
                       ", but this is for decoder-only models; set it to 0");
  return *transformer;
}

void Learner::backward(const TrainingBatch& batch, StepResult& result) {
  const ForwardContext context{.sample_ids = batch.sample_ids, .step = forwards_, .precision = precision_};
  const auto accumulation = static_cast<double>(config_.train.accumulation);
  const auto loss = model_->loss(
      {.tokens = batch.tokens, .valid = batch.valid, .source = batch.source, .source_valid = batch.source_valid},
      context);
  const at::Tensor nats = loss.nats.detach();
  const std::int64_t targets = batch.valid.defined() ? batch.valid.sum().item<std::int64_t>() : nats.numel();
  require<InputError>(targets > 0, "step ", steps_done_ + 1, ": batch ", batch.index, " has ", nats.numel(),
                      " targets, but all are padding");
  // Added one after the other: a tensor's own sum depends on the number of threads.
  NatsSum sum;
  for (std::int64_t i = 0; i < nats.numel(); ++i) sum.add(static_cast<double>(nats.data_ptr<float>()[i]));
  const double mean = sum.total() / static_cast<double>(targets);
  require<NotFiniteError>(std::isfinite(mean), "step ", steps_done_ + 1, ": the loss of batch ", batch.index, " is ",
                          mean, "; the weights are those of step ", steps_done_, kRemedy);
  at::Tensor objective = loss.nats.sum() / (static_cast<double>(targets) * accumulation);
  if (loss.auxiliary.defined()) {
    objective = objective + loss.auxiliary / accumulation;
    result.auxiliary_loss += loss.auxiliary.item<double>() / accumulation;
  }
  objective.backward();
  result.loss_nats += mean / accumulation;
  result.tokens += targets;
}

StepResult Learner::step(std::span<const TrainingBatch> batches) {
  require<InputError>(static_cast<std::int64_t>(batches.size()) == config_.train.accumulation, "a step takes ",
                      config_.train.accumulation, " batches (train.accumulation), but got ", batches.size());
  StepResult result;
  const std::uint64_t forwards_before = forwards_;
  try {
    optimizer_->zero_gradients();
    for (const TrainingBatch& batch : batches) {
      backward(batch, result);
      ++forwards_;
    }
    result.gradient_norm = gradient_norm(parameters_);
    require<NotFiniteError>(std::isfinite(result.gradient_norm), "step ", steps_done_ + 1,
                            ": the gradient norm over batches ", batches.front().index, " to ", batches.back().index,
                            " is ", result.gradient_norm, "; the weights are those of step ", steps_done_, kRemedy);
    const std::string attention = model_->attention_with_nonfinite_tokens();
    require<NotFiniteError>(attention.empty(), "step ", steps_done_ + 1, ": routed heads of ", attention,
                            " saw tokens that are not finite in batches ", batches.front().index, " to ",
                            batches.back().index, kRemedy);
  } catch (...) {
    forwards_ = forwards_before;
    model_->forget_collected();
    throw;
  }
  ++steps_done_;
  result.learning_rate = learning_rate(config_.train, steps_done_);
  optimizer_->step(result.learning_rate, clip_scale(result.gradient_norm, config_.train.clip));
  result.routing = model_->update_centroids();
  return result;
}

void Learner::restore(const std::map<std::string, at::Tensor>& model_tensors,
                      const std::map<std::string, at::Tensor>& optimizer_tensors, std::int64_t steps_done,
                      const std::string& origin) {
  try {
    optimizer_->load_state(optimizer_tensors);
  } catch (const InputError& error) {
    throw FileError(origin + ": " + error.what() + "; the checkpoint belongs to another configuration");
  }
  require<FileError>(optimizer_->steps() == steps_done, origin, ": the optimiser has made ", optimizer_->steps(),
                     " steps, but trainer.json says ", steps_done, "; the files are of different checkpoints");
  load_tensors(*model_, model_tensors, origin);
  steps_done_ = steps_done;
  forwards_ = static_cast<std::uint64_t>(steps_done * config_.train.accumulation);
}

}  // namespace routing
