// How far back each head of a run reads: a bar per head and layer for the last logged step, and beside it how the spans
// came there. Knows no torch.
#pragma once

#include "lab/figures/curves_figure.h"
#include "lab/runs/span_history.h"

#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct SpanFigure {
  std::string title;
  std::vector<SpanSeries> heads;  // those of one layer stand together
  double limit = 0.0;             // the longest span that a head can have; 0 means none
};

// Where everything stands, in units of the drawing from the top left corner.
struct SpanLayout {
  double width = 0.0;
  double height = 0.0;
  double bar = 0.0;                   // width of a bar
  std::vector<double> x;              // the left of each head's bar
  bool shows_limit = false;           // as a dashed line; not where it is far above all spans
  std::vector<std::string> layers;    // in the order of their colours, group_colour(0) and on
  std::vector<std::size_t> layer_of;  // of each head
  CurvesFigure curves;                // one for each head
  CurvesLayout over_steps;            // the chart at the right; its y axis is that of the bars too
};
SpanLayout span_layout(const SpanFigure& figure);

// Draws the figure to a .png or .svg file; the extension decides.
//
// Throws  InputError   no heads, or one without a value
//         ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_span_figure(const SpanFigure& figure, const std::filesystem::path& path);

}  // namespace routing
