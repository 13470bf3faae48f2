#include "lab/figures/curve_stretches.h"

#include <algorithm>
#include <cmath>

namespace routing {

bool is_shown(double value) {
  return std::isfinite(value) && std::abs(value) <= kLargestShown;
}

std::vector<CurveStretch> stretches_of(const Curve& curve) {
  std::vector<CurveStretch> stretches;
  bool in_stretch = false;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const bool shown = is_shown(curve.x[i]) && is_shown(curve.y[i]);
    if (shown && !in_stretch) stretches.emplace_back();
    if (shown) stretches.back().push_back({curve.x[i], curve.y[i]});
    in_stretch = shown;
  }
  return stretches;
}

CurveStretch all_points(const CurvesFigure& figure) {
  CurveStretch points;
  for (const Curve& curve : figure.curves) {
    for (const CurveStretch& stretch : stretches_of(curve)) points.insert(points.end(), stretch.begin(), stretch.end());
  }
  return points;
}

bool is_smoothed(const Curve& curve) {
  if (curve.points) return false;
  return curve.smoothing ? *curve.smoothing > 0.0 : curve.x.size() >= kSmoothFrom;
}

CurveStretch main_line(const Curve& curve, const CurveStretch& stretch, const AxisRange& y) {
  if (!is_smoothed(curve)) return stretch;
  // Longer curves are smoothed over more places: what is seen is then equally smooth.
  constexpr std::size_t kReachShare = 24;
  std::vector<double> values;
  values.reserve(stretch.size());
  for (const CurvePoint& point : stretch) values.push_back(std::min(point.y, y.high + (y.high - y.low)));
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const AxisRange range{*least, *greatest};
  values =
      curve.smoothing ? exponential_mean(values, *curve.smoothing) : smoothed(values, curve.x.size() / kReachShare);
  CurveStretch line = stretch;
  for (std::size_t i = 0; i < line.size(); ++i) line[i].y = std::clamp(values[i], range.low, range.high);
  return line;
}

}  // namespace routing
