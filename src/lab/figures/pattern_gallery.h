// The paper's Figure 1 for every pattern: real plans of a short sequence, as panels to draw.
#pragma once

#include "lab/figures/pattern_figure.h"
#include "routing/config/attention.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>
#include <string>

namespace routing {

// Sequence lengths a reader can still make out; the dense picture of n tokens has n * n cells.
inline constexpr std::int64_t kShortestGallery = 4;
inline constexpr std::int64_t kLongestGallery = 512;

// What a head of the first sequence of a plan reads: a cell's colour is the first group that shows it.
PatternPanel panel_of_plan(const Plan& plan, std::string title, std::string caption, std::int64_t head = 0);

// What stands in the gallery: runs of `run` tokens around a few directions, the same for the same seed.
struct MixtureOptions {
  std::int64_t n = 64;
  std::int64_t run = 4;
  std::uint64_t seed = 1;
  bool causal = true;
};
// The plan of one head over such tokens; centroids and thresholds have trained on others like them.
Plan plan_over_mixture(const HeadGroupConfig& group, const MixtureOptions& options);

// All patterns, causal and bidirectional, those by position in one row and those by content in the next, with windows
// and strides of about sqrt(n). Content-based patterns see vectors of a visible mixture: runs of tokens around a few
// directions; routing has trained its centroids and thresholds on some of it. Throws a ConfigError if n is not within
// the limits above.
PatternFigure pattern_gallery(std::int64_t n, std::uint64_t seed);

}  // namespace routing
