// What a list of timings says, and how a quantity grows with another.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace routing::bench {

// How long the work takes, by the steady clock.
double seconds_of(const std::function<void()>& work);

// Seconds of one case over all its runs.
struct Timing {
  double median = 0.0;
  double lower_quartile = 0.0;
  double upper_quartile = 0.0;
  double fastest = 0.0;
  double slowest = 0.0;
  int samples = 0;

  // (upper quartile - lower quartile) / median: how far the middle half of the runs lies apart.
  double spread() const { return median > 0.0 ? (upper_quartile - lower_quartile) / median : 0.0; }
};

Timing summarise(const std::vector<double>& seconds);

struct GrowthPoint {
  double size = 0.0;
  double cost = 0.0;
};

// e of cost = c size^e: the least-squares slope of log cost over log size. Empty if fewer than two sizes differ or a
// number is not above zero.
std::optional<double> growth_exponent(std::span<const GrowthPoint> points);

}  // namespace routing::bench
