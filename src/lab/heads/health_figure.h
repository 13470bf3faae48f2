// The health of routing as a sheet of small charts: one for each measure over the steps, then one for each head.
#pragma once

#include "lab/figures/curves_figure.h"
#include "lab/heads/head_health.h"
#include "lab/heads/routing_health.h"

#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct HealthFigure {
  struct Run {
    std::string name = {};
    HealthHistory history = {};
    std::int64_t clusters = 0;           // for the limit of the drift; 0 draws no limit
    std::vector<HeadHealth> heads = {};  // charts of members; none if empty
    std::string heads_title = {};        // over them
  };
  std::string title = {};
  std::vector<Run> runs = {};
  HealthLimits limits = {};
};

// Where everything stands, in units of the drawing from the top left corner.
struct HealthLayout {
  struct Chart {
    std::size_t measure = 0;            // in health_measures()
    CurvesFigure curves = {};           // two per run: training as a line, evaluation as dots
    std::vector<std::size_t> run = {};  // whose curve each one is: its colour
    CurvesLayout plot = {};
  };
  struct Bars {
    std::size_t run = 0;
    std::size_t head = 0;  // in Run::heads
    double left = 0.0;     // of the plot
    double top = 0.0;
    double width = 0.0;
    double height = 0.0;
    double most = 1.0;  // members at the top of the plot
  };
  double width = 0.0;
  double height = 0.0;
  std::vector<Chart> charts;  // only of measures that some run has
  std::vector<Bars> bars;
  std::vector<double> head_titles;  // baselines of Run::heads_title, one per run with heads
};

HealthLayout health_layout(const HealthFigure& figure);

// Draws the figure to a .png or .svg file; the extension decides. Run i has group_colour(i).
//
// Throws  InputError   no run has anything to draw
//         ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_health_figure(const HealthFigure& figure, const std::filesystem::path& path);

}  // namespace routing
