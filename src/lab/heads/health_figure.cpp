#include "lab/heads/health_figure.h"

#include "lab/figures/curve_stretches.h"
#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kMargin = 24.0;
constexpr double kTitleHeight = 62.0;  // title and legend
constexpr std::size_t kColumns = 4;
constexpr double kChartWidth = 232.0;  // with its tick labels
constexpr double kChartHeight = 158.0;
constexpr double kChartGap = 22.0;
constexpr double kChartTitle = 22.0;
constexpr double kTickWidth = 34.0;
constexpr double kFooting = 22.0;
constexpr std::size_t kMostBarColumns = 8;
constexpr double kBarHeight = 56.0;
constexpr double kBarTitle = 18.0;
constexpr double kBarGap = 14.0;
constexpr double kHeadsTitle = 44.0;
constexpr double kLineWidth = 1.6;
constexpr double kDotRadius = 2.6;
constexpr int kXSteps = 4;
constexpr int kYSteps = 4;

const TextStyle kLegend = {.size = 11.5, .bold = true};
const TextStyle kNote = {.size = 10.5, .colour = kFaintInk};
const TextStyle kChartName = {.size = 11.5, .bold = true};
const TextStyle kTickLabel = {.size = 9.5, .colour = kFaintInk};

double sheet_width() {
  return 2.0 * kMargin + kColumns * kChartWidth + (kColumns - 1) * kChartGap;
}

double limit_of(const HealthFigure& figure, const std::string& key) {
  if (key == "occupancy_entropy_min" || key == "choice_entropy_min") return figure.limits.collapsed;
  if (key != "tau_drift" || figure.runs.size() != 1 || figure.runs[0].clusters == 0) return -1.0;
  return figure.limits.drift / static_cast<double>(figure.runs[0].clusters);
}

HealthLayout::Chart chart_of(const HealthFigure& figure, std::size_t measure) {
  HealthLayout::Chart chart{.measure = measure, .curves = {}, .run = {}, .plot = {}};
  const auto add = [&](std::size_t run, const std::vector<HealthSeries>& all, bool points) {
    if (measure >= all.size() || all[measure].empty()) return;
    chart.curves.curves.push_back({.name = "", .x = all[measure].steps, .y = all[measure].values, .points = points});
    chart.run.push_back(run);
  };
  const std::string& key = health_measures()[measure].key;
  for (std::size_t run = 0; run < figure.runs.size(); ++run) {
    add(run, figure.runs[run].history.training, false);
    // Evaluation moves and revives nothing: its zeros would only mislead.
    if (key != "tau_drift" && key != "revived") add(run, figure.runs[run].history.evaluation, true);
  }
  if (chart.curves.curves.empty()) return chart;
  if (const double limit = limit_of(figure, key); limit >= 0.0) chart.curves.references.push_back({"", limit});
  chart.plot = curves_layout(chart.curves);
  const bool is_share = key != "memberships" && key != "commitment_loss";
  if (is_share && chart.plot.y.low < 0.0) chart.plot.y.low = 0.0;
  return chart;
}

class HealthDrawing {
 public:
  HealthDrawing(const HealthFigure& figure, const HealthLayout& layout, cairo_t* context)
      : figure_(figure), layout_(layout), context_(context) {}

  void draw() const {
    draw_heading();
    for (const HealthLayout::Chart& chart : layout_.charts) draw_chart(chart);
    std::size_t title = 0;
    for (const HealthFigure::Run& run : figure_.runs) {
      if (!run.heads.empty()) {
        const double width = layout_.width - 2.0 * kMargin;
        const TextStyle style = shrunk_to_fit(context_, run.heads_title, {.size = 13.0, .bold = true}, width);
        draw_text(context_, run.heads_title, kMargin, layout_.head_titles[title++], style);
      }
    }
    for (const HealthLayout::Bars& bars : layout_.bars) draw_bars(bars);
  }

 private:
  static Colour colour_of(std::size_t run) { return group_colour(static_cast<std::int32_t>(run)); }

  void draw_heading() const {
    const double width = layout_.width - 2.0 * kMargin;
    draw_text(context_, figure_.title, kMargin, kMargin + 14.0, shrunk_to_fit(context_, figure_.title, kTitle, width));
    double x = kMargin;
    for (std::size_t run = 0; figure_.runs.size() > 1 && run < figure_.runs.size(); ++run) {
      TextStyle style = kLegend;
      style.colour = mix(colour_of(run), kInk, 0.15);
      draw_text(context_, figure_.runs[run].name, x, kMargin + 36.0, style);
      x += text_width(context_, figure_.runs[run].name, style) + 18.0;
    }
    if (!layout_.charts.empty()) {
      const std::string note = "lines: training steps   dots: held-out data   dashed: limit of the verdict";
      draw_text(context_, note, x, kMargin + 36.0, shrunk_to_fit(context_, note, kNote, layout_.width - kMargin - x));
    }
  }

  void stroke_line(const CurvePoint& from, const CurvePoint& to, const Colour& colour) const {
    cairo_move_to(context_, from.x, from.y);
    cairo_line_to(context_, to.x, to.y);
    set_colour(context_, colour);
    cairo_stroke(context_);
  }

  void draw_axes(const HealthLayout::Chart& chart) const {
    const CurvesLayout& plot = chart.plot;
    cairo_set_line_width(context_, 1.0);
    TextStyle style = kTickLabel;
    style.align = 0.5;
    for (const AxisTick& tick : ticks_of(plot.x, round_step(plot.x.high - plot.x.low, kXSteps))) {
      stroke_line({plot.x_of(tick.value), plot.top}, {plot.x_of(tick.value), plot.bottom}, kGrid);
      draw_text(context_, tick.label, plot.x_of(tick.value), plot.bottom + 13.0, style);
    }
    style.align = 1.0;
    for (const AxisTick& tick : ticks_of(plot.y, round_step(plot.y.high - plot.y.low, kYSteps))) {
      stroke_line({plot.left, plot.y_of(tick.value)}, {plot.right, plot.y_of(tick.value)}, kGrid);
      draw_text(context_, tick.label, plot.left - 5.0, plot.y_of(tick.value) + 3.5, style);
    }
    stroke_line({plot.left, plot.bottom}, {plot.right, plot.bottom}, kAxis);
  }

  void draw_chart(const HealthLayout::Chart& chart) const {
    const CurvesLayout& plot = chart.plot;
    const std::string& name = health_measures()[chart.measure].name;
    draw_text(context_, name, plot.left - kTickWidth, plot.top - 8.0,
              shrunk_to_fit(context_, name, kChartName, kChartWidth));
    draw_axes(chart);
    cairo_save(context_);
    cairo_rectangle(context_, plot.left - kDotRadius, plot.top - kDotRadius, plot.right - plot.left + 2.0 * kDotRadius,
                    plot.bottom - plot.top + 2.0 * kDotRadius);
    cairo_clip(context_);
    for (const ReferenceLine& line : chart.curves.references) {
      const double dashes[] = {4.0, 3.0};
      cairo_set_dash(context_, dashes, 2, 0.0);
      stroke_line({plot.left, plot.y_of(line.y)}, {plot.right, plot.y_of(line.y)}, kAxis);
      cairo_set_dash(context_, nullptr, 0, 0.0);
    }
    for (std::size_t i = 0; i < chart.curves.curves.size(); ++i) draw_curve(chart, i);
    cairo_restore(context_);
  }

  void draw_curve(const HealthLayout::Chart& chart, std::size_t index) const {
    const Curve& curve = chart.curves.curves[index];
    const Colour colour = colour_of(chart.run[index]);
    for (const CurveStretch& stretch : stretches_of(curve)) {
      if (curve.points || stretch.size() == 1) {
        for (const CurvePoint& point : stretch) draw_dot(chart.plot, point, colour);
        continue;
      }
      if (is_smoothed(curve)) stroke(chart.plot, stretch, mix(kBackground, colour, 0.35), 0.8);
      stroke(chart.plot, main_line(curve, stretch, chart.plot.y), colour, kLineWidth);
    }
  }

  // Far outside values are pulled nearer, still outside: cairo's coordinates are small integers inside.
  static double y_of(const CurvesLayout& plot, double value) {
    const double span = plot.y.high - plot.y.low;
    return plot.y_of(std::clamp(value, plot.y.low - 9.0 * span, plot.y.high + 9.0 * span));
  }

  void draw_dot(const CurvesLayout& plot, const CurvePoint& point, const Colour& colour) const {
    for (const bool rim : {true, false}) {
      routing::draw_dot(context_, {plot.x_of(point.x), y_of(plot, point.y), kDotRadius + (rim ? 1.0 : 0.0)},
                        rim ? kBackground : mix(colour, kInk, 0.35));
    }
  }

  void stroke(const CurvesLayout& plot, const CurveStretch& stretch, const Colour& colour, double line_width) const {
    for (const CurvePoint& point : stretch) cairo_line_to(context_, plot.x_of(point.x), y_of(plot, point.y));
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_width(context_, line_width);
    set_colour(context_, colour);
    cairo_stroke(context_);
    cairo_set_line_width(context_, 1.0);
  }

  void draw_bars(const HealthLayout::Bars& bars) const {
    const HeadHealth& head = figure_.runs[bars.run].heads[bars.head];
    const std::string name = head.attention + " head " + std::to_string(head.head);
    draw_text(context_, name, bars.left, bars.top - 5.0,
              shrunk_to_fit(context_, name, {.size = 10.0, .bold = true}, bars.width));
    draw_text(context_, fmt::format("{:.2f}", head.entropy()), bars.left + bars.width, bars.top - 5.0,
              {.size = 9.5, .colour = kFaintInk, .align = 1.0});
    const double step = bars.width / static_cast<double>(head.members.size());
    for (std::size_t c = 0; c < head.members.size(); ++c) {
      const double height = bars.height * head.members[c] / bars.most;
      cairo_rectangle(context_, bars.left + step * static_cast<double>(c), bars.top + bars.height - height,
                      std::max(step - (step > 4.0 ? 1.0 : 0.0), 0.5), height);
    }
    set_colour(context_, colour_of(bars.run));
    cairo_fill(context_);
    const double fair = bars.top + bars.height -
                        bars.height * head.memberships() / static_cast<double>(head.members.size()) / bars.most;
    cairo_set_line_width(context_, 1.0);
    const double dashes[] = {3.0, 3.0};
    cairo_set_dash(context_, dashes, 2, 0.0);
    stroke_line({bars.left, fair}, {bars.left + bars.width, fair}, kInk);
    cairo_set_dash(context_, nullptr, 0, 0.0);
    stroke_line({bars.left, bars.top + bars.height}, {bars.left + bars.width, bars.top + bars.height}, kAxis);
  }

  const HealthFigure& figure_;
  const HealthLayout& layout_;
  cairo_t* context_;
};

// The charts of the measures, in rows; returns where the next thing may begin.
double place_charts(const HealthFigure& figure, HealthLayout& layout, double top) {
  for (std::size_t measure = 0; measure < health_measures().size(); ++measure) {
    HealthLayout::Chart chart = chart_of(figure, measure);
    if (chart.curves.curves.empty()) continue;
    const std::size_t column = layout.charts.size() % kColumns;
    const std::size_t row = layout.charts.size() / kColumns;
    const double left = kMargin + (kChartWidth + kChartGap) * static_cast<double>(column);
    chart.plot.left = left + kTickWidth;
    chart.plot.right = left + kChartWidth;
    chart.plot.top = top + (kChartHeight + kChartGap) * static_cast<double>(row) + kChartTitle;
    chart.plot.bottom = chart.plot.top + kChartHeight - kChartTitle - kFooting;
    layout.charts.push_back(std::move(chart));
  }
  const std::size_t rows = (layout.charts.size() + kColumns - 1) / kColumns;
  return top + (kChartHeight + kChartGap) * static_cast<double>(rows);
}

// As many as the attention with the most routed heads has, if they fit.
std::size_t bar_columns(const std::vector<HeadHealth>& heads) {
  std::size_t most = 1;
  std::size_t count = 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    count = i > 0 && heads[i].attention == heads[i - 1].attention ? count + 1 : 1;
    most = std::max(most, count);
  }
  return std::min(most, kMostBarColumns);
}

double place_bars(const HealthFigure& figure, std::size_t run, HealthLayout& layout, double top) {
  const std::vector<HeadHealth>& heads = figure.runs[run].heads;
  if (heads.empty()) return top;
  layout.head_titles.push_back(top + kHeadsTitle - 24.0);
  top += kHeadsTitle;
  const std::size_t columns = bar_columns(heads);
  const double width =
      (layout.width - 2.0 * kMargin - static_cast<double>(columns - 1) * kBarGap) / static_cast<double>(columns);
  // One scale for all heads of a run, so that they can be compared.
  double most = 1e-9;
  for (const HeadHealth& head : heads) most = std::max(most, head.largest());
  // An attention begins a row of its own, so that heads stand under each other.
  std::size_t column = 0;
  for (std::size_t head = 0; head < heads.size(); ++head) {
    const bool new_row = head > 0 && (column == columns || heads[head].attention != heads[head - 1].attention);
    if (new_row) {
      column = 0;
      top += kBarTitle + kBarHeight + kBarGap;
    }
    layout.bars.push_back({.run = run,
                           .head = head,
                           .left = kMargin + (width + kBarGap) * static_cast<double>(column),
                           .top = top + kBarTitle,
                           .width = width,
                           .height = kBarHeight,
                           .most = most});
    ++column;
  }
  return top + kBarTitle + kBarHeight + kBarGap;
}

}  // namespace

HealthLayout health_layout(const HealthFigure& figure) {
  HealthLayout layout;
  layout.width = sheet_width();
  double top = place_charts(figure, layout, kMargin + kTitleHeight);
  for (std::size_t run = 0; run < figure.runs.size(); ++run) top = place_bars(figure, run, layout, top);
  layout.height = top + kMargin;
  require<InputError>(!layout.charts.empty() || !layout.bars.empty(), "figure '", figure.title,
                      "': no run has anything of routing to draw");
  return layout;
}

void write_health_figure(const HealthFigure& figure, const std::filesystem::path& path) {
  write_figure<HealthDrawing>(path, figure, health_layout, figure.title);
}

}  // namespace routing
