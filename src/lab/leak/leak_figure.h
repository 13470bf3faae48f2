// The leak report as a picture: above, each selection's three likelihoods with their intervals; below, what is lost
// without the real future, by quarter of the window, for the selections that lose anything.
#pragma once

#include "lab/figures/chart_axis.h"
#include "lab/figures/figure_canvas.h"
#include "lab/leak/leak_report.h"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

inline constexpr std::array<const char*, 3> kLeakMeasures{"teacher-forced", "future replaced", "prefix only"};

// A mean with its interval, in the unit of the report.
struct LeakPoint {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

// Differences to teacher-forced of one selection, by quarter.
struct LeakSeries {
  std::string name = {};
  std::size_t measure = 1;  // of kLeakMeasures
  Colour colour = {};       // of the measure; darker for each selection before it that has one too
  std::vector<std::size_t> quarters = {};
  std::vector<LeakPoint> points = {};
};

// What is drawn and where, in units of the drawing from the top left corner.
struct LeakLayout {
  double width = 0.0;
  double height = 0.0;
  double left = 0.0;  // of both plots
  double right = 0.0;
  double rows_top = 0.0;  // of the upper plot
  double rows_bottom = 0.0;
  double quarters_top = 0.0;  // of the lower plot; both 0 if nothing is lost anywhere
  double quarters_bottom = 0.0;
  AxisRange values;
  AxisRange losses;
  std::vector<std::string> rows;  // selections
  std::vector<std::array<LeakPoint, 3>> row_points;
  std::vector<LeakSeries> series;

  double x_of(double value) const { return left + (right - left) * (value - values.low) / (values.high - values.low); }
  double y_of_row(std::size_t row, std::size_t measure) const;
  double x_of_quarter(std::size_t series_index, std::size_t quarter) const;
  double y_of_loss(double loss) const {
    return quarters_bottom - (quarters_bottom - quarters_top) * (loss - losses.low) / (losses.high - losses.low);
  }
};

LeakLayout leak_layout(const LeakReport& report);
Colour leak_colour(std::size_t measure);

// Draws to a .png or .svg file; the extension decides.
//
// Throws  ConfigError  another extension
//         FileError    the file cannot be written; an existing one is then left as it was
void write_leak_figure(const LeakReport& report, const std::filesystem::path& path);

}  // namespace routing
