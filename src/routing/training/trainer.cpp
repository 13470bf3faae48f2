#include "routing/training/trainer.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/distributed/state_check.h"
#include "routing/evaluation/likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/routing_summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace routing {
namespace {

// What the processor decides here is part of the run from now on: another one must not change it.
ExperimentConfig with_precision(ExperimentConfig config) {
  config.train.precision =
      matmul_precision(config.train.precision) == MatmulPrecision::bf16 ? Precision::bf16 : Precision::fp32;
  return config;
}

// One process of a machine prepares the data; the others then find them prepared.
std::unique_ptr<TrainingData> open_data(const Trainer::Setup& setup) {
  const auto open = [&] { return open_training_data(setup.config, {.notes = setup.notes}); };
  if (!setup.ranks || setup.ranks->size() == 1) return open();
  if (setup.local_rank != 0) setup.ranks->barrier();
  std::unique_ptr<TrainingData> data = open();
  if (setup.local_rank == 0) setup.ranks->barrier();
  return data;
}

}  // namespace

Trainer::Trainer(Setup setup)
    : data_(open_data(setup)),
      config_(with_precision(data_->config())),
      run_(std::move(setup.run)),
      resume_(setup.resume),
      observer_(std::move(setup.observer)),
      learner_(config_, {.group = setup.ranks, .shard_optimizer = setup.shard_optimizer}),
      validity_(validity_label(config_)),
      unit_(score_unit(data().kind)),
      check_every_(setup.check_every),
      trace_steps_(setup.trace_steps) {
  state_.version = std::move(setup.version);
  state_.data_tokens = data().tokens;
  state_.data_hash = data().hash;
  state_.tokenizer_hash = data().tokenizer_hash;
  state_.data_label = data().label;
  require_same_everywhere();
  open_run();
  count_ranks();
  ranks().status().finish_step(state_.step);
  check_same_model(ranks(), learner_.sequence_model(), state_.step);
}

CheckpointContents Trainer::contents_to_go_on_from(const CheckpointPlace& place) {
  CheckpointContents contents = read_checkpoint(place, config_);
  TrainerState& saved = contents.state;
  require<ConfigError>(saved.tokenizer_hash == state_.tokenizer_hash, config_.data.path,
                       ": its tokens are those of vocabulary ", state_.tokenizer_hash, ", but the run in ",
                       run_.folder().string(), " learned those of ", saved.tokenizer_hash,
                       "; give the same data, or the run's vocabulary with data.vocabulary");
  require<ConfigError>(saved.data_tokens == state_.data_tokens && saved.data_hash == state_.data_hash,
                       config_.data.path, ": its training part has ", state_.data_tokens, " tokens with hash ",
                       state_.data_hash, ", but the run in ", run_.folder().string(), " was trained on ",
                       saved.data_tokens, " tokens with hash ", saved.data_hash, "; give the same data");
  saved.version = state_.version;
  saved.data_label = state_.data_label;
  saved_step_ = place.step;
  const ExperimentConfig before = load_model_config(place.model());
  // Losses over other text or with other context cannot be compared.
  if (before.eval.split != config_.eval.split || before.eval.stride != config_.eval.stride ||
      before.train.eval_tokens != config_.train.eval_tokens) {
    saved.best_eval_nats = std::numeric_limits<double>::infinity();
    saved.best_step = -1;
  }
  return contents;
}

// What only rank 0 has: the folder, its lock and its files.
void Trainer::open_folder() {
  const bool exists = run_.exists();
  if (!resume_ || !exists) run_.create(config_);
  lock_ = std::make_unique<RunLock>(run_.folder());
  if (resume_ && exists) {
    require_same_run(run_.read_config(), config_, run_.folder().string());
    run_.remove_leftovers();
  }
}

void Trainer::open_run() {
  CheckpointContents contents;
  std::string origin;
  if (leads()) {
    open_folder();
    const auto newest = resume_ ? run_.newest_checkpoint() : std::nullopt;
    if (newest) {
      contents = contents_to_go_on_from(*newest);
      origin = newest->folder.string();
    }
  }
  origin = ranks().broadcast_text(origin, 0);
  if (!origin.empty()) {
    if (ranks().size() > 1) {
      const auto all = [](const std::string& /*name*/) { return true; };
      const auto kept = [&](const std::string& name) { return learner_.keeps_moment(name); };
      contents.model = broadcast_tensors(ranks(), contents.model, all);
      contents.optimizer = broadcast_tensors(ranks(), contents.optimizer, kept);
      contents.state = state_from_text(ranks().broadcast_text(to_text(contents.state), 0), origin);
    }
    learner_.restore(contents.model, contents.optimizer, contents.state.step, origin);
    learner_.set_bucket_order(contents.state.bucket_order);
    state_ = std::move(contents.state);
  }
  seconds_before_ = state_.seconds;
  tokens_before_ = state_.tokens;
  steps_before_ = logged_step_ = state_.step;
  if (!leads()) return;
  if (resume_) run_.replace_config(config_);
  keep_tokenizer();
  metrics_ = std::make_unique<MetricsLog>(run_.metrics_file());
  metrics_->cut_back_to(state_.step);
  events_ = std::make_unique<EventFile>(run_.folder(), wall_seconds(), state_.step + 1);
}

// A run can be used without the data it was trained on: its own vocabulary stays with it.
void Trainer::keep_tokenizer() const {
  const std::filesystem::path& from = data().tokenizer;
  if (from.empty()) return;
  const std::filesystem::path to = run_.folder() / from.filename();
  if (!std::filesystem::exists(to)) write_file_at_once(to, read_file(from));
}

std::string Trainer::labels() const {
  return state_.data_label.empty() ? validity_ : validity_ + ", " + state_.data_label;
}

void Trainer::add_labels(nlohmann::ordered_json& line) const {
  line["validity"] = validity_;
  if (!state_.data_label.empty()) line["data_label"] = state_.data_label;
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
  for (std::int64_t i = 0; i < train.accumulation; ++i) {
    batches.push_back(data_->batch(state_.step * train.accumulation + i, ranks().rank(), ranks().size()));
  }
  const double begin = seconds_of_this_part();
  const CommunicationCounts before = ranks().counts();
  ranks().status().enter(RankPhase::computing);
  StepResult result = learner_.step(batches, own_votes());
  stepping_seconds_ += seconds_of_this_part() - begin;
  stepping_counts_.waiting_seconds += ranks().counts().waiting_seconds - before.waiting_seconds;
  stepping_counts_.bytes_sent += ranks().counts().bytes_sent - before.bytes_sent;
  ++state_.step;
  ranks().status().finish_step(state_.step);
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
                              {"train_" + unit_.key, score(data().kind, loss)},
                              {"learning_rate", result.learning_rate},
                              {"gradient_norm", result.gradient_norm},
                              {"auxiliary_loss", result.auxiliary_loss},
                              {"tokens", state_.tokens},
                              {"tokens_per_second", tokens_per_second()},
                              {"seconds", state_.seconds}};
  log_ranks(line);
  if (!leads()) return;
  add_event("train/loss", loss);
  add_event("train/" + unit_.event, score(data().kind, loss));
  add_event("train/lr", result.learning_rate);
  add_event("train/grad_norm", result.gradient_norm);
  add_event("train/tokens_per_sec", tokens_per_second());
  for (const auto& [name, value] : routing_summary(result.routing)) {
    line["routing_" + name] = value;
    add_event("routing/" + name, value);
  }
  add_labels(line);
  metrics_->append(line);
  events_->flush();
}

void Trainer::evaluate() {
  const TokenKind kind = data().kind;
  const Evaluation likelihood = data_->evaluate(learner_);
  require<NotFiniteError>(std::isfinite(likelihood.nats), "step ", state_.step, ": the loss on ", config_.eval.split,
                          " is ", likelihood.nats, "; go on from the checkpoint before with `resume` and a lower ",
                          "train.learning_rate or train.clip");
  state_.last_eval_step = state_.step;
  state_.last_eval_nats = likelihood.nats_per_token();
  const bool best = state_.last_eval_nats < state_.best_eval_nats;
  if (best) {
    state_.best_eval_nats = state_.last_eval_nats;
    state_.best_step = state_.step;
  }
  state_.seconds = seconds_before_ + seconds_of_this_part();
  if (rank_log_) {
    rank_log_->write("step " + std::to_string(state_.step) + ": " + config_.eval.split + " loss " +
                     std::to_string(state_.last_eval_nats) + " nats per token over all ranks");
  }
  if (!leads()) return;
  nlohmann::ordered_json line{{"step", state_.step},
                              {"eval_loss_nats", state_.last_eval_nats},
                              {"eval_" + unit_.key, score(kind, state_.last_eval_nats)},
                              {"eval_split", config_.eval.split},
                              {"eval_tokens", likelihood.tokens},
                              {"eval_stride", likelihood.stride},
                              {"best", best},
                              {"seconds", state_.seconds}};
  if (likelihood.accuracy) {
    line["eval_accuracy"] = *likelihood.accuracy;
    add_event("val/accuracy", *likelihood.accuracy);
  }
  add_event("val/loss", state_.last_eval_nats);
  add_event("val/" + unit_.event, score(kind, state_.last_eval_nats));
  for (const auto& [name, value] : routing_summary(likelihood.routing)) {
    line["eval_routing_" + name] = value;
    add_event("val_routing/" + name, value);
  }
  add_labels(line);
  metrics_->append(line);
  events_->flush();
  if (observer_.evaluation) {
    observer_.evaluation({.step = state_.step,
                          .split = config_.eval.split,
                          .nats_per_token = state_.last_eval_nats,
                          .tokens = likelihood.tokens,
                          .kind = kind,
                          .accuracy = likelihood.accuracy,
                          .best = best,
                          .labels = labels()});
  }
}

// The checkpoint before is removed only after the next good step: should this one's weights lead nowhere, there is
// still one that did not.
void Trainer::save() {
  for (const auto& [name, value] : named_tensors(learner_.sequence_model())) {
    require<NotFiniteError>(!value.is_floating_point() || at::isfinite(value).all().item<bool>(), "step ", state_.step,
                            ": ", name, " is not finite and was not saved; go on from the checkpoint before with ",
                            "`resume` and a lower train.learning_rate or train.clip");
  }
  check_ranks();
  saved_step_ = state_.step;
  state_.bucket_order = learner_.bucket_order();
  // Of several ranks: before rank 0 is alone with its disk.
  const std::map<std::string, at::Tensor> optimizer_state = learner_.optimizer_state();
  if (!leads()) return;
  const PhaseGuard phase(ranks().status(), RankPhase::saving);
  metrics_->sync();
  write_checkpoint(run_, learner_, state_, optimizer_state);
  old_checkpoints_wait_ = true;
}

void Trainer::remove_old_checkpoints() {
  if (old_checkpoints_wait_ && leads()) run_.remove_old_checkpoints(config_.train.keep_checkpoints, state_.best_step);
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
                  .kind = data().kind,
                  .tokens_per_second = tokens_per_second(),
                  .seconds = state_.seconds,
                  .seconds_left = left});
}

TrainingResult Trainer::run() {
  part_begin_ = std::chrono::steady_clock::now();
  const TrainConfig& train = config_.train;
  TrainingResult result;
  Votes votes = votes_now();
  while (state_.step < train.steps && !votes.stop && !votes.time_is_up) {
    const StepResult step = take_step();
    remove_old_checkpoints();
    result.last_loss_nats = step.loss_nats;
    report_step(step);
    if (due(train.log_every)) log_step(step);
    if (due(train.eval_every)) evaluate();
    if (due(train.checkpoint_every) || state_.best_step == state_.step) save();
    if (state_.step % check_every_ == 0) check_ranks();
    if (trace_ && state_.step - steps_before_ >= trace_steps_) end_trace();
    votes = ranks().size() == 1 ? votes_now() : votes_of(step.votes);
  }
  if (state_.step < train.steps) {
    result.end = votes.stop ? TrainingEnd::interrupted : TrainingEnd::out_of_time;
    // Out of time is an end like any other; interrupted is a pause, after which nothing may differ.
    const bool evaluated = state_.last_eval_step == state_.step;
    if (result.end == TrainingEnd::out_of_time && !evaluated) evaluate();
    if (saved_step_ != state_.step || (result.end == TrainingEnd::out_of_time && !evaluated)) save();
  }
  // Evaluated and found finite, or stopped on purpose.
  remove_old_checkpoints();
  end_trace();
  result.state = state_;
  result.tokens_per_second = tokens_per_second();
  result.steps = state_.step - steps_before_;
  result.step_seconds = stepping_seconds_;
  result.waiting_seconds = stepping_counts_.waiting_seconds;
  result.bytes_sent = stepping_counts_.bytes_sent;
  if (rank_log_) rank_log_->write("ended after step " + std::to_string(state_.step));
  return result;
}

}  // namespace routing
