#include "lab/leak/leak_figure.h"

#include "lab/leak/leak_text.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kWidth = 760.0;
constexpr double kMargin = 24.0;
constexpr double kTitleHeight = 66.0;  // title, and the legend under it
constexpr double kNames = 92.0;        // at the left, of selections and ticks
constexpr double kSeriesNames = 150.0;
constexpr double kRowHeight = 46.0;
constexpr double kRowStep = 12.0;  // between the three of a row
constexpr double kFooting = 40.0;
constexpr double kGap = 34.0;
constexpr double kQuartersHeight = 210.0;
constexpr double kSeriesStep = 12.0;
constexpr double kDotRadius = 4.0;

const TextStyle kHeading = {.size = 12.5, .bold = true};
const TextStyle kName = {.size = 12.0, .bold = true};
const TextStyle kFaint = {.size = 11.0, .colour = kFaintInk};

LeakPoint point_of(const MeanInterval& interval, const LeakUnit& unit) {
  return {interval.mean * unit.factor, interval.low() * unit.factor, interval.high() * unit.factor};
}

// Whole steps around all intervals.
AxisRange range_around(const std::vector<LeakPoint>& points, std::optional<double> also, int steps) {
  AxisRange range{points.front().low, points.front().high};
  for (const LeakPoint& point : points) {
    range.low = std::min(range.low, point.low);
    range.high = std::max(range.high, point.high);
  }
  if (also) range = {std::min(range.low, *also), std::max(range.high, *also)};
  if (!(range.high - range.low > 1e-9)) range = {range.low - 0.05, range.high + 0.05};
  return rounded_outwards(range, round_step(range.high - range.low, steps));
}

std::vector<LeakSeries> series_of(const SelectionLeak& selection, const LeakUnit& unit) {
  std::vector<LeakSeries> result;
  for (const std::size_t measure : {std::size_t{1}, std::size_t{2}}) {
    if ((measure == 1 ? selection.future_replaced : selection.prefix_only).holds()) continue;
    LeakSeries series{.name = selection.selection + ", " + kLeakMeasures[measure], .measure = measure};
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      if (!selection.quarters[quarter]) continue;
      const LeakNumbers& numbers = *selection.quarters[quarter];
      series.quarters.push_back(quarter);
      series.points.push_back(point_of(measure == 1 ? numbers.leak : numbers.prefix_cost, unit));
    }
    if (!series.points.empty()) result.push_back(series);
  }
  return result;
}

class LeakDrawing {
 public:
  LeakDrawing(const LeakReport& report, const LeakLayout& layout, cairo_t* context)
      : report_(report), layout_(layout), context_(context), unit_(leak_unit(report.tokens)) {}

  void draw() const {
    draw_text(context_, "What a likelihood owes to the future", kMargin, kMargin + 14.0, kTitle);
    draw_legend();
    draw_rows();
    if (!layout_.series.empty()) draw_quarters();
  }

 private:
  void draw_legend() const {
    double x = kMargin;
    const double y = kMargin + 36.0;
    for (std::size_t measure = 0; measure < kLeakMeasures.size(); ++measure) {
      dot(x + kDotRadius, y - kHalfCapital, leak_colour(measure));
      draw_text(context_, kLeakMeasures[measure], x + 14.0, y, kFaint);
      x += 28.0 + text_width(context_, kLeakMeasures[measure], kFaint);
    }
    draw_text(context_, "bars: 95 % intervals over windows", x, y, kFaint);
  }

  void draw_rows() const {
    TextStyle tick_style = kFaint;
    tick_style.align = 0.5;
    cairo_set_line_width(context_, 1.0);
    for (const AxisTick& tick : ticks_of(layout_.values, round_step(layout_.values.high - layout_.values.low, 8))) {
      const double x = layout_.x_of(tick.value);
      line(x, layout_.rows_top, x, layout_.rows_bottom, kGrid);
      draw_text(context_, tick.label, x, layout_.rows_bottom + 16.0, tick_style);
    }
    line(layout_.left, layout_.rows_bottom, layout_.right, layout_.rows_bottom, kAxis);
    draw_text(context_, unit_.name, (layout_.left + layout_.right) / 2.0, layout_.rows_bottom + 33.0, tick_style);
    for (std::size_t row = 0; row < layout_.rows.size(); ++row) {
      const double middle = layout_.y_of_row(row, 1);
      TextStyle name = shrunk_to_fit(context_, layout_.rows[row], kName, kNames - 10.0);
      name.align = 1.0;
      draw_text(context_, layout_.rows[row], layout_.left - 10.0, middle + kHalfCapital, name);
      for (std::size_t measure = 0; measure < kLeakMeasures.size(); ++measure) {
        const LeakPoint& point = layout_.row_points[row][measure];
        const double y = layout_.y_of_row(row, measure);
        cairo_set_line_width(context_, 2.0);
        line(layout_.x_of(point.low), y, layout_.x_of(point.high), y, mix(kBackground, leak_colour(measure), 0.6));
        dot(layout_.x_of(point.value), y, leak_colour(measure));
      }
    }
  }

  void draw_quarters() const {
    draw_text(context_, "Lost without the real future, by quarter of the window (" + unit_.name + ")", kMargin,
              layout_.quarters_top - 14.0, kHeading);
    TextStyle style = kFaint;
    style.align = 1.0;
    cairo_set_line_width(context_, 1.0);
    for (const AxisTick& tick : ticks_of(layout_.losses, round_step(layout_.losses.high - layout_.losses.low, 6))) {
      const double y = layout_.y_of_loss(tick.value);
      line(layout_.left, y, layout_.right, y, std::abs(tick.value) < 1e-12 ? kAxis : kGrid);
      draw_text(context_, tick.label, layout_.left - 7.0, y + kHalfCapital, style);
    }
    style.align = 0.5;
    const auto length = static_cast<double>(report_.sequence_length);
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      const double x = layout_.left + (layout_.right - layout_.left) * (static_cast<double>(quarter) + 0.5) / kQuarters;
      const auto first = static_cast<std::int64_t>(std::ceil(length * static_cast<double>(quarter) / kQuarters));
      const auto last = static_cast<std::int64_t>(std::ceil(length * static_cast<double>(quarter + 1) / kQuarters)) - 1;
      draw_text(context_, std::to_string(first) + " to " + std::to_string(last), x, layout_.quarters_bottom + 16.0,
                style);
    }
    draw_text(context_, "position in the window", (layout_.left + layout_.right) / 2.0, layout_.quarters_bottom + 33.0,
              style);
    for (std::size_t i = 0; i < layout_.series.size(); ++i) draw_series(i);
    draw_series_names();
  }

  void draw_series(std::size_t index) const {
    const LeakSeries& series = layout_.series[index];
    const Colour pale = mix(kBackground, series.colour, 0.6);
    cairo_set_line_width(context_, 1.2);
    for (std::size_t k = 0; k + 1 < series.points.size(); ++k) {
      line(layout_.x_of_quarter(index, series.quarters[k]), layout_.y_of_loss(series.points[k].value),
           layout_.x_of_quarter(index, series.quarters[k + 1]), layout_.y_of_loss(series.points[k + 1].value), pale);
    }
    cairo_set_line_width(context_, 2.0);
    for (std::size_t k = 0; k < series.points.size(); ++k) {
      const double x = layout_.x_of_quarter(index, series.quarters[k]);
      line(x, layout_.y_of_loss(series.points[k].low), x, layout_.y_of_loss(series.points[k].high), pale);
      dot(x, layout_.y_of_loss(series.points[k].value), series.colour);
    }
  }

  void draw_series_names() const {
    std::vector<std::size_t> order(layout_.series.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto end = [&](std::size_t i) { return layout_.y_of_loss(layout_.series[i].points.back().value); };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return end(a) < end(b); });
    std::vector<double> wanted;
    for (const std::size_t i : order) wanted.push_back(end(i));
    const std::vector<double> places = spread_apart(wanted, 15.0, {layout_.quarters_top, layout_.quarters_bottom});
    for (std::size_t k = 0; k < order.size(); ++k) {
      const LeakSeries& series = layout_.series[order[k]];
      TextStyle style = kFaint;
      style.colour = mix(series.colour, kInk, 0.15);
      draw_text(context_, series.name, layout_.right + 10.0, places[k] + kHalfCapital,
                shrunk_to_fit(context_, series.name, style, kSeriesNames - 10.0));
    }
  }

  void line(double x0, double y0, double x1, double y1, const Colour& colour) const {
    cairo_move_to(context_, x0, y0);
    cairo_line_to(context_, x1, y1);
    set_colour(context_, colour);
    cairo_stroke(context_);
  }
  void dot(double x, double y, const Colour& colour) const { draw_dot(context_, {x, y, kDotRadius}, colour); }

  const LeakReport& report_;
  const LeakLayout& layout_;
  cairo_t* context_;
  LeakUnit unit_;
};

}  // namespace

Colour leak_colour(std::size_t measure) {
  return group_colour(static_cast<std::int32_t>(measure));
}

double LeakLayout::y_of_row(std::size_t row, std::size_t measure) const {
  return rows_top + kRowHeight * (static_cast<double>(row) + 0.5) + kRowStep * (static_cast<double>(measure) - 1.0);
}

double LeakLayout::x_of_quarter(std::size_t series_index, std::size_t quarter) const {
  const double middle = left + (right - left) * (static_cast<double>(quarter) + 0.5) / static_cast<double>(kQuarters);
  return middle + kSeriesStep * (static_cast<double>(series_index) - (static_cast<double>(series.size()) - 1.0) / 2.0);
}

LeakLayout leak_layout(const LeakReport& report) {
  const LeakUnit unit = leak_unit(report.tokens);
  LeakLayout layout;
  std::vector<LeakPoint> values;
  std::vector<LeakPoint> losses;
  for (const SelectionLeak& selection : report.selections) {
    layout.rows.push_back(selection.selection);
    layout.row_points.push_back({point_of(selection.all.teacher_forced, unit),
                                 point_of(selection.all.future_replaced, unit),
                                 point_of(selection.all.prefix_only, unit)});
    values.insert(values.end(), layout.row_points.back().begin(), layout.row_points.back().end());
    for (LeakSeries& series : series_of(selection, unit)) {
      const auto before = std::count_if(layout.series.begin(), layout.series.end(),
                                        [&](const LeakSeries& other) { return other.measure == series.measure; });
      series.colour = mix(kInk, leak_colour(series.measure), std::pow(0.5, static_cast<double>(before)));
      losses.insert(losses.end(), series.points.begin(), series.points.end());
      layout.series.push_back(std::move(series));
    }
  }
  layout.width = kWidth;
  layout.left = kMargin + kNames;
  layout.right = kWidth - kMargin - (layout.series.empty() ? 0.0 : kSeriesNames);
  layout.rows_top = kMargin + kTitleHeight - 14.0;
  layout.rows_bottom = layout.rows_top + kRowHeight * static_cast<double>(layout.rows.size());
  layout.values = range_around(values, std::nullopt, 8);
  layout.height = layout.rows_bottom + kFooting + kMargin;
  if (!layout.series.empty()) {
    layout.quarters_top = layout.rows_bottom + kFooting + kGap;
    layout.quarters_bottom = layout.quarters_top + kQuartersHeight;
    layout.losses = range_around(losses, 0.0, 6);
    layout.height = layout.quarters_bottom + kFooting + kMargin;
  }
  return layout;
}

void write_leak_figure(const LeakReport& report, const std::filesystem::path& path) {
  write_figure<LeakDrawing>(path, report, leak_layout, "What a likelihood owes to the future");
}

}  // namespace routing
