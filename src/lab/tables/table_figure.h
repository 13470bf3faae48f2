// A table as a picture: a line per row, our figures to the left, the paper's to the right, each on an axis of its own.
// Where the paper has no figure of any row shown, ours stand alone.
#pragma once

#include "lab/figures/chart_axis.h"
#include "lab/figures/figure_canvas.h"
#include "lab/tables/table_output.h"

#include <filesystem>
#include <vector>

namespace routing {

// One of the two plots: a dot per row, with a line for its interval where there is one.
struct TablePlot {
  struct Mark {
    std::size_t line = 0;  // of the picture, from the top
    double value = 0.0;
    double half_width = 0.0;  // 0 for none
    bool routed = false;
  };
  std::string title = {};
  std::vector<Mark> marks = {};
  AxisRange range = {};
  double step = 1.0;         // between ticks; the range is whole steps
  bool differences = false;  // to the baseline, which is then the line at zero
};

struct TablePicture {
  std::vector<std::string> names = {};  // a line each
  TablePlot ours = {};
  TablePlot paper = {};
};

// Both plots show differences to the baseline if both have its figure, otherwise the figures themselves. Rows with
// neither figure are left out. Intervals wider than four times the spread of all means are cut off at the border.
TablePicture table_picture(const TableReport& report);

// By the extension, .png or .svg; a ConfigError for another, a FileError if it cannot be written.
void write_table_figure(const TableReport& report, const std::filesystem::path& path);

}  // namespace routing
