// Curves over a training run: what is lower is usually better, and what happens late matters most.
#pragma once

#include "lab/figures/chart_axis.h"
#include "lab/figures/figure_canvas.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// Points with a value that is not finite, or beyond kLargestShown in size, are left out; a line has a gap there.
struct Curve {
  std::string name;  // stands at the right, in the colour of the curve
  std::vector<double> x = {};
  std::vector<double> y = {};
  bool points = false;  // dots instead of a line
  // Of a line: how much exponential_mean() keeps, 0 for none. Not given: smoothed() from kSmoothFrom values on.
  std::optional<double> smoothing = std::nullopt;
  std::int32_t colour = -1;  // of group_colour(); below 0: by its place
};

// A dashed horizontal line.
struct ReferenceLine {
  std::string name;
  double y = 0.0;
};

struct CurvesFigure {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves;
  std::vector<ReferenceLine> references;
  AxisScale x_scale = AxisScale::linear;  // every x of a doubling one is above 0
};

inline constexpr double kLargestShown = 1e30;

// A line of at least so many values is drawn twice, unless it says itself: thin and pale as it is, thick and smoothed
// on top.
inline constexpr std::size_t kSmoothFrom = 40;

// Where everything stands, in units of the drawing from the top left corner.
//
// The y axis holds all values and references, unless the greatest would squeeze the rest: then it ends a little above
// the 98th percentile of what comes after the first tenth of the x axis, and `above` says how many values are cut off.
struct CurvesLayout {
  double width = 0.0;
  double height = 0.0;
  double left = 0.0;  // of the plot
  double right = 0.0;
  double top = 0.0;
  double bottom = 0.0;
  AxisRange x;
  AxisRange y;
  AxisScale x_scale = AxisScale::linear;
  std::vector<AxisTick> x_ticks = {};
  std::vector<AxisTick> y_ticks = {};  // the first and the last are the ends of the axis
  std::size_t above = 0;

  double x_of(double value) const;
  double y_of(double value) const { return bottom - (bottom - top) * (value - y.low) / (y.high - y.low); }
};

// Ranges, ticks and `above` for a plot of another figure, which then places it.
struct AxesOptions {
  int x_steps = 7;  // at most so many
  int y_steps = 8;
  bool hold_everything = false;  // no value is cut off
  // What values can be: no axis goes further for roundness.
  AxisRange y_limits = {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
};
CurvesLayout curves_axes(const CurvesFigure& figure, const AxesOptions& options);

CurvesLayout curves_layout(const CurvesFigure& figure);

// Draws the figure to a .png or .svg file; the extension decides. Curves without a value are not shown. Names have
// their room, however many there are: the figure grows.
//
// Throws  InputError   x and y of a curve have different lengths, or an x is not above 0 on a doubling axis
//         ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_curves_figure(const CurvesFigure& figure, const std::filesystem::path& path);

}  // namespace routing
