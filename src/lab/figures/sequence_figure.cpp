#include "lab/figures/sequence_figure.h"

#include "lab/figures/matrix_figure.h"
#include "routing/core/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <span>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kMargin = 24.0;
constexpr double kHeading = 62.0;  // title, caption and what the colours mean
constexpr double kNumbers = 44.0;  // left of the rows
constexpr double kContent = 960.0;
constexpr double kNamedHeight = 22.0;
constexpr double kNamedGap = 3.0;
constexpr double kWeightHeight = 10.0;  // numbers under a row of cells
constexpr double kTextRoom = 7.0;
constexpr double kNarrowest = 13.0;
constexpr double kLowSheet = 320.0;  // cells grow as long as they are no higher together
constexpr std::array kScales{2.2, 1.8, 1.4};
constexpr double kSquare = 8.0;
constexpr double kSquareGap = 2.0;  // room for outlines
constexpr std::size_t kSquaresInRow = 96;
constexpr double kImageSide = 320.0;
constexpr double kImageGap = 22.0;
constexpr double kImageHeading = 20.0;     // over each of the three pictures
constexpr double kNarrowestSheet = 800.0;  // the heading
constexpr double kMostWeightLine = 2.6;
constexpr double kLeastLine = 0.7;
constexpr double kNumberSpace = 13.0;  // between two row numbers

const TextStyle kCaption = {.size = 11.0, .colour = kFaintInk};
const TextStyle kCellText = {.size = 10.5, .align = 0.5};
const TextStyle kWeight = {.size = 7.5, .colour = kFaintInk, .align = 0.5};
const TextStyle kNumber = {.size = 9.0, .colour = kFaintInk, .align = 1.0};
constexpr Colour kBorder = {0.85, 0.85, 0.85};
constexpr Colour kAsked = {0.85, 0.0, 0.1};
constexpr Colour kRead = {1.0, 0.62, 0.18};  // where no clusters need the colours

TextStyle scaled(TextStyle style, double scale) {
  style.size *= scale;
  return style;
}

SequenceLayout named_layout(const SequenceFigure& figure, double scale) {
  SequenceLayout layout{.named = true, .scale = scale, .boxes = {}, .rows = {}, .pixels = {}, .weights = {}};
  double left = kMargin + kNumbers;
  double top = kMargin + kHeading;
  const double right = kMargin + kNumbers + kContent;
  for (const SequenceCell& cell : figure.cells) {
    const double text = widest_text(std::span(&cell.text, 1), scaled(kCellText, scale));
    const double width = std::max(kNarrowest * scale, text + kTextRoom * scale);
    const bool new_row = layout.rows.empty() || left + width > right;
    if (new_row && !layout.rows.empty()) {
      left = kMargin + kNumbers;
      top += (kNamedHeight + kWeightHeight + kNamedGap) * scale;
    }
    if (new_row) layout.rows.push_back(layout.boxes.size());
    layout.boxes.push_back({left, top, std::min(width, kContent), kNamedHeight * scale});
    left += width + kNamedGap * scale;
  }
  layout.height = top + (kNamedHeight + kWeightHeight) * scale;
  return layout;
}

// The largest cells that leave the sheet low; the smallest if none do.
SequenceLayout fitting_named_layout(const SequenceFigure& figure) {
  for (const double scale : kScales) {
    // Rows cannot hold more than so many of even the narrowest cells.
    const double rows = static_cast<double>(figure.cells.size()) * (kNarrowest + kNamedGap) * scale / kContent;
    if (rows * (kNamedHeight + kWeightHeight + kNamedGap) * scale > kLowSheet + kContent) continue;
    SequenceLayout layout = named_layout(figure, scale);
    if (layout.height - kMargin - kHeading <= kLowSheet) return layout;
  }
  return named_layout(figure, 1.0);
}

SequenceLayout square_layout(const SequenceFigure& figure) {
  SequenceLayout layout;
  for (std::size_t i = 0; i < figure.cells.size(); ++i) {
    if (i % kSquaresInRow == 0) layout.rows.push_back(i);
    const double pitch = kSquare + kSquareGap;
    layout.boxes.push_back({kMargin + kNumbers + pitch * static_cast<double>(i % kSquaresInRow),
                            kMargin + kHeading + pitch * static_cast<double>(i / kSquaresInRow), kSquare, kSquare});
  }
  layout.height = layout.boxes.back().top + kSquare;
  return layout;
}

SequenceLayout image_layout(const SequenceFigure& figure) {
  SequenceLayout layout;
  const auto in_row = static_cast<std::size_t>(3 * figure.image_width);
  // Whole units for a third of a pixel.
  const double third = std::max(2.0, std::floor(kImageSide / static_cast<double>(in_row)));
  const double side = third * static_cast<double>(in_row);
  const double left = kMargin + kNumbers;
  const double top = kMargin + kHeading + kImageHeading;
  for (std::size_t i = 0; i < figure.cells.size(); ++i) {
    if (i % in_row == 0) layout.rows.push_back(i);
    const double column = third * static_cast<double>(i % in_row);
    const double row = top + 3.0 * third * static_cast<double>(i / in_row);
    layout.boxes.push_back({left + 2.0 * (side + kImageGap) + column, row, third, 3.0 * third});
    if (i % 3 != 0) continue;
    layout.pixels.push_back({left + column, row, 3.0 * third, 3.0 * third});
    layout.weights.push_back({left + side + kImageGap + column, row, 3.0 * third, 3.0 * third});
  }
  layout.height = layout.boxes.back().top + layout.boxes.back().height;
  return layout;
}

class SequenceDrawing {
 public:
  SequenceDrawing(const SequenceFigure& figure, const SequenceLayout& layout, cairo_t* context)
      : figure_(figure), layout_(layout), context_(context) {
    for (const SequenceCell& cell : figure.cells) {
      most_ = std::max(most_, cell.weight);
      clustered_ = clustered_ || !cell.clusters.empty();
    }
  }

  void draw() const {
    draw_heading();
    draw_numbers();
    for (std::size_t i = 0; i < figure_.cells.size(); ++i) draw_cell(i);
    if (figure_.image_width > 0) {
      draw_image();
      return;
    }
    // Outlines over all fills: they reach into the neighbours.
    for (std::size_t i = 0; i < figure_.cells.size(); ++i) draw_outline(i);
  }

 private:
  void draw_heading() const {
    const double width = layout_.width - 2.0 * kMargin;
    draw_text(context_, figure_.title, kMargin, kMargin + 14.0, shrunk_to_fit(context_, figure_.title, kTitle, width));
    draw_text(context_, figure_.caption, kMargin, kMargin + 32.0,
              shrunk_to_fit(context_, figure_.caption, kCaption, width));
    std::string note = clustered_ ? "colours: clusters, a stripe each   white: in no cluster   " : "";
    if (figure_.image_width == 0) {
      note += "black outline: read, thicker with more weight   ";
      if (layout_.named) note += "number: weight in %   ";
    }
    note += "red: the position asked about";
    draw_text(context_, note, kMargin, kMargin + 48.0, shrunk_to_fit(context_, note, kCaption, width));
  }

  void draw_numbers() const {
    double last = -kNumberSpace;
    for (const std::size_t cell : layout_.rows) {
      const SequenceLayout::Box& box = layout_.boxes[cell];
      if (box.top - last < kNumberSpace) continue;
      last = box.top;
      // Rows of an image, tokens of a text.
      const std::int64_t number = figure_.image_width > 0 ? static_cast<std::int64_t>(cell) / (3 * figure_.image_width)
                                                          : figure_.first + static_cast<std::int64_t>(cell);
      draw_text(context_, std::to_string(number), kMargin + kNumbers - 8.0, box.top + box.height / 2.0 + 3.2, kNumber);
    }
  }

  void fill(const SequenceLayout::Box& box, const Colour& colour) const {
    cairo_rectangle(context_, box.left, box.top, box.width, box.height);
    set_colour(context_, colour);
    cairo_fill(context_);
  }

  void outline(const SequenceLayout::Box& box, double line, const Colour& colour) const {
    cairo_rectangle(context_, box.left, box.top, box.width, box.height);
    cairo_set_line_width(context_, line);
    set_colour(context_, colour);
    cairo_stroke(context_);
  }

  // The root lets small weights be seen beside large ones.
  static double share(double weight, double most) { return most > 0.0 ? std::sqrt(std::max(0.0, weight) / most) : 0.0; }

  void draw_cell(std::size_t index) const {
    const SequenceCell& cell = figure_.cells[index];
    const SequenceLayout::Box& box = layout_.boxes[index];
    const double stripe = box.width / static_cast<double>(std::max<std::size_t>(1, cell.clusters.size()));
    for (std::size_t i = 0; i < cell.clusters.size(); ++i) {
      fill({box.left + stripe * static_cast<double>(i), box.top, stripe, box.height},
           cell_colour(cell.clusters[i], layout_.named));
    }
    if (!clustered_ && cell.weight > 0.0) fill(box, mix(kBackground, kRead, 0.8 * share(cell.weight, most_)));
    if (cell.clusters.empty() && figure_.image_width == 0) outline(box, 0.5, kBorder);
    if (!layout_.named) return;
    const double middle = box.left + box.width / 2.0;
    const TextStyle style =
        shrunk_to_fit(context_, cell.text, scaled(kCellText, layout_.scale), box.width - 2.0 * layout_.scale);
    draw_text(context_, cell.text, middle, box.top + box.height / 2.0 + 3.8 * layout_.scale, style);
    const std::string weight = weight_text(cell.weight);
    if (weight.empty()) return;
    draw_text(context_, weight, middle, box.top + box.height + 9.0 * layout_.scale,
              shrunk_to_fit(context_, weight, scaled(kWeight, layout_.scale), box.width + kNamedGap));
  }

  void draw_outline(std::size_t index) const {
    const SequenceCell& cell = figure_.cells[index];
    if (cell.weight < 0.0 && !cell.asked) return;
    const double line =
        cell.asked ? kMostWeightLine : kLeastLine + (kMostWeightLine - kLeastLine) * share(cell.weight, most_);
    outline(layout_.boxes[index], line, cell.asked ? kAsked : kInk);
  }

  // The picture, paler from the position on, and the weights of its pixels.
  void draw_image() const {
    const std::size_t pixels = layout_.pixels.size();
    std::size_t asked = pixels;
    std::vector<double> weights(pixels, 0.0);
    for (std::size_t i = 0; i < figure_.cells.size(); ++i) {
      weights[i / 3] += std::max(0.0, figure_.cells[i].weight);
      if (figure_.cells[i].asked) asked = i / 3;
    }
    const double most = *std::max_element(weights.begin(), weights.end());
    for (std::size_t i = 0; i < pixels; ++i) {
      const auto channel = [&](std::size_t c) {
        return figure_.values[std::min(3 * i + c, figure_.values.size() - 1)] / 255.0;
      };
      const Colour colour{channel(0), channel(1), channel(2)};
      fill(layout_.pixels[i], i < asked ? colour : mix(colour, kBackground, 0.6));
      fill(layout_.weights[i], matrix_colour(share(weights[i], most)));
    }
    name_picture(layout_.pixels, "the image");
    name_picture(layout_.weights, fmt::format("weight read from each pixel, darkest {:.1f} %", 100.0 * most));
    name_picture(layout_.boxes, clustered_ ? "clusters of red, green and blue" : "weight of red, green and blue");
    if (asked == pixels) return;
    for (const auto* boxes : {&layout_.pixels, &layout_.weights}) outline((*boxes)[asked], 1.4, kAsked);
    for (std::size_t i = 3 * asked; i < figure_.cells.size(); ++i) {
      if (figure_.cells[i].asked) outline(layout_.boxes[i], 1.4, kAsked);
    }
  }

  void name_picture(const std::vector<SequenceLayout::Box>& boxes, const std::string& name) const {
    const SequenceLayout::Box& first = boxes.front();
    const SequenceLayout::Box& last = boxes.back();
    const double width = layout_.pixels.front().width * static_cast<double>(figure_.image_width);
    outline({first.left, first.top, width, last.top + last.height - first.top}, 0.5, kBorder);
    draw_text(context_, name, first.left, first.top - 7.0, shrunk_to_fit(context_, name, kCaption, width));
  }

  const SequenceFigure& figure_;
  const SequenceLayout& layout_;
  cairo_t* context_;
  double most_ = 0.0;
  bool clustered_ = false;
};

}  // namespace

std::string weight_text(double weight) {
  return weight < 0.005 ? std::string() : fmt::format("{:.0f}", 100.0 * weight);
}

Colour cell_colour(std::int32_t cluster, bool named) {
  return named ? mix(kBackground, group_colour(cluster), 0.5) : group_colour(cluster);
}

SequenceLayout sequence_layout(const SequenceFigure& figure) {
  require<InputError>(!figure.cells.empty(), "figure '", figure.title, "' has no cells; give it at least one");
  const bool image = figure.image_width > 0;
  require<InputError>(!image || figure.values.size() == figure.cells.size(), "figure '", figure.title,
                      "': an image of ", figure.cells.size(), " cells has ", figure.values.size(),
                      " values; give one for each");
  SequenceLayout layout = image                                    ? image_layout(figure)
                          : figure.cells.size() <= kMostNamedCells ? fitting_named_layout(figure)
                                                                   : square_layout(figure);
  layout.width = kNarrowestSheet;
  for (const SequenceLayout::Box& box : layout.boxes) {
    layout.width = std::max(layout.width, box.left + box.width + kMargin);
  }
  layout.height += kMargin;
  return layout;
}

void write_sequence_figure(const SequenceFigure& figure, const std::filesystem::path& path) {
  write_figure<SequenceDrawing>(path, figure, sequence_layout, figure.title);
}

}  // namespace routing
