// The table and the picture of how differently heads attend (jensen_shannon.h).
#pragma once

#include "lab/figures/matrix_figure.h"
#include "lab/heads/jensen_shannon.h"

#include <string>

namespace routing {

// A heat map per layer: every head against every other one.
MatrixFigure divergence_figure(const HeadDivergence& result, const std::string& title);

// A row per layer: local against local, local against content, content against content, each with the published figure
// of that layer beside it, which is not a target (docs/facts.md E7).
std::string divergence_markdown(const HeadDivergence& result);

}  // namespace routing
