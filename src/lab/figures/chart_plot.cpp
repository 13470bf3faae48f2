#include "lab/figures/chart_plot.h"

#include <algorithm>

namespace routing {

void draw_axes(cairo_t* context, const CurvesLayout& plot, const TextStyle& tick_label) {
  cairo_set_line_width(context, 1.0);
  TextStyle style = tick_label;
  style.align = 0.5;
  for (const AxisTick& tick : plot.x_ticks) {
    const double x = plot.x_of(tick.value);
    stroke_line(context, {x, plot.top}, {x, plot.bottom}, kGrid);
    draw_text(context, tick.label, x, plot.bottom + 5.0 + style.size, style);
  }
  style.align = 1.0;
  for (const AxisTick& tick : plot.y_ticks) {
    const double y = plot.y_of(tick.value);
    stroke_line(context, {plot.left, y}, {plot.right, y}, kGrid);
    draw_text(context, tick.label, plot.left - 7.0, y + kHalfCapital * style.size / TextStyle{}.size, style);
  }
  stroke_line(context, {plot.left, plot.bottom}, {plot.right, plot.bottom}, kAxis);
}

void clip_to_plot(cairo_t* context, const CurvesLayout& plot, double room) {
  cairo_rectangle(context, plot.left - room, plot.top - room, plot.right - plot.left + 2.0 * room,
                  plot.bottom - plot.top + 2.0 * room);
  cairo_clip(context);
}

void draw_reference(cairo_t* context, const CurvesLayout& plot, double value) {
  if (!is_shown(value)) return;
  const double dashes[] = {5.0, 4.0};
  cairo_set_dash(context, dashes, 2, 0.0);
  cairo_set_line_width(context, 1.2);
  stroke_line(context, {plot.left, plot_y(plot, value)}, {plot.right, plot_y(plot, value)}, kAxis);
  cairo_set_dash(context, nullptr, 0, 0.0);
}

double plot_y(const CurvesLayout& plot, double value) {
  const double span = plot.y.high - plot.y.low;
  return plot.y_of(std::clamp(value, plot.y.low - 9.0 * span, plot.y.high + 9.0 * span));
}

void stroke_curve(cairo_t* context, const CurvesLayout& plot, const CurveStretch& stretch, const LineStyle& style) {
  cairo_new_path(context);
  for (const CurvePoint& point : stretch) cairo_line_to(context, plot.x_of(point.x), plot_y(plot, point.y));
  cairo_set_line_join(context, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(context, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_width(context, style.width);
  set_colour(context, style.colour);
  cairo_stroke(context);
  cairo_set_line_cap(context, CAIRO_LINE_CAP_BUTT);
}

}  // namespace routing
