// How much of what a selection gains is leak? Models that differ in their selection only, on the same tokens.
//
//   gain   nats(reference, teacher-forced) - nats(selection, teacher-forced)      over every token of the windows
//   leak   nats(selection, future-replaced) - nats(selection, teacher-forced)     at the sampled positions
//   share  leak / gain, where the gain is clearly above 0
//
// and the same with prefix-only in place of future-replaced, which holds the leak and what the shorter sequence costs
// (prefix_likelihood.h says what the three are). References are the selections that read no future.
//
// Positions of one window are not independent, windows nearly are. So a value is the mean over a window's positions and
// over the runs of a selection, and intervals are Student's t over windows: where would the number be on other text of
// this kind, for these very models? What another training would give is another question; with several seeds the
// interval over seeds answers it.
#pragma once

#include "lab/leak/prefix_likelihood.h"
#include "lab/measure/ratio_interval.h"
#include "lab/measure/statistics.h"
#include "routing/config/experiment.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace routing {

// What a trained model is called here: its selection if it routes, else its content pattern, "local" if it has none.
std::string selection_label(const ExperimentConfig& config);

// One trained model, measured.
struct LeakRun {
  std::string selection = {};
  std::uint64_t seed = 0;
  std::string validity = {};  // "causal" or "selection reads the future"
  PrefixLikelihood likelihood = {};
};

// Measures a model; selection, seed and validity are those of its configuration.
LeakRun measure_leak(SequenceModel& model, TokenView tokens, const PrefixLikelihoodOptions& options);

// All in nats per token.
struct LeakNumbers {
  MeanInterval teacher_forced = {};
  MeanInterval future_replaced = {};
  MeanInterval prefix_only = {};
  MeanInterval leak = {};         // future_replaced - teacher_forced, paired
  MeanInterval prefix_cost = {};  // prefix_only - teacher_forced, paired
};

inline constexpr std::size_t kQuarters = 4;

struct SelectionLeak {
  std::string selection = {};
  std::string validity = {};
  std::vector<std::uint64_t> seeds = {};
  MeanInterval every_token = {};                                    // teacher-forced, all tokens of the windows
  LeakNumbers all = {};                                             // at the sampled positions
  std::array<std::optional<LeakNumbers>, kQuarters> quarters = {};  // of the window; absent without two windows there
  Agreement future_replaced = {};                                   // over all runs
  Agreement prefix_only = {};
  // One value per run, from two on.
  std::optional<MeanInterval> every_token_over_seeds = {};
  std::optional<MeanInterval> leak_over_seeds = {};
  std::optional<MeanInterval> prefix_cost_over_seeds = {};

  bool reads_future() const { return validity != "causal"; }
};

// A selection that reads the future against one that does not.
struct LeakShare {
  std::string selection = {};
  std::string reference = {};
  MeanInterval gain = {};
  std::optional<MeanInterval> gain_over_seeds = {};  // where both have the same seeds, two or more
  RatioInterval leak_share = {};                     // only meaningful if is_gain()
  RatioInterval prefix_share = {};

  // Clearly above 0: so is its whole interval over windows.
  bool is_gain() const { return gain.low() > 0.0; }
};

struct LeakReport {
  std::int64_t sequence_length = 0;
  std::int64_t windows = 0;
  std::int64_t samples = 0;                    // a run
  TokenKind tokens = TokenKind::bytes;         // decides the unit of what is printed
  std::vector<SelectionLeak> selections = {};  // in the order of the runs
  std::vector<LeakShare> shares = {};
};

// Throws  InputError  no runs, runs measured at different places, two with the same selection and seed, fewer than two
//                     windows
LeakReport leak_report(std::span<const LeakRun> runs, TokenKind tokens);

}  // namespace routing
