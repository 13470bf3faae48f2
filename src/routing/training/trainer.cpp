#include "routing/training/trainer.h"

#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/distributed/optimizer_shards.h"
#include "routing/model/weights.h"
#include "routing/training/run_samples.h"

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
      observer_(std::move(setup.observer)),
      learner_(config_, {.group = setup.ranks, .shard_optimizer = setup.shard_optimizer}),
      ranks_(learner_, {.check_every = setup.check_every, .trace_steps = setup.trace_steps}) {
  state_.version = std::move(setup.version);
  state_.data_tokens = data().tokens;
  state_.data_hash = data().hash;
  state_.tokenizer_hash = data().tokenizer_hash;
  state_.data_label = data().label;
  require_same_everywhere(group(), config_, state_);
  open_run(setup);
  ranks_.begin(config_, run_.folder(), state_.step);
}

CheckpointContents Trainer::contents_to_go_on_from(const CheckpointPlace& place) {
  CheckpointContents contents = read_checkpoint(place, config_);
  TrainerState& saved = contents.state;
  require<ConfigError>(saved.tokenizer_hash == state_.tokenizer_hash, shown_paths(config_.data.path),
                       ": its tokens are those of vocabulary ", state_.tokenizer_hash, ", but the run in ",
                       run_.folder().string(), " learned those of ", saved.tokenizer_hash,
                       "; give the same data, or the run's vocabulary with data.vocabulary");
  require<ConfigError>(saved.data_tokens == state_.data_tokens && saved.data_hash == state_.data_hash,
                       shown_paths(config_.data.path), ": its training part has ", state_.data_tokens,
                       " tokens with hash ", state_.data_hash, ", but the run in ", run_.folder().string(),
                       " was trained on ", saved.data_tokens, " tokens with hash ", saved.data_hash,
                       "; give the same data");
  require<ConfigError>(saved.step <= config_.train.steps, run_.folder().string(), ": is at step ", saved.step,
                       " already, but train.steps is ", config_.train.steps,
                       ", and counts all steps of the run; give more than it has");
  saved.version = state_.version;
  saved.data_label = state_.data_label;
  saved_step_ = place.step;
  const ExperimentConfig before = load_model_config(place.model());
  // Losses over other text or with other context cannot be compared.
  if (before.train.sequence_length != config_.train.sequence_length ||
      before.routing.routing().window != config_.routing.routing().window || before.eval.split != config_.eval.split ||
      before.eval.stride != config_.eval.stride || before.eval.memory != config_.eval.memory ||
      before.train.eval_tokens != config_.train.eval_tokens) {
    saved.best_eval_nats = std::numeric_limits<double>::infinity();
    saved.best_step = -1;
  }
  return contents;
}

// What only rank 0 has: the folder, its lock and its files.
void Trainer::open_folder(bool resume) {
  const bool exists = run_.exists();
  // It has a config.toml too, but nothing to go on from: a training would begin anew and cut its log.
  require<ConfigError>(!run_.is_export(), run_.folder().string(),
                       ": holds an exported model, which cannot be trained on; go on with the run it came from, or "
                       "choose another `run`");
  if (!resume || !exists) run_.create(config_);
  lock_ = std::make_unique<RunLock>(run_.folder());
  if (resume && exists) {
    require_same_run(run_.read_config(), config_, run_.folder().string());
    run_.remove_leftovers();
  }
}

void Trainer::go_on_with_changes(const std::vector<ChangedKey>& changes, const Setup& setup) {
  if (changes.empty()) return;
  run_.keep_config_of_steps_to(state_.step);
  for (const ChangedKey& change : changes) {
    if (setup.notes) {
      setup.notes(change.key + " is " + change.now + " from step " + std::to_string(state_.step) + " on, " +
                  change.before + " before");
    }
  }
  log_->add_changes(state_.step, changes);
}

void Trainer::open_run(const Setup& setup) {
  CheckpointContents contents;
  std::string origin;
  std::vector<ChangedKey> changes;
  if (leads()) {
    open_folder(setup.resume);
    changes = changed_keys(run_.read_config(), config_);
    // How long and how often says nothing about what is learned.
    std::erase_if(changes, [](const ChangedKey& change) { return !changes_what_is_learned(change.key); });
    const auto newest = setup.resume ? run_.newest_checkpoint() : std::nullopt;
    if (newest) {
      contents = contents_to_go_on_from(*newest);
      origin = newest->folder.string();
    }
  }
  origin = group().broadcast_text(origin, 0);
  if (!origin.empty()) {
    if (group().size() > 1) {
      const auto all = [](const std::string& /*name*/) { return true; };
      const auto kept = [&](const std::string& name) { return learner_.keeps_moment(name); };
      contents.model = broadcast_tensors(group(), contents.model, all);
      contents.optimizer = broadcast_tensors(group(), contents.optimizer, kept);
      contents.memory = broadcast_tensors(group(), contents.memory, all);
      contents.state = state_from_text(group().broadcast_text(to_text(contents.state), 0), origin);
    }
    learner_.restore(contents.model, contents.optimizer, contents.state.step, origin);
    learner_.restore_memory(contents.memory, origin);
    learner_.set_bucket_order(contents.state.bucket_order);
    state_ = std::move(contents.state);
  }
  if (!leads()) return;
  keep_tokenizer();
  run_.remove_samples_after(state_.step);
  log_ = std::make_unique<RunLog>(
      run_, state_.step, RunLog::Subject{.kind = data().kind, .split = config_.eval.split, .labels = run_labels()});
  if (state_.step == 0 && setup.resume && setup.notes) setup.notes("nothing was saved yet: begins with step 1");
  if (state_.step == config_.train.steps) return;
  if (state_.step > 0) go_on_with_changes(changes, setup);
  if (setup.resume) run_.replace_config(config_);
}

// A run can be used without the data it was trained on: its own vocabulary stays with it.
void Trainer::keep_tokenizer() const {
  const std::filesystem::path& from = data().tokenizer;
  if (from.empty()) return;
  const std::filesystem::path to = run_.folder() / from.filename();
  if (!std::filesystem::exists(to)) write_file_at_once(to, read_file(from));
}

bool Trainer::due(std::int64_t every) const {
  return state_.step == config_.train.steps || (every > 0 && state_.step % every == 0);
}

TrainingRanks::Votes Trainer::own_votes() const {
  const double limit = config_.train.minutes * 60.0;
  return {.stop = observer_.stop_requested && observer_.stop_requested(),
          .time_is_up = leads() && limit > 0.0 && clock_.seconds() >= limit};
}

StepResult Trainer::take_step() {
  const TrainConfig& train = config_.train;
  std::vector<TokenBatch> batches;
  for (std::int64_t i = 0; i < train.accumulation; ++i) {
    batches.push_back(data_->batch(state_.step * train.accumulation + i, learner_.data_rank(), learner_.data_ranks()));
  }
  clock_.begin_step();
  group().status().enter(RankPhase::computing);
  ranks_.begin_step(own_votes());
  StepResult result = learner_.step(batches);
  ranks_.end_step();
  clock_.end_step(result.tokens);
  ++state_.step;
  group().status().finish_step(state_.step);
  state_.tokens += result.tokens;
  state_.loss_sum += result.loss_nats;
  ++state_.loss_steps;
  state_.seconds = clock_.seconds();
  return result;
}

void Trainer::log_step(const StepResult& result) {
  const double loss = state_.loss_sum / static_cast<double>(state_.loss_steps);
  state_.loss_sum = 0.0;
  state_.loss_steps = 0;
  const std::optional<RankTraffic> traffic = ranks_.log_step(state_.step, loss, clock_);
  if (!leads()) return;
  log_->add_step(state_, result,
                 {.loss_nats = loss, .tokens_per_second = clock_.tokens_per_second(), .traffic = traffic});
}

void Trainer::evaluate() {
  const Evaluation likelihood = data_->evaluate(learner_);
  require<NotFiniteError>(std::isfinite(likelihood.nats), "step ", state_.step, ": the loss on ", config_.eval.split,
                          " is ", likelihood.nats);
  state_.last_eval_step = state_.step;
  state_.last_eval_nats = likelihood.nats_per_token();
  const bool best = state_.last_eval_nats < state_.best_eval_nats;
  if (best) {
    state_.best_eval_nats = state_.last_eval_nats;
    state_.best_step = state_.step;
  }
  state_.seconds = clock_.seconds();
  ranks_.note("step " + std::to_string(state_.step) + ": " + config_.eval.split + " loss " +
              std::to_string(state_.last_eval_nats) + " nats per token over all ranks");
  if (!leads()) return;
  log_->add_evaluation(state_, likelihood);
  if (observer_.evaluation) {
    observer_.evaluation({.step = state_.step,
                          .split = config_.eval.split,
                          .nats_per_token = state_.last_eval_nats,
                          .tokens = likelihood.tokens,
                          .kind = data().kind,
                          .accuracy = likelihood.accuracy,
                          .best = best,
                          .labels = labels()});
  }
}

void Trainer::require_finite_weights() {
  for (const auto& [name, value] : named_tensors(learner_.model())) {
    require<NotFiniteError>(!value.is_floating_point() || at::isfinite(value).all().item<bool>(), "step ", state_.step,
                            ": ", name, " is not finite and was not saved");
  }
}

void Trainer::draw_sample() {
  // Of several ranks the others wait as long as for a checkpoint.
  if (!leads()) return;
  const PhaseGuard phase(group().status(), RankPhase::saving);
  require_finite_weights();
  try {
    write_sample(run_, learner_, *data_, state_.step);
  } catch (const InputError& error) {
    throw InputError("step " + std::to_string(state_.step) + ": no sample could be drawn: " + error.what() +
                     "; train.sample_every=0 draws none");
  }
}

// The checkpoint before is removed only after the next good step: should this one's weights lead nowhere, there is
// still one that did not.
void Trainer::save() {
  require_finite_weights();
  ranks_.check_models(state_.step);
  saved_step_ = state_.step;
  state_.bucket_order = learner_.bucket_order();
  // Of several ranks: before rank 0 is alone with its disk.
  const GatheredState gathered{.optimizer = learner_.optimizer_state(), .memory = learner_.memory_state()};
  if (!leads()) return;
  const PhaseGuard phase(group().status(), RankPhase::saving);
  log_->sync();
  write_checkpoint(run_, learner_, state_, gathered);
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
  double left = tokens_left / clock_.tokens_per_second();
  if (train.minutes > 0.0) left = std::min(left, std::max(0.0, train.minutes * 60.0 - state_.seconds));
  observer_.step(
      {.step = state_.step,
       .steps = train.steps,
       .loss_nats = result.loss_nats,
       .kind = data().kind,
       .tokens_per_second = clock_.tokens_per_second(),
       .seconds = state_.seconds,
       .seconds_left = left,
       // Made-up tasks have no end.
       .epochs = data().tokens == 0 ? 0.0 : static_cast<double>(state_.tokens) / static_cast<double>(data().tokens)});
}

void Trainer::report_divergence(const NotFiniteError& error) const {
  const std::vector<CheckpointPlace> kept = run_.whole_checkpoints();
  const std::string lower = "a lower train.learning_rate or train.clip";
  if (kept.empty()) {
    throw NotFiniteError(std::string(error.what()) + "; nothing was saved yet: begin again with " + lower +
                         ", by `resume` in the same folder");
  }
  std::string advice =
      "; go on from the checkpoint of step " + std::to_string(kept.back().step) + " by `resume` with " + lower;
  // No good step has followed it.
  if (old_checkpoints_wait_ && kept.size() > 1) {
    advice += "; if that diverges at once, delete " + kept.back().folder.string() + ": step " +
              std::to_string(kept[kept.size() - 2].step) + " is still there";
  }
  throw NotFiniteError(error.what() + advice);
}

TrainingResult Trainer::run() {
  try {
    return run_steps();
  } catch (const NotFiniteError& error) {
    report_divergence(error);
  }
}

TrainingResult Trainer::run_steps() {
  clock_ = StepClock(state_.seconds);
  const TrainConfig& train = config_.train;
  TrainingResult result;
  TrainingRanks::Votes votes = ranks_.vote(own_votes());
  while (state_.step < train.steps && !votes.any()) {
    const StepResult step = take_step();
    remove_old_checkpoints();
    result.last_loss_nats = state_.loss_sum / static_cast<double>(state_.loss_steps);
    report_step(step);
    if (due(train.log_every)) log_step(step);
    if (leads() && wanted(train.clusters_every)) log_->add_clusters(state_.step, step.routing);
    if (due(train.eval_every)) evaluate();
    if (wanted(train.sample_every)) draw_sample();
    if (due(train.checkpoint_every) || state_.best_step == state_.step) save();
    ranks_.finish_step(state_.step, clock_);
    votes = group().size() == 1 ? own_votes() : ranks_.votes_of_step();
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
  ranks_.end_trace();
  result.state = state_;
  result.tokens_per_second = clock_.tokens_per_second();
  result.steps = clock_.steps();
  result.step_seconds = clock_.step_seconds();
  result.waiting_seconds = ranks_.counts().waiting_seconds;
  result.bytes_sent = ranks_.counts().bytes_sent;
  ranks_.note("ended after step " + std::to_string(state_.step));
  return result;
}

}  // namespace routing
