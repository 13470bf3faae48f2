#include "lab/runs/span_figure.h"

#include "lab/figures/chart_plot.h"
#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kMargin = 24.0;
constexpr double kTitleHeight = 62.0;  // title, and the names of both charts
constexpr double kTickWidth = 36.0;
constexpr double kFooting = 40.0;  // tick labels, and what the x axis is
constexpr double kPlotHeight = 250.0;
constexpr double kCurvesWidth = 330.0;
constexpr double kGap = 34.0;
constexpr double kLeastBars = 220.0;  // the name of the chart has its room
constexpr double kMostBar = 22.0;
constexpr double kLeastBar = 5.0;
constexpr double kWishedBars = 560.0;  // many heads come closer before the figure grows
constexpr double kBarShare = 0.78;     // of its place that a bar takes
constexpr double kLayerGap = 14.0;

const TextStyle kChartName = {.size = 12.5, .bold = true};
const TextStyle kTickLabel = {.size = 10.5, .colour = kFaintInk};

void validate(const SpanFigure& figure) {
  require<InputError>(!figure.heads.empty(), "figure '", figure.title, "' has 0 heads; give it at least one");
  for (const SpanSeries& head : figure.heads) {
    require<InputError>(!head.spans.empty() && head.spans.size() == head.steps.size(), "figure '", figure.title,
                        "': ", head.attention, " head ", head.head, " has ", head.spans.size(), " spans and ",
                        head.steps.size(), " steps; give it as many of both, at least one");
  }
}

class SpanDrawing {
 public:
  SpanDrawing(const SpanFigure& figure, const SpanLayout& layout, cairo_t* context)
      : figure_(figure), layout_(layout), plot_(layout.over_steps), context_(context) {}

  void draw() const {
    const double width = layout_.width - 2.0 * kMargin;
    draw_text(context_, figure_.title, kMargin, kMargin + 14.0, shrunk_to_fit(context_, figure_.title, kTitle, width));
    draw_bars();
    draw_curves();
  }

 private:
  Colour colour_of(std::size_t head) const { return group_colour(static_cast<std::int32_t>(layout_.layer_of[head])); }

  // The chart of bars has the y axis of the other one, and the heads' places as x.
  CurvesLayout bars() const {
    CurvesLayout bars = plot_;
    bars.left = kMargin + kTickWidth;
    bars.right = plot_.left - kGap - kTickWidth;
    bars.x_ticks = {};
    return bars;
  }

  void draw_bars() const {
    const CurvesLayout chart = bars();
    const std::string name = "span of each head at the end, in tokens";
    draw_text(context_, name, kMargin, plot_.top - 14.0,
              shrunk_to_fit(context_, name, kChartName, chart.right - kMargin));
    draw_axes(context_, chart, kTickLabel);
    for (std::size_t head = 0; head < figure_.heads.size(); ++head) {
      const double top = plot_.y_of(figure_.heads[head].spans.back());
      set_colour(context_, colour_of(head));
      // A span of 0 is a line that can be seen.
      cairo_rectangle(context_, layout_.x[head], std::min(top, plot_.bottom - 1.0), layout_.bar,
                      std::max(1.0, plot_.bottom - top));
      cairo_fill(context_);
    }
    if (layout_.shows_limit) draw_reference(context_, chart, figure_.limit);
    draw_layer_names();
  }

  void draw_layer_names() const {
    TextStyle style = kTickLabel;
    style.align = 0.5;
    for (std::size_t layer = 0; layer < layout_.layers.size(); ++layer) {
      const auto first = std::find(layout_.layer_of.begin(), layout_.layer_of.end(), layer) - layout_.layer_of.begin();
      const auto count = std::count(layout_.layer_of.begin(), layout_.layer_of.end(), layer);
      const double left = layout_.x[static_cast<std::size_t>(first)];
      const double right = layout_.x[static_cast<std::size_t>(first + count - 1)] + layout_.bar;
      // "layer 11" where there is room, 11 where there is not.
      std::string text = layout_.layers[layer];
      const double room = right - left + kLayerGap;
      if (text_width(context_, text, style) > room && text.starts_with("layer ")) text = text.substr(6);
      draw_text(context_, text, (left + right) / 2.0, plot_.bottom + 17.0, shrunk_to_fit(context_, text, style, room));
    }
  }

  void draw_curves() const {
    draw_text(context_, "over the run, in the colour of the layer", plot_.left - kTickWidth, plot_.top - 14.0,
              kChartName);
    draw_axes(context_, plot_, kTickLabel);
    TextStyle style = kTickLabel;
    style.align = 0.5;
    draw_text(context_, "step", (plot_.left + plot_.right) / 2.0, plot_.bottom + 32.0, style);
    for (std::size_t head = 0; head < figure_.heads.size(); ++head) {
      for (const CurveStretch& stretch : stretches_of(layout_.curves.curves[head])) {
        stroke_curve(context_, plot_, stretch, {.width = 1.4, .colour = colour_of(head)});
      }
    }
    if (layout_.shows_limit) draw_reference(context_, plot_, figure_.limit);
  }

  const SpanFigure& figure_;
  const SpanLayout& layout_;
  const CurvesLayout& plot_;
  cairo_t* context_;
};

}  // namespace

SpanLayout span_layout(const SpanFigure& figure) {
  validate(figure);
  SpanLayout layout;
  for (const SpanSeries& head : figure.heads) {
    auto layer = std::find(layout.layers.begin(), layout.layers.end(), head.attention);
    if (layer == layout.layers.end()) layer = layout.layers.insert(layer, head.attention);
    layout.layer_of.push_back(static_cast<std::size_t>(layer - layout.layers.begin()));
    layout.curves.curves.push_back({.name = "", .x = head.steps, .y = head.spans, .smoothing = 0.0});
  }
  double largest = 0.0;
  for (const SpanSeries& head : figure.heads) {
    largest = std::max(largest, *std::max_element(head.spans.begin(), head.spans.end()));
  }
  constexpr double kFarAbove = 3.0;
  layout.shows_limit = figure.limit > 0.0 && figure.limit <= kFarAbove * largest;
  if (layout.shows_limit) layout.curves.references.push_back({"", figure.limit});
  layout.over_steps = curves_axes(layout.curves, {.x_steps = 5, .y_steps = 6, .hold_everything = true});
  CurvesLayout& plot = layout.over_steps;
  plot.y.low = 0.0;
  plot.y.high = std::max(plot.y.high, 1.0);  // where all spans are 0
  plot.y_ticks = ticks_of(plot.y, round_step(plot.y.high, 6));
  const auto heads = static_cast<double>(figure.heads.size());
  const double gaps = kLayerGap * static_cast<double>(layout.layers.size());
  const double pitch = std::clamp((kWishedBars - gaps) / heads, kLeastBar, kMostBar);
  layout.bar = pitch * kBarShare;
  double x = kMargin + kTickWidth + kLayerGap / 2.0;
  for (std::size_t head = 0; head < figure.heads.size(); ++head) {
    if (head > 0 && layout.layer_of[head] != layout.layer_of[head - 1]) x += kLayerGap;
    layout.x.push_back(x);
    x += pitch;
  }
  plot.left = std::max(x + kLayerGap / 2.0, kMargin + kTickWidth + kLeastBars) + kGap + kTickWidth;
  plot.right = plot.left + kCurvesWidth;
  plot.top = kMargin + kTitleHeight;
  plot.bottom = plot.top + kPlotHeight;
  layout.width = plot.right + kMargin;
  layout.height = plot.bottom + kFooting + kMargin / 2.0;
  return layout;
}

void write_span_figure(const SpanFigure& figure, const std::filesystem::path& path) {
  write_figure<SpanDrawing>(path, figure, span_layout, figure.title);
}

}  // namespace routing
