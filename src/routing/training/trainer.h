// The training loop over a run directory: batches, steps, evaluation, checkpoints, logs. Killed at any moment and
// started again with `resume`, a run ends with the same weights and the same log, but for clock times.
//
// Over several ranks all of them run this loop; rank 0 keeps the run directory, and only it reads and writes there. The
// others get what they need from it, so machines need not share a file system. Whether to stop is agreed upon.
#pragma once

#include "routing/config/experiment.h"
#include "routing/distributed/watch/step_clock.h"
#include "routing/training/checkpoint.h"
#include "routing/training/learner.h"
#include "routing/training/run_directory.h"
#include "routing/training/run_lock.h"
#include "routing/training/run_log.h"
#include "routing/training/training_data.h"
#include "routing/training/training_ranks.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace routing {

struct StepReport {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss_nats = 0.0;  // of this step
  TokenKind kind = TokenKind::bytes;
  double tokens_per_second = 0.0;  // of the steps alone, without evaluation and saving
  double seconds = 0.0;            // of training so far, earlier parts of the run included
  double seconds_left = 0.0;       // by the rate of this part
  double epochs = 0.0;             // how often as many tokens were read as the training part has
};

struct EvaluationReport {
  std::int64_t step = 0;
  std::string split = {};
  double nats_per_token = 0.0;
  std::int64_t tokens = 0;
  TokenKind kind = TokenKind::bytes;
  std::optional<double> accuracy = std::nullopt;
  bool best = false;
  std::string labels = {};  // validity, and "partial data" where the data are not whole
};

// Called from the loop; all may be empty.
struct TrainingObserver {
  std::function<void(const StepReport&)> step = {};
  std::function<void(const EvaluationReport&)> evaluation = {};
  std::function<bool()> stop_requested = {};  // asked after every step: save and return
};

enum class TrainingEnd { finished, out_of_time, interrupted };

struct TrainingResult {
  TrainingEnd end = TrainingEnd::finished;
  TrainerState state = {};
  double last_loss_nats = 0.0;  // the mean of the last line of the log, or since it; 0 if there was no step
  double tokens_per_second = 0.0;
  // Of this part, in steps alone.
  std::int64_t steps = 0;
  double step_seconds = 0.0;
  double waiting_seconds = 0.0;  // for other ranks and the network
  std::int64_t bytes_sent = 0;   // by this rank
};

class Trainer {
 public:
  struct Setup {
    ExperimentConfig config = {};
    std::filesystem::path run = {};
    bool resume = false;  // go on from the newest whole checkpoint, or from the start if there is none
    std::string version = {};
    TrainingObserver observer = {};
    std::function<void(const std::string&)> notes = {};  // before the first step: what takes time, what has changed
    std::shared_ptr<RankGroup> ranks = nullptr;          // nothing means one process
    int local_rank = 0;                                  // 0 prepares data for the others on its machine
    bool shard_optimizer = false;
    std::int64_t check_every = 100;  // see TrainingRanks::Options
    std::int64_t trace_steps = 0;
  };
  // Checks everything that can be checked before the first step: configuration, data, folder, checkpoint.
  explicit Trainer(Setup setup);

  TrainingResult run();

  Learner& learner() { return learner_; }
  const TrainerState& state() const { return state_; }
  const TrainingFacts& data() const { return data_->facts(); }
  const RankFacts& rank_facts() const { return ranks_.facts(); }
  // With everything that the data and the processor decide.
  const ExperimentConfig& config() const { return config_; }
  // See RunLabels.
  std::string labels() const { return run_labels().text(); }

 private:
  RankGroup& group() const { return learner_.ranks(); }
  bool leads() const { return group().leads(); }
  RunLabels run_labels() const { return {.validity = validity_label(config_), .data = data().label}; }
  void open_run(const Setup& setup);
  void open_folder(bool resume);
  void go_on_with_changes(const std::vector<ChangedKey>& changes, const Setup& setup);
  TrainingResult run_steps();
  // Weights that are no numbers any more, and how to go on.
  [[noreturn]] void report_divergence(const NotFiniteError& error) const;
  void keep_tokenizer() const;
  CheckpointContents contents_to_go_on_from(const CheckpointPlace& place);
  // Whether this rank wants to stop: by an interrupt, or by the clock of rank 0.
  TrainingRanks::Votes own_votes() const;
  StepResult take_step();
  void log_step(const StepResult& result);
  void evaluate();
  void draw_sample();
  void require_finite_weights();
  void save();
  void remove_old_checkpoints();
  void report_step(const StepResult& result) const;
  bool due(std::int64_t every) const;
  // The same of what 0 means never.
  bool wanted(std::int64_t every) const { return every > 0 && due(every); }

  std::unique_ptr<TrainingData> data_;
  ExperimentConfig config_;
  RunDirectory run_;
  TrainingObserver observer_;
  Learner learner_;
  TrainingRanks ranks_;
  TrainerState state_;
  StepClock clock_;
  std::unique_ptr<RunLock> lock_;  // of rank 0, as the log is
  std::unique_ptr<RunLog> log_;
  std::int64_t saved_step_ = -1;
  bool old_checkpoints_wait_ = false;  // for the next good step, see save()
};

}  // namespace routing
