#include "lab/figures/sequence_figure.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kMargin = 24.0;
constexpr double kHeading = 62.0;  // title, caption and what the colours mean
constexpr double kNumbers = 44.0;  // left of the rows
constexpr double kContent = 960.0;
constexpr double kNamedHeight = 22.0;
constexpr double kNamedGap = 3.0;
constexpr double kTextRoom = 7.0;
constexpr double kNarrowest = 13.0;
constexpr double kSquare = 8.0;
constexpr double kSquareGap = 2.0;  // room for outlines
constexpr std::size_t kSquaresInRow = 96;
constexpr double kImageSide = 768.0;
constexpr double kNarrowestSheet = 760.0;  // the heading of an image
constexpr double kMostWeightLine = 2.6;
constexpr double kLeastLine = 0.7;
constexpr double kNumberSpace = 13.0;  // between two row numbers

const TextStyle kCaption = {.size = 11.0, .colour = kFaintInk};
const TextStyle kCellText = {.size = 10.5, .align = 0.5};
const TextStyle kNumber = {.size = 9.0, .colour = kFaintInk, .align = 1.0};
constexpr Colour kBorder = {0.85, 0.85, 0.85};
constexpr Colour kAsked = {0.85, 0.0, 0.1};

using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;
using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;

void place_named(const SequenceFigure& figure, SequenceLayout& layout) {
  // Only to measure letters.
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1), &cairo_surface_destroy);
  const Context context(cairo_create(surface.get()), &cairo_destroy);
  double left = kMargin + kNumbers;
  double top = kMargin + kHeading;
  const double right = kMargin + kNumbers + kContent;
  for (const SequenceCell& cell : figure.cells) {
    const double width = std::max(kNarrowest, text_width(context.get(), cell.text, kCellText) + kTextRoom);
    const bool new_row = layout.rows.empty() || left + width > right;
    if (new_row && !layout.rows.empty()) {
      left = kMargin + kNumbers;
      top += kNamedHeight + kNamedGap;
    }
    if (new_row) layout.rows.push_back(layout.boxes.size());
    layout.boxes.push_back({left, top, std::min(width, kContent), kNamedHeight});
    left += width + kNamedGap;
  }
}

void place_squares(const SequenceFigure& figure, SequenceLayout& layout) {
  for (std::size_t i = 0; i < figure.cells.size(); ++i) {
    if (i % kSquaresInRow == 0) layout.rows.push_back(i);
    const double pitch = kSquare + kSquareGap;
    layout.boxes.push_back({kMargin + kNumbers + pitch * static_cast<double>(i % kSquaresInRow),
                            kMargin + kHeading + pitch * static_cast<double>(i / kSquaresInRow), kSquare, kSquare});
  }
}

void place_image(const SequenceFigure& figure, SequenceLayout& layout) {
  const auto in_row = static_cast<std::size_t>(3 * figure.image_width);
  // Whole units for a third of a pixel.
  const double third = std::max(2.0, std::floor(kImageSide / static_cast<double>(in_row)));
  for (std::size_t i = 0; i < figure.cells.size(); ++i) {
    if (i % in_row == 0) layout.rows.push_back(i);
    layout.boxes.push_back({kMargin + kNumbers + third * static_cast<double>(i % in_row),
                            kMargin + kHeading + 3.0 * third * static_cast<double>(i / in_row), third, 3.0 * third});
  }
}

class SequenceDrawing {
 public:
  SequenceDrawing(const SequenceFigure& figure, const SequenceLayout& layout, cairo_t* context)
      : figure_(figure), layout_(layout), context_(context) {
    for (const SequenceCell& cell : figure.cells) most_ = std::max(most_, cell.weight);
  }

  void draw() const {
    draw_heading();
    draw_numbers();
    for (std::size_t i = 0; i < figure_.cells.size(); ++i) draw_cell(i);
    // Outlines over all fills: they reach into the neighbours.
    for (std::size_t i = 0; i < figure_.cells.size(); ++i) draw_outline(i);
  }

 private:
  void draw_heading() const {
    const double width = layout_.width - 2.0 * kMargin;
    draw_text(context_, figure_.title, kMargin, kMargin + 14.0, shrunk_to_fit(context_, figure_.title, kTitle, width));
    draw_text(context_, figure_.caption, kMargin, kMargin + 32.0,
              shrunk_to_fit(context_, figure_.caption, kCaption, width));
    const bool clustered = std::any_of(figure_.cells.begin(), figure_.cells.end(),
                                       [](const SequenceCell& cell) { return !cell.clusters.empty(); });
    const std::string note =
        std::string(clustered ? "colours: clusters, a stripe each   white: in no cluster   " : "") +
        "black outline: read, thicker with more weight   red: the position asked about";
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

  void draw_cell(std::size_t index) const {
    const SequenceCell& cell = figure_.cells[index];
    const SequenceLayout::Box& box = layout_.boxes[index];
    const double stripe = box.width / static_cast<double>(std::max<std::size_t>(1, cell.clusters.size()));
    for (std::size_t i = 0; i < cell.clusters.size(); ++i) {
      cairo_rectangle(context_, box.left + stripe * static_cast<double>(i), box.top, stripe, box.height);
      set_colour(context_, cell_colour(cell.clusters[i], layout_.named));
      cairo_fill(context_);
    }
    if (cell.clusters.empty()) {
      cairo_rectangle(context_, box.left, box.top, box.width, box.height);
      cairo_set_line_width(context_, 0.5);
      set_colour(context_, kBorder);
      cairo_stroke(context_);
    }
    if (!layout_.named) return;
    const TextStyle style = shrunk_to_fit(context_, cell.text, kCellText, box.width - 2.0);
    draw_text(context_, cell.text, box.left + box.width / 2.0, box.top + box.height / 2.0 + 3.8, style);
  }

  void draw_outline(std::size_t index) const {
    const SequenceCell& cell = figure_.cells[index];
    if (cell.weight < 0.0 && !cell.asked) return;
    const SequenceLayout::Box& box = layout_.boxes[index];
    const double share = most_ > 0.0 ? std::sqrt(std::max(0.0, cell.weight) / most_) : 0.0;
    const double line = cell.asked ? kMostWeightLine : kLeastLine + (kMostWeightLine - kLeastLine) * share;
    cairo_rectangle(context_, box.left, box.top, box.width, box.height);
    cairo_set_line_width(context_, line);
    set_colour(context_, cell.asked ? kAsked : kInk);
    cairo_stroke(context_);
  }

  const SequenceFigure& figure_;
  const SequenceLayout& layout_;
  cairo_t* context_;
  double most_ = 0.0;
};

}  // namespace

Colour cell_colour(std::int32_t cluster, bool named) {
  return named ? mix(kBackground, group_colour(cluster), 0.5) : group_colour(cluster);
}

SequenceLayout sequence_layout(const SequenceFigure& figure) {
  require<InputError>(!figure.cells.empty(), "figure '", figure.title, "' has no cells; give it at least one");
  SequenceLayout layout;
  layout.boxes.reserve(figure.cells.size());
  layout.named = figure.image_width == 0 && figure.cells.size() <= kMostNamedCells;
  if (figure.image_width > 0) {
    place_image(figure, layout);
  } else if (layout.named) {
    place_named(figure, layout);
  } else {
    place_squares(figure, layout);
  }
  layout.width = figure.image_width > 0 ? kNarrowestSheet : 2.0 * kMargin + kNumbers + kContent;
  for (const SequenceLayout::Box& box : layout.boxes) {
    layout.width = std::max(layout.width, box.left + box.width + kMargin);
  }
  layout.height = layout.boxes.back().top + layout.boxes.back().height + kMargin;
  return layout;
}

void write_sequence_figure(const SequenceFigure& figure, const std::filesystem::path& path) {
  write_figure<SequenceDrawing>(path, figure, sequence_layout, figure.title);
}

}  // namespace routing
