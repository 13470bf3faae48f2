#include "lab/tables/table_figure.h"

#include <algorithm>
#include <cmath>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kMargin = 24.0;
constexpr double kTitleHeight = 66.0;  // title, what was run, titles of the plots
constexpr double kLineHeight = 18.0;
constexpr double kPlotWidth = 300.0;
constexpr double kPlotGap = 56.0;
constexpr double kNameGap = 12.0;
constexpr double kNameRoom = 8.0;  // letters differ a little between the measure and the picture
constexpr double kFooting = 44.0;  // ticks and the legend
constexpr double kTicks = 18.0;    // without the legend
constexpr double kDotRadius = 3.6;
constexpr double kIntervalWidth = 1.6;
constexpr double kMostSqueezed = 4.0;
constexpr int kMostTicks = 6;

const TextStyle kSubtitle = {.size = 11.5, .colour = kFaintInk};
const TextStyle kPlotTitle = {.size = 12.0, .bold = true, .align = 0.5};
const TextStyle kName = {.size = 11.5, .align = 1.0};
const TextStyle kTickLabel = {.size = 11.0, .colour = kFaintInk, .align = 0.5};
constexpr Colour kBand = {0.97, 0.97, 0.97};

Colour colour_of(bool routed) {
  return group_colour(routed ? 0 : 1);
}

std::optional<double> baseline_of(const TableReport& report) {
  for (const TableRow& row : report.spec.rows) {
    if (row.id == report.spec.baseline) return row.paper_metric;
  }
  return std::nullopt;
}

// Rows with a selection of their own are no rows of --selection, but routed all the same. One cluster routes nothing.
bool has_routed_heads(const TableRow& row) {
  if (row.is_routed || row.is_literature) return row.is_routed;
  const ExperimentConfig config = row_config(row, {});
  return config.attention.content == PatternKind::routing && config.attention.content_heads > 0 &&
         config.routing.routing().clusters > 1;
}

bool has_differences(const TableReport& report) {
  if (report.spec.kind == TableKind::timed || !baseline_of(report)) return false;
  return std::any_of(report.rows.begin(), report.rows.end(), [](const ReportRow& row) { return row.difference; });
}

void fit_range(TablePlot& plot) {
  std::vector<double> means;
  for (const TablePlot::Mark& mark : plot.marks) means.push_back(mark.value);
  if (plot.differences) means.push_back(0.0);
  if (means.empty()) return;
  const auto [least, greatest] = std::minmax_element(means.begin(), means.end());
  AxisRange range{*least, *greatest};
  const double usual = std::abs(*greatest) > 0.0 ? 0.02 * std::abs(*greatest) : 0.02;
  const bool single = !(range.high - range.low > 0.0);
  const double spread = single ? usual : range.high - range.low;
  // Around a lone value there is room, so that its last digits do not look like differences.
  if (single) range = {range.low - spread, range.high + spread};
  const AxisRange widest{range.low - kMostSqueezed * spread, range.high + kMostSqueezed * spread};
  for (const TablePlot::Mark& mark : plot.marks) {
    range.low = std::min(range.low, std::max(mark.value - mark.half_width, widest.low));
    range.high = std::max(range.high, std::min(mark.value + mark.half_width, widest.high));
  }
  const double room = 0.05 * std::max(range.high - range.low, spread);
  range = {range.low - room, range.high + room};
  plot.step = round_step(range.high - range.low, kMostTicks);
  plot.range = rounded_outwards(range, plot.step);
}

double finite_or_zero(double value) {
  return std::isfinite(value) ? value : 0.0;
}

class TableDrawing {
 public:
  TableDrawing(const TableReport& report, const TablePicture& picture, double names)
      : report_(report), picture_(picture), names_(names) {}

  double width() const { return left_of(has_paper() ? 1 : 0) + kPlotWidth + kMargin; }
  double height() const { return bottom() + (has_both_kinds() ? kFooting : kTicks) + kMargin; }

  void draw(cairo_t* context) const {
    const double room = width() - 2.0 * kMargin;
    draw_text(context, report_.spec.title, kMargin, kMargin + 12.0,
              shrunk_to_fit(context, report_.spec.title, kTitle, room));
    std::string about = has_paper() ? "paper: " + report_.spec.source : "";
    if (report_.terms) about += (about.empty() ? "ours: " : "; ours: ") + terms_text(*report_.terms);
    if (has_intervals()) about += "; bars are 95 % intervals";
    draw_text(context, about, kMargin, kMargin + 30.0, shrunk_to_fit(context, about, kSubtitle, room));
    draw_names(context);
    draw_plot(context, picture_.ours, left_of(0));
    if (has_paper()) draw_plot(context, picture_.paper, left_of(1));
    if (has_both_kinds()) draw_legend(context);
  }

 private:
  bool has_paper() const { return !picture_.paper.marks.empty(); }
  bool has_intervals() const {
    return std::any_of(picture_.ours.marks.begin(), picture_.ours.marks.end(),
                       [](const TablePlot::Mark& mark) { return mark.half_width > 0.0; });
  }
  bool has_both_kinds() const {
    const auto has = [&](bool routed) {
      const auto is_it = [&](const TablePlot::Mark& mark) { return mark.routed == routed; };
      return std::any_of(picture_.ours.marks.begin(), picture_.ours.marks.end(), is_it) ||
             std::any_of(picture_.paper.marks.begin(), picture_.paper.marks.end(), is_it);
    };
    return has(true) && has(false);
  }

  double left_of(int plot) const { return kMargin + names_ + kNameGap + plot * (kPlotWidth + kPlotGap); }
  double top() const { return kMargin + kTitleHeight; }
  double bottom() const { return top() + kLineHeight * static_cast<double>(picture_.names.size()); }
  double middle_of(std::size_t line) const { return top() + kLineHeight * (static_cast<double>(line) + 0.5); }

  void draw_names(cairo_t* context) const {
    for (std::size_t line = 0; line < picture_.names.size(); ++line) {
      if (line % 2 == 0) {
        set_colour(context, kBand);
        cairo_rectangle(context, kMargin, middle_of(line) - 0.5 * kLineHeight, width() - 2.0 * kMargin, kLineHeight);
        cairo_fill(context);
      }
      draw_text(context, picture_.names[line], kMargin + names_, middle_of(line) + kHalfCapital, kName);
    }
  }

  void draw_plot(cairo_t* context, const TablePlot& plot, double left) const {
    const auto x_of = [&](double value) {
      const double share = (value - plot.range.low) / (plot.range.high - plot.range.low);
      return left + kPlotWidth * std::clamp(share, 0.0, 1.0);
    };
    draw_text(context, plot.title, left + 0.5 * kPlotWidth, top() - 10.0,
              shrunk_to_fit(context, plot.title, kPlotTitle, kPlotWidth));
    for (const AxisTick& tick : ticks_of(plot.range, plot.step)) {
      const bool zero = plot.differences && std::abs(tick.value) < 1e-12;
      set_colour(context, zero ? kFaintInk : kGrid);
      cairo_set_line_width(context, 1.0);
      cairo_move_to(context, x_of(tick.value), top());
      cairo_line_to(context, x_of(tick.value), bottom());
      cairo_stroke(context);
      draw_text(context, tick.label, x_of(tick.value), bottom() + 15.0, kTickLabel);
    }
    for (const TablePlot::Mark& mark : plot.marks) {
      const double y = middle_of(mark.line);
      set_colour(context, colour_of(mark.routed));
      if (mark.half_width > 0.0) {
        cairo_set_line_width(context, kIntervalWidth);
        cairo_move_to(context, x_of(mark.value - mark.half_width), y);
        cairo_line_to(context, x_of(mark.value + mark.half_width), y);
        cairo_stroke(context);
      }
      cairo_new_path(context);
      cairo_arc(context, x_of(mark.value), y, kDotRadius, 0.0, 2.0 * M_PI);
      cairo_fill(context);
    }
  }

  void draw_legend(cairo_t* context) const {
    double x = kMargin + names_ + kNameGap;
    const double y = bottom() + kFooting - 6.0;
    for (const bool routed : {true, false}) {
      set_colour(context, colour_of(routed));
      cairo_new_path(context);
      cairo_arc(context, x + kDotRadius, y - kHalfCapital, kDotRadius, 0.0, 2.0 * M_PI);
      cairo_fill(context);
      const std::string text = routed ? "routed heads" : "none routed";
      draw_text(context, text, x + 12.0, y, kSubtitle);
      x += 30.0 + text_width(context, text, kSubtitle);
    }
  }

  const TableReport& report_;
  const TablePicture& picture_;
  double names_;
};

}  // namespace

TablePicture table_picture(const TableReport& report) {
  TablePicture picture;
  const bool differences = has_differences(report);
  const std::string unit = report.spec.metric.name + (differences ? ", minus " + report.spec.baseline : std::string());
  picture.ours = {.title = "ours: " + unit, .differences = differences};
  picture.paper = {.title = "the paper: " + unit, .differences = differences};
  for (const ReportRow& row : report.rows) {
    const TableRow& printed = report.spec.rows[row.row];
    const std::optional<MeanInterval>& shown = differences ? row.difference : row.metric;
    // A second line with another selection has no figure of its own in the paper.
    const bool is_paper = row.identity == printed.id && printed.paper_metric;
    if (!shown && !is_paper) continue;
    const std::size_t line = picture.names.size();
    picture.names.push_back(row.identity);
    if (shown) {
      picture.ours.marks.push_back({line, shown->mean, finite_or_zero(shown->half_width), has_routed_heads(printed)});
    }
    if (is_paper) {
      const double base = differences ? *baseline_of(report) : 0.0;
      picture.paper.marks.push_back({line, *printed.paper_metric - base, 0.0, has_routed_heads(printed)});
    }
  }
  fit_range(picture.ours);
  fit_range(picture.paper);
  return picture;
}

void write_table_figure(const TableReport& report, const std::filesystem::path& path) {
  const FigureFormat format = figure_format(path);
  const TablePicture picture = table_picture(report);
  const TableDrawing drawing(report, picture, widest_text(picture.names, kName) + kNameRoom);
  write_figure(path, format, {.width = drawing.width(), .height = drawing.height(), .title = report.spec.title},
               [&](cairo_t* context) { drawing.draw(context); });
}

}  // namespace routing
