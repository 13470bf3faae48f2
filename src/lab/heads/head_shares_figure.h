// Shares from 0 to 1 of every head of every layer, each beside two shares to compare it with.
#pragma once

#include "lab/figures/figure_canvas.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

// What stands over one head: a dot in the colour of its kind, a ring and a dash.
struct HeadShare {
  double dot = 0.0;
  double ring = 0.0;
  double dash = 0.0;
};

struct HeadSharesFigure {
  struct Panel {
    std::string title;
    std::vector<std::vector<HeadShare>> layers;  // [layer][head]
  };
  std::string title;
  std::string dot_name, ring_name, dash_name;   // for the legend
  std::vector<std::vector<std::string>> kinds;  // [layer][head]: "local", "routing"; decide the colour of the dot
  std::vector<Panel> panels;                    // one under the other
};

// Where everything stands, in units of the drawing from the top left corner.
struct HeadSharesLayout {
  double width = 0.0;
  double height = 0.0;
  std::vector<std::vector<double>> x;  // [layer][head]
  std::vector<double> top, bottom;     // of each panel: the shares 1 and 0
  std::vector<std::string> kinds;      // in the order of their colours, group_colour(0) and on

  double y_of(std::size_t panel, double share) const { return bottom[panel] - (bottom[panel] - top[panel]) * share; }
};
HeadSharesLayout head_shares_layout(const HeadSharesFigure& figure);

// Draws the figure to a .png or .svg file; the extension decides.
//
// Throws  InputError   no panels, or panels whose layers and heads are not those of `kinds`
//         ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_head_shares_figure(const HeadSharesFigure& figure, const std::filesystem::path& path);

}  // namespace routing
