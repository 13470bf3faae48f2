// The curves of runs in one figure, a colour each: training as a line, evaluations as dots. Knows no torch.
#pragma once

#include "lab/figures/curves_figure.h"
#include "lab/runs/run_history.h"
#include "routing/config/words.h"

#include <array>
#include <string>
#include <vector>

namespace routing {

enum class CurveAxis { steps, tokens, minutes };
constexpr auto words_of(CurveAxis) {
  using enum CurveAxis;
  return std::to_array<Word<CurveAxis>>({{steps, "steps"}, {tokens, "tokens"}, {minutes, "minutes"}});
}

struct NamedHistory {
  std::string name;
  RunHistory history = {};
};

struct RunCurvesOptions {
  CurveAxis by = CurveAxis::steps;
  double smoothing = 0.6;  // of the lines, as exponential_mean() takes it; 0 means none
};

// What a point is drawn over.
double place_on(CurveAxis axis, const HistoryPoint& point);

// "bits per byte", "bits per dim", "perplexity": the unit as an axis names it.
std::string axis_name(const ScoreUnit& unit);

// At the right of each run stand its name, its best evaluation and what that is worth unless it is just causal.
//
// Throws  ConfigError  no runs, one without any line, or runs of different units
//         InputError   a smoothing that is not in [0, 1)
CurvesFigure curves_of_runs(const std::vector<NamedHistory>& runs, const RunCurvesOptions& options);

}  // namespace routing
