#include "lab/figures/curves_figure.h"

#include "lab/figures/chart_plot.h"
#include "lab/measure/statistics.h"
#include "routing/core/error.h"

#include <algorithm>
#include <cmath>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kWidth = 760.0;
constexpr double kHeight = 440.0;
constexpr double kMargin = 24.0;
constexpr double kTitleHeight = 52.0;  // title, and the name of the y axis under it
constexpr double kTickWidth = 34.0;
constexpr double kFooting = 36.0;  // tick labels and the name of the x axis
constexpr double kMaxNameWidth = 200.0;
constexpr double kNameOffset = 16.0;  // of a name from the plot; the leader line runs here
constexpr double kNameGap = 16.0;
constexpr double kLineWidth = 2.2;
constexpr double kPaleLineWidth = 1.0;
constexpr double kDotRadius = 3.6;
constexpr double kDotRim = 1.2;

constexpr int kMostDoublings = 14;

const TextStyle kAxisName = {.size = 11.5, .colour = kFaintInk};
const TextStyle kTickLabel = {.size = 11.0, .colour = kFaintInk};
const TextStyle kName = {.size = 12.0, .bold = true};
const TextStyle kReferenceName = {.size = 11.5, .colour = kFaintInk};

AxisRange range_of(const std::vector<double>& values) {
  if (values.empty()) return {0.0, 1.0};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  // Values that differ only in their last digits count as equal: no tick could tell them apart.
  if (*high - *low > 1e-9 * std::max(std::abs(*low), std::abs(*high))) return {*low, *high};
  const double around = *low == 0.0 ? 0.5 : 0.1 * std::abs(*low);
  return {*low - around, *high + around};
}

AxisRange x_range(const CurveStretch& points, AxisScale scale) {
  std::vector<double> values;
  for (const CurvePoint& point : points) values.push_back(scale == AxisScale::doubling ? std::log2(point.x) : point.x);
  AxisRange range = range_of(values);
  if (scale == AxisScale::doubling) return {std::exp2(range.low), std::exp2(range.high)};
  // Steps that are counted from 1, or logged every tenth, still start at the corner.
  if (range.low > 0.0 && range.low <= 0.2 * range.high) range.low = 0.0;
  return range;
}

AxisRange y_range(const CurvesFigure& figure, const CurveStretch& points, const AxisRange& x, bool hold_everything) {
  constexpr double kLaterFrom = 0.1;
  constexpr double kShare = 0.98;
  constexpr double kMostSqueezed = 4.0;
  constexpr double kRoomAbove = 0.25;
  std::vector<double> all;
  std::vector<double> later;
  for (const ReferenceLine& line : figure.references) {
    if (is_shown(line.y)) all.push_back(line.y);
  }
  const double highest_reference = all.empty() ? -kLargestShown : *std::max_element(all.begin(), all.end());
  for (const CurvePoint& point : points) {
    all.push_back(point.y);
    if (point.x >= x.low + kLaterFrom * (x.high - x.low)) later.push_back(point.y);
  }
  AxisRange range = range_of(all);
  if (!later.empty() && !hold_everything) {
    const double usual = std::max(quantile(later, kShare), highest_reference);
    const double span = usual - range.low;
    if (span > 0.0 && range.high - range.low > kMostSqueezed * span) range.high = usual + kRoomAbove * span;
  }
  return range;
}

void validate(const CurvesFigure& figure) {
  for (const Curve& curve : figure.curves) {
    require<InputError>(curve.x.size() == curve.y.size(), "curve '", curve.name, "': x has ", curve.x.size(),
                        " values, but y has ", curve.y.size(), "; each point needs both");
    for (const double x : curve.x) {
      require<InputError>(figure.x_scale == AxisScale::linear || x > 0.0, "curve '", curve.name, "': x is ", x,
                          ", but an axis that doubles has only values above 0");
    }
  }
}

double widest_name(const CurvesFigure& figure) {
  std::vector<std::string> curves;
  std::vector<std::string> references;
  for (const Curve& curve : figure.curves) curves.push_back(curve.name);
  for (const ReferenceLine& line : figure.references) references.push_back(line.name);
  return std::min(std::max(widest_text(curves, kName), widest_text(references, kReferenceName)), kMaxNameWidth);
}

double number_of_names(const CurvesFigure& figure) {
  const auto named = [](const auto& each) { return !each.name.empty(); };
  return static_cast<double>(std::count_if(figure.curves.begin(), figure.curves.end(), named) +
                             std::count_if(figure.references.begin(), figure.references.end(), named));
}

class CurvesDrawing {
 public:
  CurvesDrawing(const CurvesFigure& figure, const CurvesLayout& layout, cairo_t* context)
      : figure_(figure), layout_(layout), context_(context) {}

  void draw() const {
    draw_axes(context_, layout_, kTickLabel);
    cairo_save(context_);
    clip_to_plot(context_, layout_, kLineWidth / 2.0);
    for (const ReferenceLine& line : figure_.references) draw_reference(context_, layout_, line.y);
    for (std::size_t i = 0; i < figure_.curves.size(); ++i) draw_pale_line(figure_.curves[i], colour_of(i));
    for (std::size_t i = 0; i < figure_.curves.size(); ++i) draw_main_line(figure_.curves[i], colour_of(i));
    cairo_restore(context_);
    cairo_save(context_);
    clip_to_plot(context_, layout_, kDotRadius + kDotRim);
    for (std::size_t i = 0; i < figure_.curves.size(); ++i) draw_dots(figure_.curves[i], colour_of(i));
    cairo_restore(context_);
    draw_names();
    draw_texts();
  }

 private:
  Colour colour_of(std::size_t curve) const {
    const std::int32_t own = figure_.curves[curve].colour;
    return group_colour(own >= 0 ? own : static_cast<std::int32_t>(curve));
  }

  void draw_pale_line(const Curve& curve, const Colour& colour) const {
    if (!is_smoothed(curve)) return;
    for (const CurveStretch& stretch : stretches_of(curve))
      stroke(stretch, mix(kBackground, colour, 0.38), kPaleLineWidth);
  }

  void draw_main_line(const Curve& curve, const Colour& colour) const {
    if (curve.points) return;
    for (const CurveStretch& stretch : stretches_of(curve)) {
      stroke(main_line(curve, stretch, layout_.y), colour, kLineWidth);
      if (stretch.size() == 1) fill_dot(stretch.front(), colour, kLineWidth);
    }
  }

  void draw_dots(const Curve& curve, const Colour& colour) const {
    if (!curve.points) return;
    for (const CurveStretch& stretch : stretches_of(curve)) {
      for (const CurvePoint& point : stretch) {
        // A rim of background sets the dot off from the lines it lies on.
        fill_dot(point, kBackground, kDotRadius + kDotRim);
        fill_dot(point, colour, kDotRadius);
      }
    }
  }

  // At the right, beside the end of each line; names that would overlap move apart and a leader shows whose they are.
  void draw_names() const {
    struct Name {
      const std::string& text;
      CurvePoint end;  // in units of the drawing
      TextStyle style;
    };
    std::vector<Name> names;
    for (std::size_t i = 0; i < figure_.curves.size(); ++i) {
      const std::vector<CurveStretch> stretches = stretches_of(figure_.curves[i]);
      if (stretches.empty() || figure_.curves[i].name.empty()) continue;
      const CurvePoint end = main_line(figure_.curves[i], stretches.back(), layout_.y).back();
      TextStyle style = kName;
      style.colour = mix(colour_of(i), kInk, 0.15);
      names.push_back({figure_.curves[i].name, {layout_.x_of(end.x), plot_y(layout_, end.y)}, style});
    }
    for (const ReferenceLine& line : figure_.references) {
      if (!is_shown(line.y) || line.name.empty()) continue;
      names.push_back({line.name, {layout_.right, plot_y(layout_, line.y)}, kReferenceName});
    }
    std::vector<double> wanted;
    for (const Name& name : names) wanted.push_back(std::clamp(name.end.y, layout_.top, layout_.bottom));
    const std::vector<double> places = spread_apart(wanted, kNameGap, {layout_.top, layout_.bottom});
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Name& name = names[i];
      cairo_set_line_width(context_, 0.8);
      stroke_line(context_, {layout_.right + 3.0, wanted[i]}, {layout_.right + kNameOffset - 4.0, places[i]},
                  mix(kBackground, name.style.colour, 0.55));
      const TextStyle fitting = shrunk_to_fit(context_, name.text, name.style, kMaxNameWidth);
      draw_text(context_, name.text, layout_.right + kNameOffset, places[i] + kHalfCapital, fitting);
    }
  }

  void draw_texts() const {
    const double width = layout_.width - 2.0 * kMargin;
    draw_text(context_, figure_.title, kMargin, kMargin + 14.0, shrunk_to_fit(context_, figure_.title, kTitle, width));
    draw_text(context_, figure_.y_label, kMargin, layout_.top - 13.0, kAxisName);
    TextStyle style = kAxisName;
    style.align = 0.5;
    draw_text(context_, figure_.x_label, (layout_.left + layout_.right) / 2.0, layout_.bottom + 35.0, style);
    style.align = 1.0;
    if (layout_.above > 0) {
      const std::string note = std::to_string(layout_.above) + (layout_.above == 1 ? " value" : " values") + " above";
      draw_text(context_, note, layout_.right, layout_.top - 13.0, style);
    }
    if (all_points(figure_).empty()) {
      style.align = 0.5;
      draw_text(context_, "no values yet", (layout_.left + layout_.right) / 2.0, (layout_.top + layout_.bottom) / 2.0,
                style);
    }
  }

  void stroke(const CurveStretch& stretch, const Colour& colour, double line_width) const {
    stroke_curve(context_, layout_, stretch, {.width = line_width, .colour = colour});
  }

  void fill_dot(const CurvePoint& point, const Colour& colour, double radius) const {
    draw_dot(context_, {layout_.x_of(point.x), plot_y(layout_, point.y), radius}, colour);
  }

  const CurvesFigure& figure_;
  const CurvesLayout& layout_;
  cairo_t* context_;
};

}  // namespace

double CurvesLayout::x_of(double value) const {
  const auto place = [&](double at) { return x_scale == AxisScale::doubling ? std::log2(at) : at; };
  return left + (right - left) * (place(value) - place(x.low)) / (place(x.high) - place(x.low));
}

CurvesLayout curves_axes(const CurvesFigure& figure, const AxesOptions& options) {
  validate(figure);
  const CurveStretch points = all_points(figure);
  CurvesLayout axes;
  axes.x_scale = figure.x_scale;
  axes.x = x_range(points, figure.x_scale);
  axes.x_ticks = figure.x_scale == AxisScale::doubling
                     ? doubling_ticks(axes.x, kMostDoublings)
                     : ticks_of(axes.x, round_step(axes.x.high - axes.x.low, options.x_steps));
  const AxisRange y = y_range(figure, points, axes.x, options.hold_everything);
  const double step = round_step(y.high - y.low, options.y_steps);
  axes.y = rounded_outwards(y, step);
  const AxisRange& limits = options.y_limits;
  const auto beyond = [&](auto outside) { return std::any_of(points.begin(), points.end(), outside); };
  if (!beyond([&](const CurvePoint& point) { return point.y < limits.low; })) {
    axes.y.low = std::max(axes.y.low, limits.low);
  }
  if (!beyond([&](const CurvePoint& point) { return point.y > limits.high; })) {
    axes.y.high = std::min(axes.y.high, limits.high);
  }
  axes.y_ticks = ticks_of(axes.y, step);
  axes.above = static_cast<std::size_t>(
      std::count_if(points.begin(), points.end(), [&](const CurvePoint& point) { return point.y > axes.y.high; }));
  return axes;
}

CurvesLayout curves_layout(const CurvesFigure& figure) {
  CurvesLayout layout = curves_axes(figure, {});
  layout.width = kWidth;
  layout.height = std::max(kHeight, kNameGap * number_of_names(figure) + 2.0 * kMargin + kTitleHeight + kFooting);
  layout.left = kMargin + kTickWidth;
  layout.right = kWidth - kMargin - kNameOffset - widest_name(figure);
  layout.top = kMargin + kTitleHeight;
  layout.bottom = layout.height - kMargin - kFooting;
  return layout;
}

void write_curves_figure(const CurvesFigure& figure, const std::filesystem::path& path) {
  write_figure<CurvesDrawing>(path, figure, curves_layout, figure.title);
}

}  // namespace routing
