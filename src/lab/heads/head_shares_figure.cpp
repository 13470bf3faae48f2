#include "lab/heads/head_shares_figure.h"

#include "lab/figures/chart_axis.h"
#include "routing/core/error.h"

#include <algorithm>
#include <numbers>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kMargin = 24.0;
constexpr double kMinWidth = 660.0;  // the legend in one line
constexpr double kTitleHeight = 34.0;
constexpr double kLegendHeight = 26.0;
constexpr double kPanelHeading = 30.0;
constexpr double kPanelHeight = 120.0;
constexpr double kPanelGap = 12.0;
constexpr double kFooting = 34.0;  // names of the layers
constexpr double kTickWidth = 30.0;
constexpr double kMostHeadPitch = 40.0;  // few heads need not fill the sheet
constexpr double kLeastHeadPitch = 9.0;
constexpr double kLayerGap = 22.0;
constexpr double kUsualHeadPitch = 22.0;
constexpr double kWishedWidth = 900.0;  // many heads come closer before the figure grows beyond it
constexpr double kDotRadius = 4.0;
constexpr double kRingRadius = 4.6;
constexpr double kHalfDash = 5.0;

const TextStyle kPanelTitle = {.size = 12.5, .bold = true};
const TextStyle kTickLabel = {.size = 10.5, .colour = kFaintInk, .align = 1.0};
const TextStyle kLegend = {.size = 11.0};

void validate(const HeadSharesFigure& figure) {
  require<InputError>(!figure.panels.empty() && !figure.kinds.empty(), "figure '", figure.title,
                      "' has no panels or no layers; give it at least one of each");
  for (const HeadSharesFigure::Panel& panel : figure.panels) {
    require<InputError>(panel.layers.size() == figure.kinds.size(), "panel '", panel.title, "': ", panel.layers.size(),
                        " layers, but the figure has ", figure.kinds.size());
    for (std::size_t layer = 0; layer < figure.kinds.size(); ++layer) {
      require<InputError>(panel.layers[layer].size() == figure.kinds[layer].size(), "panel '", panel.title, "': layer ",
                          layer, " has ", panel.layers[layer].size(), " heads, but the figure has ",
                          figure.kinds[layer].size());
    }
  }
}

class SharesDrawing {
 public:
  SharesDrawing(const HeadSharesFigure& figure, const HeadSharesLayout& layout, cairo_t* context)
      : figure_(figure), layout_(layout), context_(context) {}

  void draw() const {
    const double width = layout_.width - 2.0 * kMargin;
    draw_text(context_, figure_.title, kMargin, kMargin + 14.0, shrunk_to_fit(context_, figure_.title, kTitle, width));
    draw_legend();
    for (std::size_t panel = 0; panel < figure_.panels.size(); ++panel) draw_panel(panel);
    draw_layer_names();
  }

 private:
  Colour colour_of(const std::string& kind) const {
    const auto found = std::find(layout_.kinds.begin(), layout_.kinds.end(), kind);
    return group_colour(static_cast<std::int32_t>(found - layout_.kinds.begin()));
  }

  double left() const { return kMargin + kTickWidth; }
  double right() const { return layout_.width - kMargin; }

  void line(double x0, double y0, double x1, double y1) const {
    cairo_move_to(context_, x0, y0);
    cairo_line_to(context_, x1, y1);
    cairo_stroke(context_);
  }

  void dot(double x, double y, const Colour& colour) const { draw_dot(context_, {x, y, kDotRadius}, colour); }

  void ring(double x, double y) const {
    cairo_new_path(context_);
    cairo_arc(context_, x, y, kRingRadius, 0.0, 2.0 * std::numbers::pi);
    cairo_set_line_width(context_, 1.3);
    set_colour(context_, kInk);
    cairo_stroke(context_);
  }

  void dash(double x, double y) const {
    cairo_set_line_width(context_, 2.0);
    set_colour(context_, kAxis);
    line(x - kHalfDash, y, x + kHalfDash, y);
  }

  void draw_legend() const {
    const double y = kMargin + kTitleHeight + 4.0;
    double x = kMargin + kDotRadius;
    const auto name = [&](const std::string& text) {
      draw_text(context_, text, x + 9.0, y + kHalfCapital, kLegend);
      x += 9.0 + text_width(context_, text, kLegend) + 24.0;
    };
    for (const std::string& kind : layout_.kinds) {
      dot(x, y, colour_of(kind));
      name(figure_.dot_name + ", " + kind + " head");
    }
    ring(x, y);
    name(figure_.ring_name);
    dash(x, y);
    name(figure_.dash_name);
  }

  void draw_panel(std::size_t number) const {
    const HeadSharesFigure::Panel& panel = figure_.panels[number];
    draw_text(context_, panel.title, kMargin, layout_.top[number] - 14.0,
              shrunk_to_fit(context_, panel.title, kPanelTitle, right() - kMargin));
    cairo_set_line_width(context_, 1.0);
    for (const AxisTick& tick : ticks_of({0.0, 1.0}, 0.25)) {
      const double y = layout_.y_of(number, tick.value);
      set_colour(context_, tick.value == 0.0 ? kAxis : kGrid);
      line(left(), y, right(), y);
      draw_text(context_, tick.label, left() - 7.0, y + kHalfCapital, kTickLabel);
    }
    for (std::size_t layer = 0; layer < panel.layers.size(); ++layer) {
      for (std::size_t head = 0; head < panel.layers[layer].size(); ++head) {
        const HeadShare& share = panel.layers[layer][head];
        const double x = layout_.x[layer][head];
        dash(x, layout_.y_of(number, share.dash));
        dot(x, layout_.y_of(number, share.dot), colour_of(figure_.kinds[layer][head]));
        ring(x, layout_.y_of(number, share.ring));
      }
    }
  }

  void draw_layer_names() const {
    TextStyle style = kTickLabel;
    style.align = 0.5;
    for (std::size_t layer = 0; layer < layout_.x.size(); ++layer) {
      if (layout_.x[layer].empty()) continue;
      const double middle = (layout_.x[layer].front() + layout_.x[layer].back()) / 2.0;
      const double room = layout_.x[layer].back() - layout_.x[layer].front() + kLayerGap;
      const std::string text = "layer " + std::to_string(layer);
      draw_text(context_, text, middle, layout_.bottom.back() + 19.0, shrunk_to_fit(context_, text, style, room));
    }
  }

  const HeadSharesFigure& figure_;
  const HeadSharesLayout& layout_;
  cairo_t* context_;
};

}  // namespace

HeadSharesLayout head_shares_layout(const HeadSharesFigure& figure) {
  validate(figure);
  HeadSharesLayout layout;
  std::size_t heads = 0;
  for (const auto& layer : figure.kinds) {
    heads += layer.size();
    for (const std::string& kind : layer) {
      if (std::find(layout.kinds.begin(), layout.kinds.end(), kind) == layout.kinds.end()) layout.kinds.push_back(kind);
    }
  }
  const double gaps = kLayerGap * static_cast<double>(figure.kinds.size());
  const auto count = static_cast<double>(std::max<std::size_t>(1, heads));
  const double filling = std::min(kMostHeadPitch, (kMinWidth - 2.0 * kMargin - kTickWidth - gaps) / count);
  const double pitch = std::clamp((kWishedWidth - gaps) / count, kLeastHeadPitch, std::max(kUsualHeadPitch, filling));
  double x = kMargin + kTickWidth + kLayerGap / 2.0;
  for (const auto& layer : figure.kinds) {
    std::vector<double>& places = layout.x.emplace_back();
    for (std::size_t head = 0; head < layer.size(); ++head) {
      places.push_back(x + pitch / 2.0);
      x += pitch;
    }
    x += kLayerGap;
  }
  double y = kMargin + kTitleHeight + kLegendHeight;
  for (std::size_t panel = 0; panel < figure.panels.size(); ++panel) {
    layout.top.push_back(y + kPanelHeading);
    layout.bottom.push_back(layout.top.back() + kPanelHeight);
    y = layout.bottom.back() + kPanelGap;
  }
  layout.width = std::max(kMinWidth, x - kLayerGap / 2.0 + kMargin);
  layout.height = y - kPanelGap + kFooting + kMargin / 2.0;
  return layout;
}

void write_head_shares_figure(const HeadSharesFigure& figure, const std::filesystem::path& path) {
  write_figure<SharesDrawing>(path, figure, head_shares_layout, figure.title);
}

}  // namespace routing
