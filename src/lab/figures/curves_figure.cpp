#include "lab/figures/curves_figure.h"

#include "lab/figures/curve_stretches.h"
#include "lab/measure/statistics.h"
#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <memory>

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

constexpr int kXSteps = 7;
constexpr int kYSteps = 8;

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

AxisRange x_range(const CurveStretch& points) {
  std::vector<double> values;
  for (const CurvePoint& point : points) values.push_back(point.x);
  AxisRange range = range_of(values);
  // Steps that are counted from 1, or logged every tenth, still start at the corner.
  if (range.low > 0.0 && range.low <= 0.2 * range.high) range.low = 0.0;
  return range;
}

AxisRange y_range(const CurvesFigure& figure, const CurveStretch& points, const AxisRange& x) {
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
  if (!later.empty()) {
    const double usual = std::max(quantile(later, kShare), highest_reference);
    const double span = usual - range.low;
    if (span > 0.0 && range.high - range.low > kMostSqueezed * span) range.high = usual + kRoomAbove * span;
  }
  return rounded_outwards(range, round_step(range.high - range.low, kYSteps));
}

void validate(const CurvesFigure& figure) {
  for (const Curve& curve : figure.curves) {
    require<InputError>(curve.x.size() == curve.y.size(), "curve '", curve.name, "': x has ", curve.x.size(),
                        " values, but y has ", curve.y.size(), "; each point needs both");
  }
}

double widest_name(const CurvesFigure& figure) {
  // Only to measure letters.
  const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1), &cairo_surface_destroy);
  const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> context(cairo_create(surface.get()), &cairo_destroy);
  double width = 0.0;
  for (const Curve& curve : figure.curves) width = std::max(width, text_width(context.get(), curve.name, kName));
  for (const ReferenceLine& line : figure.references) {
    width = std::max(width, text_width(context.get(), line.name, kReferenceName));
  }
  return std::min(width, kMaxNameWidth);
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
    draw_axes();
    cairo_save(context_);
    clip_to_plot(kLineWidth / 2.0);
    for (const ReferenceLine& line : figure_.references) draw_reference(line);
    for (std::size_t i = 0; i < figure_.curves.size(); ++i) draw_pale_line(figure_.curves[i], colour_of(i));
    for (std::size_t i = 0; i < figure_.curves.size(); ++i) draw_main_line(figure_.curves[i], colour_of(i));
    cairo_restore(context_);
    cairo_save(context_);
    clip_to_plot(kDotRadius + kDotRim);
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

  // Far outside values are pulled nearer, still outside: cairo's coordinates are small integers inside.
  double y_of(double value) const {
    const double span = layout_.y.high - layout_.y.low;
    return layout_.y_of(std::clamp(value, layout_.y.low - 9.0 * span, layout_.y.high + 9.0 * span));
  }

  // With room for what lies on the border itself.
  void clip_to_plot(double room) const {
    cairo_rectangle(context_, layout_.left - room, layout_.top - room, layout_.right - layout_.left + 2.0 * room,
                    layout_.bottom - layout_.top + 2.0 * room);
    cairo_clip(context_);
  }

  void draw_axes() const {
    cairo_set_line_width(context_, 1.0);
    TextStyle style = kTickLabel;
    style.align = 0.5;
    for (const AxisTick& tick : ticks_of(layout_.x, round_step(layout_.x.high - layout_.x.low, kXSteps))) {
      const double x = layout_.x_of(tick.value);
      stroke_line({x, layout_.top}, {x, layout_.bottom}, kGrid);
      draw_text(context_, tick.label, x, layout_.bottom + 16.0, style);
    }
    style.align = 1.0;
    for (const AxisTick& tick : ticks_of(layout_.y, round_step(layout_.y.high - layout_.y.low, kYSteps))) {
      const double y = layout_.y_of(tick.value);
      stroke_line({layout_.left, y}, {layout_.right, y}, kGrid);
      draw_text(context_, tick.label, layout_.left - 7.0, y + kHalfCapital, style);
    }
    stroke_line({layout_.left, layout_.bottom}, {layout_.right, layout_.bottom}, kAxis);
  }

  void draw_reference(const ReferenceLine& line) const {
    if (!is_shown(line.y)) return;
    const double dashes[] = {5.0, 4.0};
    cairo_set_dash(context_, dashes, 2, 0.0);
    cairo_set_line_width(context_, 1.2);
    stroke_line({layout_.left, y_of(line.y)}, {layout_.right, y_of(line.y)}, kAxis);
    cairo_set_dash(context_, nullptr, 0, 0.0);
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
      names.push_back({figure_.curves[i].name, {layout_.x_of(end.x), y_of(end.y)}, style});
    }
    for (const ReferenceLine& line : figure_.references) {
      if (!is_shown(line.y) || line.name.empty()) continue;
      names.push_back({line.name, {layout_.right, y_of(line.y)}, kReferenceName});
    }
    std::vector<double> wanted;
    for (const Name& name : names) wanted.push_back(std::clamp(name.end.y, layout_.top, layout_.bottom));
    const std::vector<double> places = spread_apart(wanted, kNameGap, {layout_.top, layout_.bottom});
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Name& name = names[i];
      cairo_set_line_width(context_, 0.8);
      stroke_line({layout_.right + 3.0, wanted[i]}, {layout_.right + kNameOffset - 4.0, places[i]},
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

  void stroke_line(const CurvePoint& from, const CurvePoint& to, const Colour& colour) const {
    cairo_move_to(context_, from.x, from.y);
    cairo_line_to(context_, to.x, to.y);
    set_colour(context_, colour);
    cairo_stroke(context_);
  }

  void stroke(const CurveStretch& stretch, const Colour& colour, double line_width) const {
    for (const CurvePoint& point : stretch) cairo_line_to(context_, layout_.x_of(point.x), y_of(point.y));
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(context_, CAIRO_LINE_CAP_ROUND);
    cairo_set_line_width(context_, line_width);
    set_colour(context_, colour);
    cairo_stroke(context_);
    cairo_set_line_cap(context_, CAIRO_LINE_CAP_BUTT);
  }

  void fill_dot(const CurvePoint& point, const Colour& colour, double radius) const {
    draw_dot(context_, {layout_.x_of(point.x), y_of(point.y), radius}, colour);
  }

  const CurvesFigure& figure_;
  const CurvesLayout& layout_;
  cairo_t* context_;
};

}  // namespace

CurvesLayout curves_layout(const CurvesFigure& figure) {
  validate(figure);
  const CurveStretch points = all_points(figure);
  CurvesLayout layout;
  layout.width = kWidth;
  layout.height = std::max(kHeight, kNameGap * number_of_names(figure) + 2.0 * kMargin + kTitleHeight + kFooting);
  layout.left = kMargin + kTickWidth;
  layout.right = kWidth - kMargin - kNameOffset - widest_name(figure);
  layout.top = kMargin + kTitleHeight;
  layout.bottom = layout.height - kMargin - kFooting;
  layout.x = x_range(points);
  layout.y = y_range(figure, points, layout.x);
  layout.above = static_cast<std::size_t>(
      std::count_if(points.begin(), points.end(), [&](const CurvePoint& point) { return point.y > layout.y.high; }));
  return layout;
}

void write_curves_figure(const CurvesFigure& figure, const std::filesystem::path& path) {
  write_figure<CurvesDrawing>(path, figure, curves_layout, figure.title);
}

}  // namespace routing
