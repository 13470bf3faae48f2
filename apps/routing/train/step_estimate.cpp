#include "train/step_estimate.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace routing {
namespace {

constexpr std::size_t kFewestSteps = 9;
constexpr std::size_t kMostSteps = 27;
constexpr double kTolerableSpread = 1.25;

}  // namespace

TimingLimits timing_limits(double minutes) {
  return {.least_seconds = 0.01 * 60.0 * minutes, .most_seconds = 0.05 * 60.0 * minutes};
}

double seconds_per_step(const std::function<double()>& time_one_step, const TimingLimits& limits) {
  std::vector<double> sorted;
  double sum = 0.0;
  while (true) {
    const double seconds = time_one_step();
    sum += seconds;
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), seconds), seconds);
    if (sorted.size() < kFewestSteps || sum < limits.least_seconds) continue;
    const double median = sorted[sorted.size() / 2];
    const bool steady = median <= kTolerableSpread * sorted.front();
    if (steady || sorted.size() >= kMostSteps || sum >= limits.most_seconds) return median;
  }
}

std::int64_t steps_that_fit(double minutes, double step_seconds) {
  return std::max<std::int64_t>(10, static_cast<std::int64_t>(minutes * 60.0 / step_seconds) / 10 * 10);
}

}  // namespace routing
