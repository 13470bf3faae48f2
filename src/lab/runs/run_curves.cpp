#include "lab/runs/run_curves.h"

#include "routing/core/error.h"

#include <cctype>
#include <fmt/core.h>
#include <utility>

namespace routing {
namespace {

constexpr double kSecondsPerMinute = 60.0;

Curve curve_of(const std::vector<HistoryPoint>& points, CurveAxis by) {
  Curve curve;
  for (const HistoryPoint& point : points) {
    curve.x.push_back(place_on(by, point));
    curve.y.push_back(point.value);
  }
  return curve;
}

std::string name_of(const NamedHistory& run) {
  const RunHistory& history = run.history;
  std::string name = run.name;
  if (history.best) name += fmt::format("  {:.3f}", history.best->value);
  if (history.validity != "causal") name += ", " + history.validity;
  if (!history.data_label.empty()) name += ", " + history.data_label;
  return name;
}

void require_one_unit(const std::vector<NamedHistory>& runs) {
  require<ConfigError>(!runs.empty(), "no run was given; give the folder of at least one");
  for (const NamedHistory& run : runs) {
    require<ConfigError>(run.history.unit.has_value(), run.name,
                         ": has logged nothing yet; wait for its first line (train.log_every), or leave it out");
    require<ConfigError>(run.history.unit->key == runs.front().history.unit->key, run.name, ": reports ",
                         run.history.unit->name, ", but ", runs.front().name, " reports ",
                         runs.front().history.unit->name, "; they share no axis, so draw them apart");
  }
}

}  // namespace

double place_on(CurveAxis axis, const HistoryPoint& point) {
  switch (axis) {
    case CurveAxis::tokens:
      return point.tokens;
    case CurveAxis::minutes:
      return point.seconds / kSecondsPerMinute;
    case CurveAxis::steps:
      break;
  }
  return static_cast<double>(point.step);
}

std::string axis_name(const ScoreUnit& unit) {
  std::string name = unit.name;
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, " per ");
  return name;
}

CurvesFigure curves_of_runs(const std::vector<NamedHistory>& runs, const RunCurvesOptions& options) {
  require_one_unit(runs);
  require<InputError>(options.smoothing >= 0.0 && options.smoothing < 1.0, "smoothing is ", options.smoothing,
                      ", but must be at least 0 and below 1");
  const std::string unit = axis_name(*runs.front().history.unit);
  CurvesFigure figure{.title = unit + ": lines for training, dots for evaluation",
                      .x_label = options.by == CurveAxis::steps    ? "step"
                                 : options.by == CurveAxis::tokens ? "tokens"
                                                                   : "minutes of training",
                      .y_label = unit,
                      .curves = {},
                      .references = {}};
  figure.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(figure.title[0])));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Curve training = curve_of(runs[i].history.training, options.by);
    Curve evaluation = curve_of(runs[i].history.evaluation, options.by);
    training.smoothing = options.smoothing;
    evaluation.points = true;
    training.colour = evaluation.colour = static_cast<std::int32_t>(i);
    // Where the line ends is where it goes; a run that only evaluates has dots alone.
    (training.x.empty() ? evaluation : training).name = name_of(runs[i]);
    figure.curves.push_back(std::move(training));
    figure.curves.push_back(std::move(evaluation));
  }
  return figure;
}

}  // namespace routing
