// Square matrices side by side, each cell in the colour of its value: how all heads of all layers differ.
#pragma once

#include "lab/figures/figure_canvas.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct MatrixPanel {
  std::string title = {};
  std::vector<std::string> labels;  // one per row; columns have their numbers
  std::vector<double> values;       // [labels, labels], row-major; NaN is drawn as a cross on grey
};

struct MatrixFigure {
  std::string title = {};
  std::string caption = {};    // under the title: what the values are
  double low = 0.0;            // colours run from here …
  double high = 1.0;           // … to here
  std::string high_name = {};  // what to call the upper end, such as "ln 2"; empty means its number
  std::vector<MatrixPanel> panels;
};

// The colour of a share of the way from low to high: white, blue, nearly black. Clamped to 0 … 1.
Colour matrix_colour(double share);

// Where everything stands, in units of the drawing from the top left corner.
struct MatrixLayout {
  struct Box {
    double left = 0.0;  // of the cell (0, 0)
    double top = 0.0;
    double cell = 0.0;  // side of a cell
  };
  double width = 0.0;
  double height = 0.0;
  double label_width = 0.0;
  std::vector<Box> boxes;  // one per panel
};
MatrixLayout matrix_layout(const MatrixFigure& figure);

// Draws the figure to a .png or .svg file; the extension decides.
//
// Throws  InputError   no panels, a panel whose values are not labels x labels, or low >= high
//         ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_matrix_figure(const MatrixFigure& figure, const std::filesystem::path& path);

}  // namespace routing
