// What the arguments of `routing train` say.
#pragma once

#include "ranks/launched.h"
#include "ranks/rank_options.h"
#include "routing/config/experiment.h"
#include "routing/distributed/watch/rank_place.h"
#include "shell/experiment_options.h"

#include <cstdint>
#include <string>

namespace routing {

struct TrainOptions {
  ExperimentOptions experiment;
  ExperimentConfig config;  // what those amount to, once the line is parsed
  std::string out;
  std::string resume;
  bool resume_given = false;    // also without a word
  bool chooses_preset = false;  // by the data and the machine
  bool fits_minutes = false;    // --minutes become a number of steps
  bool dry_run = false;
  bool json = false;
  // Of several ranks.
  LocalRanks ranks;
  int restarts = 0;
  bool shard_optimizer = false;
  std::int64_t check_every = 100;
  std::int64_t trace_steps = 0;

  // Asked to, or started anew after a failure.
  bool resumes() const { return resume_given || environment_variable(kAttemptVariable).value_or("0") != "0"; }
};

}  // namespace routing
