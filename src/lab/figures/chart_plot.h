// What the plots of all charts have in common: axes with ticks, dashed limits, lines that stay inside.
#pragma once

#include "lab/figures/curve_stretches.h"

namespace routing {

// Grid, tick labels and the line of the x axis.
void draw_axes(cairo_t* context, const CurvesLayout& plot, const TextStyle& tick_label);

// From now on nothing is drawn further than `room` outside of the plot: half of a line, a whole dot.
void clip_to_plot(cairo_t* context, const CurvesLayout& plot, double room);

// A dashed line over the whole width; nothing for a value that is not shown.
void draw_reference(cairo_t* context, const CurvesLayout& plot, double value);

// Where a value stands. Far outside values are pulled nearer, still outside: cairo's coordinates are small integers
// inside.
double plot_y(const CurvesLayout& plot, double value);

struct LineStyle {
  double width = 1.0;
  Colour colour = kInk;
};
void stroke_curve(cairo_t* context, const CurvesLayout& plot, const CurveStretch& stretch, const LineStyle& style);

}  // namespace routing
