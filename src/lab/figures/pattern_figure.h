// The paper's Figure 1: which inputs each output reads, drawn as squares side by side.
#pragma once

#include "lab/figures/figure_canvas.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

// One square of the figure: a row for each query (output), a column for each key (input).
struct PatternPanel {
  std::string title;    // "local, sliding"
  std::string caption;  // "window 8: i - 8 < j <= i"
  std::int64_t num_queries = 0;
  std::int64_t num_keys = 0;
  // [num_queries, num_keys], row-major: the group through which the query reads the key, which decides the colour; -1
  // where it does not read it.
  std::vector<std::int32_t> group;
  // [num_queries, num_keys]: through how many groups it reads it, 0 where it does not. More than one gets a dark mark,
  // unless cells are smaller than three pixels.
  std::vector<std::int32_t> count;
};

struct PatternFigure {
  struct Row {
    std::string label;  // "causal"
    std::vector<PatternPanel> panels;
  };
  std::string title;
  std::vector<Row> rows;
};

// Where everything stands, in units of the drawing from the top left corner.
struct PatternLayout {
  struct Box {
    double left = 0.0;  // of the cell (0, 0)
    double top = 0.0;
    double cell = 0.0;  // side of a cell
  };
  double width = 0.0;
  double height = 0.0;
  std::vector<std::vector<Box>> boxes;  // [row][panel]
};

PatternLayout pattern_layout(const PatternFigure& figure);

// Draws the figure to a .png or .svg file; the extension decides.
//
// Throws  InputError   a panel's vectors do not have num_queries * num_keys entries, or group and count disagree on
//                      what is read
//         ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_pattern_figure(const PatternFigure& figure, const std::filesystem::path& path);

}  // namespace routing
