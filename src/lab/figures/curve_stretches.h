// The points of a curve that a figure shows, cut where values are missing.
#pragma once

#include "lab/figures/curves_figure.h"

#include <vector>

namespace routing {

using CurvePoint = Point;

// Neighbours without a gap between them; never empty.
using CurveStretch = std::vector<CurvePoint>;

// Finite and not beyond kLargestShown.
bool is_shown(double value);

std::vector<CurveStretch> stretches_of(const Curve& curve);

// The points of all curves.
CurveStretch all_points(const CurvesFigure& figure);

// Whether the curve is drawn twice, as it is and smoothed.
bool is_smoothed(const Curve& curve);

// A stretch of the curve as its thick line shows it. Where it is smoothed, values far above the plot count as just out
// of sight, so that one of them does not lift its whole neighbourhood. A smoothed line never leaves the range of the
// values that it smooths.
CurveStretch main_line(const Curve& curve, const CurveStretch& stretch, const AxisRange& y);

}  // namespace routing
