// Cases run in turns: A B C A B C …, so that a busy neighbour or a warm processor changes all of them alike.
#pragma once

#include "lab/measure/timing.h"

#include <functional>
#include <string>
#include <vector>

namespace routing::bench {

// Fewer runs have no quartiles to speak of.
inline constexpr int kFewestRepeats = 5;
inline constexpr int kDefaultRepeats = 7;

struct Case {
  std::string name = {};
  std::function<void()> run = {};
  int runs_a_round = 1;  // each is timed by itself
  // Untimed, ahead of every run; may be empty.
  std::function<void()> before = {};
  int items_a_run = 1;  // equal pieces of work that a run consists of; seconds are those of one
  int most_rounds = 0;  // slow cases: rounds in which it runs, from the first on; 0 means all
};

struct RunnerOptions {
  int repeats = kDefaultRepeats;                // rounds
  std::function<double()> clock = {};           // seconds from any beginning; empty means the steady clock
  std::function<void(int, int)> progress = {};  // (rounds done, rounds in all), outside of what is timed; may be empty
};

// A ConfigError if there are fewer than kFewestRepeats rounds; for those who prepare much before they measure.
void require_enough_repeats(const RunnerOptions& options);

// Runs every case once untimed, then `repeats` rounds. One entry a case, in their order.
//
// Throws  ConfigError  fewer than kFewestRepeats rounds
std::vector<Timing> run_in_turns(const std::vector<Case>& cases, const RunnerOptions& options);

}  // namespace routing::bench
