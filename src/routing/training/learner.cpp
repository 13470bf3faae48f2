#include "routing/training/learner.h"

#include "routing/data/batches.h"
#include "routing/distributed/gathered_rows.h"
#include "routing/distributed/watch/step_trace.h"
#include "routing/evaluation/likelihood.h"
#include "routing/evaluation/sequence_likelihood.h"
#include "routing/kernels/dispatch/cpu_features.h"
#include "routing/model/weights.h"
#include "routing/optim/gradient_norm.h"
#include "routing/optim/make_optimizer.h"
#include "routing/optim/schedule.h"

#include <cmath>
#include <optional>
#include <utility>

namespace routing {
namespace {

// Added one after the other: a tensor's own sum depends on the number of threads.
double ordered_sum(const at::Tensor& values) {
  const at::Tensor numbers = values.detach().contiguous();
  NatsSum sum;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) sum.add(static_cast<double>(numbers.data_ptr<float>()[i]));
  return sum.total();
}

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
      model_(make_model(config, at::TensorOptions().dtype(at::kFloat))),
      rows_(*ranks_, static_cast<int>(config.train.sequence_ranks)) {
  const std::int64_t split = config.train.sequence_ranks;
  require<ConfigError>(ranks_->size() % split == 0, "train.sequence_ranks is ", split,
                       ", the ranks that share a sequence, but there ",
                       ranks_->size() == 1 ? "is 1 rank" : "are " + std::to_string(ranks_->size()) + " ranks",
                       "; start a multiple of them, or set train.sequence_ranks=1");
  require<ConfigError>(config.train.batch_size >= data_ranks(), "train.batch_size is ", config.train.batch_size,
                       ", the sequences of all ranks together, but there are ", ranks_->size(), " ranks",
                       split > 1 ? ", of which " + std::to_string(split) + " share a sequence" : "",
                       "; give every rank at least one, or start fewer");
  model_->train();
  for (const auto& item : model_->named_parameters()) {
    // Biases and gains do not decay.
    parameters_.push_back({.name = item.key(), .value = item.value(), .decay = item.value().dim() > 1});
  }
  if (ranks.shard_optimizer) shards_ = std::make_unique<OptimizerShards>(*ranks_, parameters_);
  optimizer_ = make_optimizer(shards_ ? shards_->own() : parameters_, config.train);
  memory_.length = config.memory.length;
}

std::map<std::string, at::Tensor> Learner::optimizer_state() const {
  return shards_ ? shards_->gather_state(optimizer_->state()) : optimizer_->state();
}

bool Learner::learns_compression() const {
  return config_.memory.compressed > 0 && config_.memory.compression == Compression::convolution;
}

std::map<std::string, at::Tensor> Learner::memory_state() const {
  return gathered_rows(*ranks_, memory_.tensors(), config_.train.batch_size);
}

void Learner::restore_memory(const std::map<std::string, at::Tensor>& tensors, const std::string& origin) {
  const RowRange own = rows_of_rank(config_.train.batch_size, ranks_->rank(), ranks_->size());
  std::map<std::string, at::Tensor> mine;
  for (const auto& [name, tensor] : tensors) {
    require<FileError>(tensor.dim() >= 1 && tensor.size(0) == config_.train.batch_size, origin, ": the memory ", name,
                       " is of ", tensor.dim() >= 1 ? tensor.size(0) : 0, " streams, but train.batch_size is ",
                       config_.train.batch_size, "; the checkpoint belongs to another configuration");
    mine.emplace(name, tensor.narrow(0, own.first, own.count).clone());
  }
  try {
    memory_.set_tensors(mine);
    if (memory_.length > 0) memory_.check(config_, own.count);
  } catch (const InputError& error) {
    throw FileError(origin + ": " + error.what() + "; the checkpoint belongs to another configuration");
  }
  require<FileError>((memory_.length > 0) == !tensors.empty(), origin, ": holds ", tensors.size(),
                     " tensors of memory, but memory.length is ", memory_.length,
                     "; the checkpoint belongs to another configuration");
}

Learner::OwnPiece Learner::own_piece(const TokenBatch& batch) {
  require<ConfigError>(!batch.valid.defined() && !batch.source.defined(), "train.sequence_ranks is ", sequence_ranks(),
                       ", but batch ", batch.index, " has padding or sources; set it to 1");
  require<ConfigError>(batch.tokens.size(1) >= sequence_ranks(), "train.sequence_ranks is ", sequence_ranks(),
                       ", but batch ", batch.index, " has sequences of ", batch.tokens.size(1),
                       " tokens, and each rank needs at least one; share them among fewer");
  OwnPiece own{.batch = batch,
               .piece = {.exchange = &rows_, .ends = even_pieces(batch.tokens.size(1), rows_.pieces())}};
  const std::int64_t begin = own.piece.begin();
  own.batch.tokens = batch.tokens.narrow(1, begin, own.piece.end() - begin).contiguous();
  if (begin > 0) own.piece.before = batch.tokens.select(1, begin - 1).contiguous();
  return own;
}

// The loss to differentiate: this rank's part of the mean over all targets.
at::Tensor Learner::forward(const TokenBatch& batch, const SequencePiece* piece, Sums& sums) {
  const TracedWork work(ranks_->trace(), "forward");
  const ForwardContext context{.sample_ids = batch.sample_ids,
                               .step = forwards_,
                               .precision = precision_,
                               .memory = memory_.length > 0 ? &memory_ : nullptr,
                               .piece = piece};
  const auto accumulation = static_cast<double>(config_.train.accumulation);
  const SequenceModel::Loss loss = model_->loss(batch, context);
  const at::Tensor nats = loss.nats;
  const std::int64_t targets = batch.targets();
  require<InputError>(targets > 0, "step ", steps_done_ + 1, ": batch ", batch.index, " has ", nats.numel(),
                      " targets, but all are padding");
  sums.targets.push_back(targets);
  sums.nats.push_back(ordered_sum(nats));
  const auto all_targets = static_cast<double>(batch.all_targets > 0 ? batch.all_targets : targets);
  at::Tensor objective = loss.nats.sum() / (all_targets * accumulation);
  if (loss.auxiliary.defined()) {
    // A mean over this rank's tokens.
    const double weight = static_cast<double>(targets) / all_targets / accumulation;
    objective = objective + loss.auxiliary * weight;
    sums.auxiliary += loss.auxiliary.item<double>() * weight;
  }
  if (loss.reconstruction.defined()) {
    const double per_target = 1.0 / (all_targets * accumulation);
    objective = objective + loss.reconstruction.sum() * (config_.memory.reconstruction * per_target);
    sums.reconstruction += ordered_sum(loss.reconstruction) * per_target;
  }
  return objective;
}

// What heads saw is known before the backward pass, and travels during it.
TotalsExchange Learner::start_exchange(const Sums& sums) {
  std::vector<StepTotals> totals;
  for (const SequenceModel::RoutedGroup& group : model_->routed_groups()) totals.push_back(group.centroids->pending());
  TotalsExchange::Extra extra{.counts = sums.targets, .sums = sums.nats};
  extra.sums.push_back(sums.auxiliary);
  extra.sums.push_back(sums.reconstruction);
  return {*ranks_, std::move(totals), std::move(extra)};
}

void Learner::finish_exchange(TotalsExchange exchange, std::span<const TokenBatch> batches, StepResult& result) {
  const TracedWork work(ranks_->trace(), "sums of routing");
  TotalsExchange::Result all = exchange.finish();
  const std::vector<SequenceModel::RoutedGroup> groups = model_->routed_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].centroids->set_pending(std::move(all.totals[i]));
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const TokenBatch& batch = batches[i];
    const std::int64_t targets = all.extra.counts[i];
    require<InputError>(batch.all_targets == 0 || batch.all_targets == targets, "step ", steps_done_ + 1, ": batch ",
                        batch.index, " has ", batch.all_targets, " targets, but the ranks together saw ", targets);
    const double mean = all.extra.sums[i] / static_cast<double>(targets);
    require<NotFiniteError>(std::isfinite(mean), "step ", steps_done_ + 1, ": the loss of batch ", batch.index, " is ",
                            mean, "; the weights are those of step ", steps_done_);
    result.loss_nats += mean / static_cast<double>(config_.train.accumulation);
    result.tokens += targets;
  }
  result.auxiliary_loss = all.extra.sums[batches.size()];
  if (learns_compression()) result.reconstruction_loss = all.extra.sums[batches.size() + 1];
}

void Learner::check_finite(std::span<const TokenBatch> batches, const StepResult& result) {
  require<NotFiniteError>(std::isfinite(result.gradient_norm), "step ", steps_done_ + 1,
                          ": the gradient norm over batches ", batches.front().index, " to ", batches.back().index,
                          " is ", result.gradient_norm, "; the weights are those of step ", steps_done_);
  const std::string attention = model_->attention_with_nonfinite_tokens();
  require<NotFiniteError>(attention.empty(), "step ", steps_done_ + 1, ": routed heads of ", attention,
                          " saw tokens that are not finite in batches ", batches.front().index, " to ",
                          batches.back().index);
}

// Gradients of all batches add up here; with those of the last they travel.
void Learner::backward(const at::Tensor& objective, bool last) {
  const TracedWork work(ranks_->trace(), "backward");
  if (last) {
    reducer_->backward(objective);
  } else {
    objective.backward();
  }
}

void Learner::update(StepResult& result) {
  const TracedWork work(ranks_->trace(), "optimiser and centroids");
  result.learning_rate = learning_rate(config_.train, steps_done_);
  optimizer_->step(result.learning_rate, clip_scale(result.gradient_norm, config_.train.clip));
  if (shards_) shards_->share_values();
  model_->clamp_spans();
  result.routing = model_->update_centroids();
  result.spans = model_->spans();
}

StepResult Learner::step(std::span<const TokenBatch> batches) {
  require<InputError>(static_cast<std::int64_t>(batches.size()) == config_.train.accumulation, "a step takes ",
                      config_.train.accumulation, " batches (train.accumulation), but got ", batches.size());
  StepResult result;
  const std::uint64_t forwards_before = forwards_;
  const ModelMemory memory_before = memory_;
  if (StepTrace* const trace = ranks_->trace()) trace->begin_step(steps_done_ + 1);
  if (!reducer_) reducer_ = std::make_unique<GradientReducer>(*ranks_, parameters_, bucket_order_);
  try {
    for (NamedParameter& parameter : parameters_) parameter.value.mutable_grad().reset();
    Sums sums;
    std::optional<TotalsExchange> exchange;
    for (const TokenBatch& batch : batches) {
      const bool last = &batch == &batches.back();
      const bool split = sequence_ranks() > 1;
      // Until the backward pass is done.
      const OwnPiece own = split ? own_piece(batch) : OwnPiece{.batch = batch};
      const at::Tensor objective = forward(own.batch, split ? &own.piece : nullptr, sums);
      if (last) exchange.emplace(start_exchange(sums));
      backward(objective, last);
      ++forwards_;
    }
    finish_exchange(std::move(*exchange), batches, result);
    result.gradient_norm = gradient_norm(parameters_);
    check_finite(batches, result);
  } catch (...) {
    forwards_ = forwards_before;
    memory_ = memory_before;
    model_->forget_collected();
    throw;
  }
  ++steps_done_;
  update(result);
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
