#include "lab/heads/health_figure.h"

#include "lab/figures/chart_plot.h"
#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kMargin = 24.0;
constexpr double kTitleHeight = 78.0;  // title, names of the runs, what the marks mean
constexpr double kTitleWithoutNames = 62.0;
constexpr std::size_t kColumns = 4;
constexpr double kChartWidth = 232.0;  // with its tick labels
constexpr double kChartHeight = 178.0;
constexpr double kChartGap = 22.0;
constexpr double kChartTitle = 28.0;
constexpr double kTickWidth = 36.0;
constexpr double kFooting = 34.0;  // tick labels and the name of the x axis
constexpr std::size_t kMostBarColumns = 8;
constexpr double kBarHeight = 56.0;
constexpr double kBarTitle = 18.0;
constexpr double kBarGap = 14.0;
constexpr double kHeadsTitle = 44.0;
constexpr double kLineWidth = 1.6;
constexpr double kDotRadius = 2.6;
constexpr double kDenseDotRadius = 1.5;  // of so many that larger ones would hide the line and each other

const TextStyle kLegend = {.size = 11.5, .bold = true};
const TextStyle kNote = {.size = 10.5, .colour = kFaintInk};
const TextStyle kChartName = {.size = 11.5, .bold = true};
const TextStyle kTickLabel = {.size = 9.5, .colour = kFaintInk};
const TextStyle kFacts = {.size = 9.5, .colour = kFaintInk, .align = 1.0};

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
  // What a chart cannot show is not known to be harmless, so nothing is cut off.
  AxesOptions axes{.x_steps = 4, .y_steps = 4, .hold_everything = true};
  axes.y_limits.low = 0.0;
  for (const char* share : {"occupancy", "entropy", "fraction"}) {
    if (key.find(share) != std::string::npos) axes.y_limits.high = 1.0;
  }
  chart.plot = curves_axes(chart.curves, axes);
  return chart;
}

bool has_names(const HealthFigure& figure) {
  return figure.runs.size() > 1;
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
    if (has_names(figure_)) draw_run_names(width);
    if (layout_.charts.empty()) return;
    const std::string note = "lines: training steps   dots: held-out data   dashed: limit of the verdict";
    draw_text(context_, note, kMargin, kMargin + (has_names(figure_) ? 52.0 : 36.0), kNote);
  }

  // In one line; many or long names are written smaller.
  void draw_run_names(double room) const {
    constexpr double kGap = 18.0;
    double all = 0.0;
    for (const HealthFigure::Run& run : figure_.runs) all += text_width(context_, run.name, kLegend) + kGap;
    TextStyle style = kLegend;
    const double shrink = std::min(1.0, room / all);
    style.size *= shrink;
    double x = kMargin;
    for (std::size_t run = 0; run < figure_.runs.size(); ++run) {
      style.colour = mix(colour_of(run), kInk, 0.15);
      draw_text(context_, figure_.runs[run].name, x, kMargin + 36.0, style);
      x += text_width(context_, figure_.runs[run].name, style) + kGap * shrink;
    }
  }

  void draw_chart(const HealthLayout::Chart& chart) const {
    const CurvesLayout& plot = chart.plot;
    const std::string& name = health_measures()[chart.measure].name;
    draw_text(context_, name, plot.left - kTickWidth, plot.top - 14.0,
              shrunk_to_fit(context_, name, kChartName, kChartWidth));
    draw_axes(context_, plot, kTickLabel);
    TextStyle style = kTickLabel;
    style.align = 0.5;
    draw_text(context_, "step", (plot.left + plot.right) / 2.0, plot.bottom + 28.0, style);
    for (const ReferenceLine& line : chart.curves.references) draw_reference(context_, plot, line.y);
    for (std::size_t i = 0; i < chart.curves.curves.size(); ++i) draw_curve(chart, i);
  }

  void draw_curve(const HealthLayout::Chart& chart, std::size_t index) const {
    const Curve& curve = chart.curves.curves[index];
    const Colour colour = colour_of(chart.run[index]);
    for (const CurveStretch& stretch : stretches_of(curve)) {
      if (curve.points || stretch.size() == 1) {
        const bool dense = curve.x.size() >= kSmoothFrom;
        for (const CurvePoint& point : stretch) draw_mark(chart.plot, point, colour, dense);
        continue;
      }
      if (is_smoothed(curve)) {
        stroke_curve(context_, chart.plot, stretch, {.width = 0.8, .colour = mix(kBackground, colour, 0.35)});
      }
      stroke_curve(context_, chart.plot, main_line(curve, stretch, chart.plot.y),
                   {.width = kLineWidth, .colour = colour});
    }
  }

  void draw_mark(const CurvesLayout& plot, const CurvePoint& point, const Colour& colour, bool dense) const {
    const Dot dot{plot.x_of(point.x), plot.y_of(point.y), dense ? kDenseDotRadius : kDotRadius};
    // A rim sets few dots off from the lines they lie on; those of many would cover what is there.
    if (!dense) draw_dot(context_, {dot.x, dot.y, dot.radius + 1.0}, kBackground);
    draw_dot(context_, dot, mix(colour, kInk, 0.35));
  }

  void draw_bars(const HealthLayout::Bars& bars) const {
    const HeadHealth& head = figure_.runs[bars.run].heads[bars.head];
    const std::string name = head.attention + " head " + std::to_string(head.head);
    const std::string facts =
        fmt::format("entropy {:.2f}, largest {:.{}f}", head.entropy(), head.largest(), head.largest() < 100.0 ? 1 : 0);
    const TextStyle facts_style = shrunk_to_fit(context_, facts, kFacts, 0.55 * bars.width);
    draw_text(context_, facts, bars.left + bars.width, bars.top - 5.0, facts_style);
    draw_text(context_, name, bars.left, bars.top - 5.0,
              shrunk_to_fit(context_, name, {.size = 10.0, .bold = true},
                            0.95 * bars.width - text_width(context_, facts, facts_style)));
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
    stroke_line(context_, {bars.left, fair}, {bars.left + bars.width, fair}, kInk);
    cairo_set_dash(context_, nullptr, 0, 0.0);
    stroke_line(context_, {bars.left, bars.top + bars.height}, {bars.left + bars.width, bars.top + bars.height}, kAxis);
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
  double top = place_charts(figure, layout, kMargin + (has_names(figure) ? kTitleHeight : kTitleWithoutNames));
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
