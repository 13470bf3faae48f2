#include "lab/figures/curve_runs.h"

#include <algorithm>
#include <cmath>

namespace routing {

bool is_shown(double value) {
  return std::isfinite(value) && std::abs(value) <= kLargestShown;
}

std::vector<CurveRun> runs_of(const Curve& curve) {
  std::vector<CurveRun> runs;
  bool in_run = false;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const bool shown = is_shown(curve.x[i]) && is_shown(curve.y[i]);
    if (shown && !in_run) runs.emplace_back();
    if (shown) runs.back().push_back({curve.x[i], curve.y[i]});
    in_run = shown;
  }
  return runs;
}

CurveRun all_points(const CurvesFigure& figure) {
  CurveRun points;
  for (const Curve& curve : figure.curves) {
    for (const CurveRun& run : runs_of(curve)) points.insert(points.end(), run.begin(), run.end());
  }
  return points;
}

bool is_smoothed(const Curve& curve) {
  return !curve.points && curve.x.size() >= kSmoothFrom;
}

CurveRun main_line(const Curve& curve, const CurveRun& run, const AxisRange& y) {
  if (!is_smoothed(curve)) return run;
  // Longer curves are smoothed over more places: what is seen is then equally smooth.
  constexpr std::size_t kReachShare = 24;
  std::vector<double> values;
  values.reserve(run.size());
  for (const CurvePoint& point : run) values.push_back(std::min(point.y, y.high + (y.high - y.low)));
  values = smoothed(values, curve.x.size() / kReachShare);
  CurveRun line = run;
  for (std::size_t i = 0; i < line.size(); ++i) line[i].y = values[i];
  return line;
}

}  // namespace routing
