#include "routing/training/trainer.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/evaluation/likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/routing_summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

namespace routing {
namespace {

ExperimentConfig checked(ExperimentConfig config) {
  validate(config);
  // What the processor decides here is part of the run from now on: another one must not change it.
  config.train.precision =
      matmul_precision(config.train.precision) == MatmulPrecision::bf16 ? Precision::bf16 : Precision::fp32;
  require<ConfigError>(!config.data.path.empty(), "data.path is empty; name a file with --data PATH");
  return config;
}

// As 16 hexadecimal digits: JSON readers keep only 53 bits of a number.
std::string hash_text(std::span<const std::uint8_t> bytes) {
  std::ostringstream text;
  text << std::hex << std::setfill('0') << std::setw(16) << xxhash64(std::as_bytes(bytes));
  return text.str();
}

BatchOptions batch_options(const TrainConfig& config) {
  return {.batch_size = config.batch_size,
          .sequence_length = config.sequence_length,
          .seed = config.seed,
          .contiguous = config.order == DataOrder::contiguous};
}

}  // namespace

Trainer::Trainer(Setup setup)
    : config_(checked(std::move(setup.config))),
      run_(std::move(setup.run)),
      resume_(setup.resume),
      observer_(std::move(setup.observer)),
      corpus_(config_.data.path),
      split_(split_corpus(config_.data.split, corpus_.size(), config_.data.path)),
      batches_(corpus_.part(split_.train), batch_options(config_.train)),
      learner_(config_),
      validity_(validity_label(config_)) {
  require<ConfigError>(part_named(split_, config_.eval.split).size() > 0, "eval.split is ", config_.eval.split,
                       ", but under data.split ", config_.data.split, " that part of ", config_.data.path, " (",
                       corpus_.size(), " bytes) has 0 bytes; choose another eval.split or data.split");
  require<ConfigError>(config_.model.vocab_size >= 256, "model.vocab_size is ", config_.model.vocab_size,
                       ", but bytes need 256; set model.vocab_size=256");
  state_.version = std::move(setup.version);
  state_.data_bytes = split_.train.size();
  state_.data_hash = hash_text(corpus_.part(split_.train));
  open_run();
}

void Trainer::go_on_from(const CheckpointPlace& place) {
  const TrainerState saved = restore_checkpoint(place, config_, learner_);
  require<ConfigError>(saved.data_bytes == state_.data_bytes && saved.data_hash == state_.data_hash, config_.data.path,
                       ": its training part has ", state_.data_bytes, " bytes with hash ", state_.data_hash,
                       ", but the run in ", run_.folder().string(), " was trained on ", saved.data_bytes,
                       " bytes with hash ", saved.data_hash, "; give the same data");
  const std::string version = state_.version;
  state_ = saved;
  state_.version = version;
  saved_step_ = place.step;
  const ExperimentConfig before = load_model_config(place.model());
  // Losses over other text or with other context cannot be compared.
  if (before.eval.split != config_.eval.split || before.eval.stride != config_.eval.stride ||
      before.train.eval_tokens != config_.train.eval_tokens) {
    state_.best_eval_nats = std::numeric_limits<double>::infinity();
    state_.best_step = -1;
  }
}

void Trainer::open_run() {
  const bool exists = run_.exists();
  if (!resume_ || !exists) run_.create(config_);
  lock_ = std::make_unique<RunLock>(run_.folder());
  if (resume_ && exists) {
    require_same_run(run_.read_config(), config_, run_.folder().string());
    run_.remove_leftovers();
    if (const auto newest = run_.newest_checkpoint()) go_on_from(*newest);
    run_.replace_config(config_);
  }
  metrics_ = std::make_unique<MetricsLog>(run_.metrics_file());
  metrics_->cut_back_to(state_.step);
  events_ = std::make_unique<EventFile>(run_.folder(), wall_seconds(), state_.step + 1);
  seconds_before_ = state_.seconds;
  tokens_before_ = state_.tokens;
}

bool Trainer::due(std::int64_t every) const {
  return state_.step == config_.train.steps || (every > 0 && state_.step % every == 0);
}

double Trainer::seconds_of_this_part() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - part_begin_).count();
}

double Trainer::tokens_per_second() const {
  return static_cast<double>(state_.tokens - tokens_before_) / std::max(stepping_seconds_, 1e-9);
}

StepResult Trainer::take_step() {
  const TrainConfig& train = config_.train;
  std::vector<TrainingBatch> batches;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(train.batch_size * train.sequence_length));
  for (std::int64_t i = 0; i < train.accumulation; ++i) {
    TrainingBatch batch{.tokens = at::empty({train.batch_size, train.sequence_length}, at::kLong),
                        .sample_ids = at::empty({train.batch_size}, at::kLong),
                        .index = state_.step * train.accumulation + i};
    batches_.fill(batch.index, bytes,
                  {batch.sample_ids.data_ptr<std::int64_t>(), static_cast<std::size_t>(train.batch_size)});
    std::copy(bytes.begin(), bytes.end(), batch.tokens.data_ptr<std::int64_t>());
    batches.push_back(std::move(batch));
  }
  const double begin = seconds_of_this_part();
  StepResult result = learner_.step(batches);
  stepping_seconds_ += seconds_of_this_part() - begin;
  ++state_.step;
  state_.tokens += result.tokens;
  state_.loss_sum += result.loss_nats;
  ++state_.loss_steps;
  state_.seconds = seconds_before_ + seconds_of_this_part();
  return result;
}

void Trainer::add_event(const std::string& tag, double value) {
  events_->add_scalar(tag, value, state_.step, wall_seconds());
}

void Trainer::log_step(const StepResult& result) {
  const double loss = state_.loss_sum / static_cast<double>(state_.loss_steps);
  state_.loss_sum = 0.0;
  state_.loss_steps = 0;
  nlohmann::ordered_json line{{"step", state_.step},
                              {"train_loss_nats", loss},
                              {"train_bits_per_byte", bits(loss)},
                              {"learning_rate", result.learning_rate},
                              {"gradient_norm", result.gradient_norm},
                              {"auxiliary_loss", result.auxiliary_loss},
                              {"tokens", state_.tokens},
                              {"tokens_per_second", tokens_per_second()},
                              {"seconds", state_.seconds}};
  add_event("train/loss", loss);
  add_event("train/bpb", bits(loss));
  add_event("train/lr", result.learning_rate);
  add_event("train/grad_norm", result.gradient_norm);
  add_event("train/tokens_per_sec", tokens_per_second());
  for (const auto& [name, value] : routing_summary(result.routing)) {
    line["routing_" + name] = value;
    add_event("routing/" + name, value);
  }
  line["validity"] = validity_;
  metrics_->append(line);
  events_->flush();
}

void Trainer::evaluate() {
  const SplitBounds& bounds = part_named(split_, config_.eval.split);
  const std::int64_t limit = config_.train.eval_tokens > 0 ? std::min(config_.train.eval_tokens, bounds.size()) : 0;
  const Likelihood likelihood = byte_likelihood(learner_.model(), corpus_.part(bounds),
                                                {.sequence_length = config_.train.sequence_length,
                                                 .stride = config_.eval.stride,
                                                 .batch_size = config_.eval.batch_size,
                                                 .limit_bytes = limit,
                                                 .precision = learner_.precision()});
  require<NotFiniteError>(std::isfinite(likelihood.nats), "step ", state_.step, ": the loss on ", config_.eval.split,
                          " is ", likelihood.nats, "; go on from the checkpoint before with --resume auto and a lower ",
                          "train.learning_rate or train.clip");
  state_.last_eval_step = state_.step;
  state_.last_eval_nats = likelihood.nats_per_byte();
  const bool best = state_.last_eval_nats < state_.best_eval_nats;
  if (best) {
    state_.best_eval_nats = state_.last_eval_nats;
    state_.best_step = state_.step;
  }
  state_.seconds = seconds_before_ + seconds_of_this_part();
  nlohmann::ordered_json line{{"step", state_.step},
                              {"eval_loss_nats", state_.last_eval_nats},
                              {"eval_bits_per_byte", bits(state_.last_eval_nats)},
                              {"eval_split", config_.eval.split},
                              {"eval_bytes", likelihood.bytes},
                              {"eval_stride", likelihood.stride},
                              {"best", best},
                              {"seconds", state_.seconds}};
  add_event("val/loss", state_.last_eval_nats);
  add_event("val/bpb", bits(state_.last_eval_nats));
  for (const auto& [name, value] : routing_summary(likelihood.routing)) {
    line["eval_routing_" + name] = value;
    add_event("val_routing/" + name, value);
  }
  line["validity"] = validity_;
  metrics_->append(line);
  events_->flush();
  if (observer_.evaluation) {
    observer_.evaluation({.step = state_.step,
                          .split = config_.eval.split,
                          .nats_per_byte = state_.last_eval_nats,
                          .bytes = likelihood.bytes,
                          .best = best,
                          .validity = validity_});
  }
}

// The checkpoint before is removed only after the next good step: should this one's weights lead nowhere, there is
// still one that did not.
void Trainer::save() {
  for (const auto& [name, value] : named_tensors(learner_.model())) {
    require<NotFiniteError>(!value.is_floating_point() || at::isfinite(value).all().item<bool>(), "step ", state_.step,
                            ": ", name, " is not finite and was not saved; go on from the checkpoint before with ",
                            "--resume auto and a lower train.learning_rate or train.clip");
  }
  metrics_->sync();
  write_checkpoint(run_, learner_, state_);
  saved_step_ = state_.step;
  old_checkpoints_wait_ = true;
}

void Trainer::remove_old_checkpoints() {
  if (old_checkpoints_wait_) run_.remove_old_checkpoints(config_.train.keep_checkpoints, state_.best_step);
  old_checkpoints_wait_ = false;
}

void Trainer::report_step(const StepResult& result) const {
  if (!observer_.step) return;
  const TrainConfig& train = config_.train;
  const auto tokens_left = static_cast<double>((train.steps - state_.step) * result.tokens);
  double left = tokens_left / tokens_per_second();
  if (train.minutes > 0.0) left = std::min(left, std::max(0.0, train.minutes * 60.0 - state_.seconds));
  observer_.step({.step = state_.step,
                  .steps = train.steps,
                  .loss_nats = result.loss_nats,
                  .tokens_per_second = tokens_per_second(),
                  .seconds = state_.seconds,
                  .seconds_left = left});
}

TrainingResult Trainer::run() {
  part_begin_ = std::chrono::steady_clock::now();
  const TrainConfig& train = config_.train;
  TrainingResult result;
  const auto wants_stop = [&] { return observer_.stop_requested && observer_.stop_requested(); };
  const auto time_is_up = [&] {
    return train.minutes > 0.0 && seconds_before_ + seconds_of_this_part() >= train.minutes * 60.0;
  };
  while (state_.step < train.steps && !wants_stop() && !time_is_up()) {
    const StepResult step = take_step();
    remove_old_checkpoints();
    result.last_loss_nats = step.loss_nats;
    report_step(step);
    if (due(train.log_every)) log_step(step);
    if (due(train.eval_every)) evaluate();
    if (due(train.checkpoint_every) || state_.best_step == state_.step) save();
  }
  if (state_.step < train.steps) {
    result.end = wants_stop() ? TrainingEnd::interrupted : TrainingEnd::out_of_time;
    // Out of time is an end like any other; interrupted is a pause, after which nothing may differ.
    const bool evaluated = state_.last_eval_step == state_.step;
    if (result.end == TrainingEnd::out_of_time && !evaluated) evaluate();
    if (saved_step_ != state_.step || (result.end == TrainingEnd::out_of_time && !evaluated)) save();
  }
  // Evaluated and found finite, or stopped on purpose.
  remove_old_checkpoints();
  result.state = state_;
  result.tokens_per_second = tokens_per_second();
  return result;
}

}  // namespace routing
