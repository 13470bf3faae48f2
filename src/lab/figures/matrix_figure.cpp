#include "lab/figures/matrix_figure.h"

#include "lab/figures/chart_axis.h"
#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kPanelSide = 224.0;
constexpr double kMargin = 24.0;
constexpr double kMinWidth = 420.0;
constexpr double kTitleHeight = 54.0;   // title and caption
constexpr double kPanelHeading = 22.0;  // title over a panel
constexpr double kPanelFooting = 20.0;  // numbers under it
constexpr double kPanelGap = 26.0;
constexpr double kRowGap = 10.0;
constexpr double kLabelGap = 7.0;
constexpr double kBarHeight = 12.0;
constexpr double kBarRoom = 46.0;  // above, the bar, and its numbers
constexpr double kBarWidth = 260.0;
constexpr double kMaxLabelWidth = 90.0;
constexpr double kNumbersFromCell = 22.0;  // smaller cells have no room for them
constexpr double kLightTextFrom = 0.5;     // share from which a cell is dark
constexpr std::size_t kMostColumns = 4;

const TextStyle kCaption = {.size = 11.5, .colour = kFaintInk};
const TextStyle kPanelTitle = {.size = 12.5, .bold = true};
const TextStyle kLabel = {.size = 10.5, .colour = kFaintInk, .align = 1.0};
constexpr Colour kMissing = {0.85, 0.85, 0.85};
constexpr Colour kFrame = {0.60, 0.60, 0.60};

void validate(const MatrixFigure& figure) {
  require<InputError>(!figure.panels.empty(), "figure '", figure.title, "' has no panels; give it at least one");
  require<InputError>(figure.low < figure.high, "figure '", figure.title, "': colours run from ", figure.low, " to ",
                      figure.high, ", but must rise");
  for (const MatrixPanel& panel : figure.panels) {
    require<InputError>(!panel.labels.empty() && panel.values.size() == panel.labels.size() * panel.labels.size(),
                        "panel '", panel.title, "': ", panel.values.size(), " values, but ", panel.labels.size(),
                        " labels need their square, and at least one");
  }
}

std::size_t columns_of(const MatrixFigure& figure) {
  const auto root = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(figure.panels.size()))));
  return std::min(kMostColumns, root);
}

double widest_label(const MatrixFigure& figure) {
  double width = 0.0;
  for (const MatrixPanel& panel : figure.panels) width = std::max(width, widest_text(panel.labels, kLabel));
  return std::min(width, kMaxLabelWidth);
}

class MatrixDrawing {
 public:
  MatrixDrawing(const MatrixFigure& figure, const MatrixLayout& layout, cairo_t* context)
      : figure_(figure), layout_(layout), context_(context) {}

  void draw() const {
    const double width = layout_.width - 2.0 * kMargin;
    draw_text(context_, figure_.title, kMargin, kMargin + 14.0, shrunk_to_fit(context_, figure_.title, kTitle, width));
    draw_text(context_, figure_.caption, kMargin, kMargin + 34.0,
              shrunk_to_fit(context_, figure_.caption, kCaption, width));
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) draw_panel(figure_.panels[i], layout_.boxes[i]);
    draw_bar();
  }

 private:
  double share_of(double value) const { return (value - figure_.low) / (figure_.high - figure_.low); }

  void fill_cell(double left, double top, double side, const Colour& colour) const {
    cairo_rectangle(context_, left, top, side, side);
    set_colour(context_, colour);
    cairo_fill(context_);
  }

  void draw_missing(double left, double top, double side) const {
    fill_cell(left, top, side, kMissing);
    cairo_move_to(context_, left, top);
    cairo_line_to(context_, left + side, top + side);
    cairo_move_to(context_, left, top + side);
    cairo_line_to(context_, left + side, top);
    cairo_set_line_width(context_, 0.8);
    set_colour(context_, kFrame);
    cairo_stroke(context_);
  }

  void draw_panel(const MatrixPanel& panel, const MatrixLayout::Box& box) const {
    const std::size_t size = panel.labels.size();
    const double side = box.cell * static_cast<double>(size);
    draw_text(context_, panel.title, box.left, box.top - 8.0, shrunk_to_fit(context_, panel.title, kPanelTitle, side));
    const double font = std::min(kLabel.size, box.cell + 1.0);
    for (std::size_t row = 0; row < size; ++row) {
      const double top = box.top + box.cell * static_cast<double>(row);
      TextStyle style = kLabel;
      style.size = font;
      draw_text(context_, panel.labels[row], box.left - kLabelGap, top + box.cell / 2.0 + font * 0.36,
                shrunk_to_fit(context_, panel.labels[row], style, kMaxLabelWidth));
      style.align = 0.5;
      const std::string number = std::to_string(row);
      draw_text(context_, number, box.left + box.cell * (static_cast<double>(row) + 0.5), box.top + side + 13.0,
                shrunk_to_fit(context_, number, style, box.cell));
      for (std::size_t column = 0; column < size; ++column) {
        const double left = box.left + box.cell * static_cast<double>(column);
        draw_cell(panel.values[row * size + column], left, top, box.cell);
      }
    }
    cairo_rectangle(context_, box.left, box.top, side, side);
    cairo_set_line_width(context_, 1.0);
    set_colour(context_, kFrame);
    cairo_stroke(context_);
  }

  void draw_cell(double value, double left, double top, double side) const {
    if (std::isnan(value)) {
      draw_missing(left, top, side);
      return;
    }
    fill_cell(left, top, side, matrix_colour(share_of(value)));
    if (side < kNumbersFromCell) return;
    const TextStyle style = {
        .size = 9.5, .colour = share_of(value) >= kLightTextFrom ? kBackground : kInk, .align = 0.5};
    const std::string number = fmt::format("{:.2f}", value);
    draw_text(context_, number, left + side / 2.0, top + side / 2.0 + 3.4,
              shrunk_to_fit(context_, number, style, side - 4.0));
  }

  void draw_bar() const {
    constexpr int kSteps = 130;
    const double top = layout_.height - kMargin - kBarRoom + 16.0;
    const double left = kMargin + layout_.label_width;
    for (int i = 0; i < kSteps; ++i) {
      cairo_rectangle(context_, left + kBarWidth * i / kSteps, top, kBarWidth / kSteps + 0.5, kBarHeight);
      set_colour(context_, matrix_colour((i + 0.5) / kSteps));
      cairo_fill(context_);
    }
    cairo_rectangle(context_, left, top, kBarWidth, kBarHeight);
    cairo_set_line_width(context_, 1.0);
    set_colour(context_, kFrame);
    cairo_stroke(context_);
    TextStyle style = kLabel;
    style.align = 0.5;
    const double text_top = top + kBarHeight + 14.0;
    const double step = round_step(figure_.high - figure_.low, 4);
    for (const AxisTick& tick : ticks_of({figure_.low, figure_.high}, step)) {
      // The upper end has a name of its own.
      if (share_of(tick.value) > 0.9) continue;
      draw_text(context_, tick.label, left + kBarWidth * share_of(tick.value), text_top, style);
    }
    const std::string high = figure_.high_name.empty() ? fmt::format("{:.2f}", figure_.high) : figure_.high_name;
    draw_text(context_, high, left + kBarWidth, text_top, style);
  }

  const MatrixFigure& figure_;
  const MatrixLayout& layout_;
  cairo_t* context_;
};

}  // namespace

Colour matrix_colour(double share) {
  constexpr Colour kMiddle = {0.29, 0.58, 0.79};
  constexpr Colour kDark = {0.03, 0.13, 0.33};
  const double inside = std::clamp(share, 0.0, 1.0);
  return inside < 0.5 ? mix(kBackground, kMiddle, 2.0 * inside) : mix(kMiddle, kDark, 2.0 * inside - 1.0);
}

MatrixLayout matrix_layout(const MatrixFigure& figure) {
  validate(figure);
  MatrixLayout layout;
  layout.label_width = widest_label(figure) + kLabelGap;
  const std::size_t columns = columns_of(figure);
  const std::size_t rows = (figure.panels.size() + columns - 1) / columns;
  const double pitch_x = layout.label_width + kPanelSide + kPanelGap;
  const double pitch_y = kPanelHeading + kPanelSide + kPanelFooting + kRowGap;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const auto column = static_cast<double>(i % columns);
    const auto row = static_cast<double>(i / columns);
    layout.boxes.push_back({.left = kMargin + layout.label_width + pitch_x * column,
                            .top = kMargin + kTitleHeight + kPanelHeading + pitch_y * row,
                            .cell = kPanelSide / static_cast<double>(figure.panels[i].labels.size())});
  }
  layout.width = std::max(kMinWidth, 2.0 * kMargin + pitch_x * static_cast<double>(columns) - kPanelGap);
  layout.height = 2.0 * kMargin + kTitleHeight + pitch_y * static_cast<double>(rows) + kBarRoom;
  return layout;
}

void write_matrix_figure(const MatrixFigure& figure, const std::filesystem::path& path) {
  write_figure<MatrixDrawing>(path, figure, matrix_layout, figure.title);
}

}  // namespace routing
