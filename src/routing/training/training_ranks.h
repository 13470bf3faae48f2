// What a run does because there may be several ranks: they must be of the same run, stop together and stay the same;
// each keeps a log of its own and, if asked, a trace. Of one rank all of it is trivial.
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/distributed/watch/step_clock.h"
#include "routing/distributed/watch/step_trace.h"
#include "routing/training/checkpoint.h"
#include "routing/training/learner.h"
#include "routing/training/rank_log.h"
#include "routing/training/run_log.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace routing {

// How a run over several ranks is spread.
struct RankFacts {
  int ranks = 1;
  std::int64_t rows = 0;  // of a batch, on this rank
  std::int64_t all_rows = 0;
  std::int64_t optimizer_bytes = 0;      // on this rank
  std::int64_t all_optimizer_bytes = 0;  // what each would keep if the optimiser were not sharded
};

// Throws a ConfigError on every rank, with the first difference, unless configuration, data and version are the same on
// all. Where data lie may differ.
void require_same_everywhere(RankGroup& group, const ExperimentConfig& config, const TrainerState& state);

class TrainingRanks {
 public:
  struct Options {
    std::int64_t check_every = 100;  // steps after which ranks compare their models
    std::int64_t trace_steps = 0;    // of this part: written to ranks/trace-rank-0000.json and so on
  };
  TrainingRanks(Learner& learner, Options options);
  // The trace goes with it.
  ~TrainingRanks();
  TrainingRanks(const TrainingRanks&) = delete;
  TrainingRanks& operator=(const TrainingRanks&) = delete;

  // Before the first step: all ranks must hold the same model. Logs and traces go below `run`.
  void begin(const ExperimentConfig& config, const std::filesystem::path& run, std::int64_t step);
  const RankFacts& facts() const { return facts_; }

  // Reasons to stop: one rank's or, added up, those of all.
  struct Votes {
    bool stop = false;
    bool time_is_up = false;
    bool any() const { return stop || time_is_up; }
  };
  Votes vote(const Votes& own);
  // Around a step. Votes travel during it.
  void begin_step(const Votes& own);
  void end_step();
  Votes votes_of_step() const;

  // What the steps of this part cost.
  const CommunicationCounts& counts() const { return counts_; }
  // Writes a line to this rank's own log; nothing of one rank.
  std::optional<RankTraffic> log_step(std::int64_t step, double loss_nats, const StepClock& clock);
  void note(const std::string& text);

  // Throws a DriftError on all ranks if their models differ.
  void check_models(std::int64_t step);
  // What is due after a step: the comparison, and the end of the trace.
  void finish_step(std::int64_t step, const StepClock& clock);
  void end_trace();

 private:
  RankGroup& group() const { return learner_.ranks(); }

  Learner& learner_;
  Options options_;
  RankFacts facts_;
  std::filesystem::path log_path_;
  std::unique_ptr<RankLog> log_;  // of several ranks
  std::unique_ptr<StepTrace> trace_;
  at::Tensor votes_;  // int64 [2]: of the last step
  std::unique_ptr<PendingWork> pending_votes_;
  CommunicationCounts before_step_;
  CommunicationCounts counts_;
  // At the line before in the log.
  CommunicationCounts logged_counts_;
  double logged_seconds_ = 0.0;
  std::int64_t logged_step_ = 0;
};

}  // namespace routing
