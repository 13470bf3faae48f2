// A sequence as cells in rows, coloured by cluster, with what one position reads outlined and its weight. An image is
// shown as itself, then what is read of it, then its clusters, side by side.
#pragma once

#include "lab/figures/figure_canvas.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct SequenceCell {
  std::string text = {};
  std::vector<std::int32_t> clusters = {};  // a stripe each; white without
  double weight = -1.0;                     // of what is read; below 0: not read
  bool asked = false;                       // the position that the figure is about
};

struct SequenceFigure {
  std::string title = {};
  std::string caption = {};
  std::vector<SequenceCell> cells = {};
  std::int64_t first = 0;  // number of the first cell
  // Columns of an image, of three cells each, for the values of a pixel; 0 for text.
  std::int64_t image_width = 0;
  std::vector<std::uint8_t> values = {};  // of an image, as many as cells: red, green, blue …
};

// So many cells still have their text in them; more become plain squares.
inline constexpr std::size_t kMostNamedCells = 4096;

// "42", the weight in per cent under a cell that is read; empty below half a per cent.
std::string weight_text(double weight);

struct SequenceLayout {
  struct Box {
    double left = 0.0;
    double top = 0.0;
    double width = 0.0;
    double height = 0.0;
  };
  double width = 0.0;
  double height = 0.0;
  bool named = false;             // texts are drawn
  double scale = 1.0;             // of cells with text: few of them are drawn larger
  std::vector<Box> boxes;         // one a cell
  std::vector<std::size_t> rows;  // the first cell of each row
  std::vector<Box> pixels;        // of an image, the picture itself
  std::vector<Box> weights;       // of an image, what is read of each pixel
};

// Text: cells as wide as what stands in them, as large as leaves the sheet low, or squares, row after row. Images: a
// square per pixel, three cells wide.
SequenceLayout sequence_layout(const SequenceFigure& figure);

// The colour of a cluster in a cell; paler where letters stand on it.
Colour cell_colour(std::int32_t cluster, bool named);

// Draws the figure to a .png or .svg file; the extension decides.
//
// Throws  InputError   a figure without cells, or an image whose values are not as many as its cells
//         ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_sequence_figure(const SequenceFigure& figure, const std::filesystem::path& path);

}  // namespace routing
