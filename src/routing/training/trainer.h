// The training loop over a run directory: batches, steps, evaluation, checkpoints, logs. Killed at any moment and
// started again with `resume`, a run ends with the same weights and the same log, but for clock times.
//
// Over several ranks all of them run this loop; rank 0 keeps the run directory, and only it reads and writes there. The
// others get what they need from it, so machines need not share a file system. Whether to stop is agreed upon.
#pragma once

#include "routing/config/experiment.h"
#include "routing/evaluation/measures.h"
#include "routing/training/checkpoint.h"
#include "routing/training/event_file.h"
#include "routing/training/learner.h"
#include "routing/training/metrics_log.h"
#include "routing/training/rank_log.h"
#include "routing/training/run_directory.h"
#include "routing/training/run_lock.h"
#include "routing/training/training_data.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace routing {

struct StepReport {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss_nats = 0.0;  // of this step
  TokenKind kind = TokenKind::bytes;
  double tokens_per_second = 0.0;  // of the steps alone, without evaluation and saving
  double seconds = 0.0;            // of training so far, earlier parts of the run included
  double seconds_left = 0.0;       // by the rate of this part
};

// How a run over several ranks is spread.
struct RankFacts {
  int ranks = 1;
  std::int64_t rows = 0;  // of a batch, on this rank
  std::int64_t all_rows = 0;
  std::int64_t optimizer_bytes = 0;      // on this rank
  std::int64_t all_optimizer_bytes = 0;  // what each would keep if the optimiser were not sharded
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
  double last_loss_nats = 0.0;  // of the last step; 0 if there was none
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
    std::function<void(const std::string&)> notes = {};  // what takes time before the first step
    std::shared_ptr<RankGroup> ranks = nullptr;          // nothing means one process
    int local_rank = 0;                                  // 0 prepares data for the others on its machine
    bool shard_optimizer = false;
    std::int64_t check_every = 100;  // steps after which ranks compare their models
    std::int64_t trace_steps = 0;    // of this part: written to ranks/trace-rank-0000.json and so on
  };
  // Checks everything that can be checked before the first step: configuration, data, folder, checkpoint.
  explicit Trainer(Setup setup);

  TrainingResult run();

  Learner& learner() { return learner_; }
  const TrainerState& state() const { return state_; }
  const TrainingFacts& data() const { return data_->facts(); }
  const RankFacts& rank_facts() const { return rank_facts_; }
  // With everything that the data and the processor decide.
  const ExperimentConfig& config() const { return config_; }
  // "causal", "selection reads the future", and behind a comma "partial data" where the data are not whole.
  std::string labels() const;

 private:
  bool leads() const { return ranks().rank() == 0; }
  RankGroup& ranks() const { return learner_.ranks(); }
  void require_same_everywhere() const;
  void open_run();
  void open_folder();
  void keep_tokenizer() const;
  void add_labels(nlohmann::ordered_json& line) const;
  CheckpointContents contents_to_go_on_from(const CheckpointPlace& place);
  void count_ranks();
  // Whether to stop, as all ranks together want it: by an interrupt of any, or by the clock of rank 0.
  std::vector<std::int64_t> own_votes() const;
  struct Votes {
    bool stop = false;
    bool time_is_up = false;
  };
  Votes votes_now() const;
  static Votes votes_of(const std::vector<std::int64_t>& sums);
  StepResult take_step();
  void log_ranks(nlohmann::ordered_json& line);
  void check_ranks();
  void end_trace();
  void add_event(const std::string& tag, double value);
  void log_step(const StepResult& result);
  void evaluate();
  void save();
  void remove_old_checkpoints();
  void report_step(const StepResult& result) const;
  bool due(std::int64_t every) const;
  double seconds_of_this_part() const;
  double tokens_per_second() const;

  std::unique_ptr<TrainingData> data_;
  ExperimentConfig config_;
  RunDirectory run_;
  bool resume_;
  TrainingObserver observer_;
  Learner learner_;
  TrainerState state_;
  std::string validity_;
  const ScoreUnit& unit_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<RunLock> lock_;
  // Of several ranks.
  RankFacts rank_facts_;
  std::int64_t check_every_;
  std::unique_ptr<RankLog> rank_log_;
  std::unique_ptr<StepTrace> trace_;
  std::int64_t trace_steps_;
  CommunicationCounts stepping_counts_;  // of steps alone
  CommunicationCounts logged_counts_;
  double logged_seconds_ = 0.0;
  std::int64_t logged_step_ = 0;
  std::int64_t saved_step_ = -1;
  bool old_checkpoints_wait_ = false;  // for the next good step, see save()
  std::chrono::steady_clock::time_point part_begin_;
  double seconds_before_ = 0.0;    // of earlier parts
  double stepping_seconds_ = 0.0;  // of this part, in steps alone
  std::int64_t tokens_before_ = 0;
  std::int64_t steps_before_ = 0;
};

}  // namespace routing
