#include "lab/measure/timing.h"

#include "lab/measure/statistics.h"

#include <chrono>
#include <cmath>

namespace routing::bench {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Timing summarise(const std::vector<double>& seconds) {
  return {.median = quantile(seconds, 0.5),
          .lower_quartile = quantile(seconds, 0.25),
          .upper_quartile = quantile(seconds, 0.75),
          .fastest = quantile(seconds, 0.0),
          .slowest = quantile(seconds, 1.0),
          .samples = static_cast<int>(seconds.size())};
}

std::optional<double> growth_exponent(std::span<const GrowthPoint> points) {
  double mean_x = 0.0;
  double mean_y = 0.0;
  for (const GrowthPoint& point : points) {
    if (!(point.size > 0.0) || !(point.cost > 0.0)) return std::nullopt;
    mean_x += std::log(point.size) / static_cast<double>(points.size());
    mean_y += std::log(point.cost) / static_cast<double>(points.size());
  }
  double covariance = 0.0;
  double variance = 0.0;
  bool differ = false;
  for (const GrowthPoint& point : points) {
    const double x = std::log(point.size) - mean_x;
    covariance += x * (std::log(point.cost) - mean_y);
    variance += x * x;
    differ = differ || point.size != points.front().size;
  }
  if (!differ) return std::nullopt;
  return covariance / variance;
}

}  // namespace routing::bench
