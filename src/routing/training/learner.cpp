#include "routing/training/learner.h"

#include "routing/evaluation/likelihood.h"
#include "routing/kernels/dispatch/cpu_features.h"
#include "routing/model/weights.h"
#include "routing/optim/gradient_norm.h"
#include "routing/optim/make_optimizer.h"
#include "routing/optim/schedule.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

namespace routing {
namespace {

constexpr const char* kRemedy = ". Go on from a checkpoint with `resume` and a lower train.learning_rate or train.clip";

}  // namespace

MatmulPrecision matmul_precision(Precision precision) {
  if (precision == Precision::fp32) return MatmulPrecision::fp32;
  if (precision == Precision::bf16) return MatmulPrecision::bf16;
  const CpuFeatures& cpu = cpu_features();
  const bool tiles = cpu.amx_bf16 && request_amx_permission() == AmxPermission::granted;
  return cpu.avx512_bf16 || tiles ? MatmulPrecision::bf16 : MatmulPrecision::fp32;
}

Learner::Learner(const ExperimentConfig& config, LearnerRanks ranks)
    : config_(config),
      ranks_(ranks.group ? std::move(ranks.group) : std::make_shared<OneRank>()),
      precision_(matmul_precision(config.train.precision)),
      model_(make_model(config, at::TensorOptions().dtype(at::kFloat))) {
  require<ConfigError>(config.train.batch_size >= ranks_->size(), "train.batch_size is ", config.train.batch_size,
                       ", the sequences of all ranks together, but there are ", ranks_->size(),
                       " ranks; give every rank at least one, or start fewer");
  model_->train();
  for (const auto& item : model_->named_parameters()) {
    // Biases and gains do not decay.
    parameters_.push_back({.name = item.key(), .value = item.value(), .decay = item.value().dim() > 1});
  }
  if (ranks.shard_optimizer) shards_ = std::make_unique<OptimizerShards>(*ranks_, parameters_);
  optimizer_ = make_optimizer(shards_ ? shards_->own() : parameters_, config.train);
}

std::map<std::string, at::Tensor> Learner::optimizer_state() const {
  return shards_ ? shards_->gather_state(optimizer_->state()) : optimizer_->state();
}

TransformerImpl& Learner::model() {
  auto* const transformer = dynamic_cast<TransformerImpl*>(model_.get());
  require<ConfigError>(transformer != nullptr, config_.name, ": model.encoder_layers is ", config_.model.encoder_layers,
                       ", but this is for decoder-only models; set it to 0");
  return *transformer;
}

void Learner::mark(const char* name, StepTrace::Time begin, std::int64_t step) const {
  if (trace_ == nullptr) return;
  trace_->add({.name = name, .begin = begin, .end = std::chrono::steady_clock::now(), .step = step});
}

// The loss to differentiate: this rank's part of the mean over all targets.
at::Tensor Learner::forward(const TrainingBatch& batch, Sums& sums) {
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
  sums.targets.push_back(targets);
  sums.nats.push_back(sum.total());
  const auto all_targets = static_cast<double>(batch.all_targets > 0 ? batch.all_targets : targets);
  at::Tensor objective = loss.nats.sum() / (all_targets * accumulation);
  if (loss.auxiliary.defined()) {
    // A mean over this rank's tokens.
    const double weight = static_cast<double>(targets) / all_targets / accumulation;
    objective = objective + loss.auxiliary * weight;
    sums.auxiliary += loss.auxiliary.item<double>() * weight;
  }
  return objective;
}

TotalsExchange Learner::start_exchange(const Sums& sums, std::span<const std::int64_t> votes) {
  std::vector<StepTotals> totals;
  for (const SequenceModel::RoutedGroup& group : model_->routed_groups()) totals.push_back(group.centroids->pending());
  TotalsExchange::Extra extra{.counts = sums.targets, .sums = sums.nats};
  extra.counts.insert(extra.counts.end(), votes.begin(), votes.end());
  extra.sums.push_back(sums.auxiliary);
  return {*ranks_, std::move(totals), std::move(extra)};
}

void Learner::finish_exchange(TotalsExchange exchange, std::span<const TrainingBatch> batches, StepResult& result) {
  TotalsExchange::Result all = exchange.finish();
  const std::vector<SequenceModel::RoutedGroup> groups = model_->routed_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].centroids->set_pending(std::move(all.totals[i]));
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const TrainingBatch& batch = batches[i];
    const std::int64_t targets = all.extra.counts[i];
    require<InputError>(batch.all_targets == 0 || batch.all_targets == targets, "step ", steps_done_ + 1, ": batch ",
                        batch.index, " has ", batch.all_targets, " targets, but the ranks together saw ", targets);
    const double mean = all.extra.sums[i] / static_cast<double>(targets);
    require<NotFiniteError>(std::isfinite(mean), "step ", steps_done_ + 1, ": the loss of batch ", batch.index, " is ",
                            mean, "; the weights are those of step ", steps_done_, kRemedy);
    result.loss_nats += mean / static_cast<double>(config_.train.accumulation);
    result.tokens += targets;
  }
  result.auxiliary_loss = all.extra.sums.back();
  result.votes.assign(all.extra.counts.begin() + static_cast<std::ptrdiff_t>(batches.size()), all.extra.counts.end());
}

void Learner::check_finite(std::span<const TrainingBatch> batches, const StepResult& result) {
  require<NotFiniteError>(std::isfinite(result.gradient_norm), "step ", steps_done_ + 1,
                          ": the gradient norm over batches ", batches.front().index, " to ", batches.back().index,
                          " is ", result.gradient_norm, "; the weights are those of step ", steps_done_, kRemedy);
  const std::string attention = model_->attention_with_nonfinite_tokens();
  require<NotFiniteError>(attention.empty(), "step ", steps_done_ + 1, ": routed heads of ", attention,
                          " saw tokens that are not finite in batches ", batches.front().index, " to ",
                          batches.back().index, kRemedy);
}

StepResult Learner::step(std::span<const TrainingBatch> batches, std::span<const std::int64_t> votes) {
  require<InputError>(static_cast<std::int64_t>(batches.size()) == config_.train.accumulation, "a step takes ",
                      config_.train.accumulation, " batches (train.accumulation), but got ", batches.size());
  using Clock = std::chrono::steady_clock;
  StepResult result;
  const std::uint64_t forwards_before = forwards_;
  const std::int64_t number = steps_done_ + 1;
  if (!reducer_ && ranks_->size() > 1) {
    reducer_ = std::make_unique<GradientReducer>(dynamic_cast<GlooRanks&>(*ranks_), parameters_, bucket_order_);
  }
  if (reducer_) reducer_->trace(trace_, number);
  try {
    for (NamedParameter& parameter : parameters_) parameter.value.mutable_grad().reset();
    Sums sums;
    std::optional<TotalsExchange> exchange;
    for (const TrainingBatch& batch : batches) {
      const bool last = &batch == &batches.back();
      Clock::time_point begin = Clock::now();
      const at::Tensor objective = forward(batch, sums);
      mark("forward", begin, number);
      // What heads saw is known before the backward pass, and travels during it.
      if (last) exchange.emplace(start_exchange(sums, votes));
      begin = Clock::now();
      if (last && reducer_) {
        reducer_->backward(objective);
      } else {
        objective.backward();
      }
      mark("backward", begin, number);
      ++forwards_;
    }
    Clock::time_point begin = Clock::now();
    finish_exchange(std::move(*exchange), batches, result);
    mark("sums of routing", begin, number);
    result.gradient_norm = gradient_norm(parameters_);
    check_finite(batches, result);
  } catch (...) {
    forwards_ = forwards_before;
    model_->forget_collected();
    throw;
  }
  ++steps_done_;
  Clock::time_point begin = Clock::now();
  result.learning_rate = learning_rate(config_.train, steps_done_);
  optimizer_->step(result.learning_rate, clip_scale(result.gradient_norm, config_.train.clip));
  if (shards_) shards_->share_values();
  result.routing = model_->update_centroids();
  mark("optimiser and centroids", begin, number);
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
