#include "lab/measure/ratio_interval.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace routing {

RatioInterval ratio_interval(std::span<const double> numerators, std::span<const double> denominators,
                             double confidence) {
  require<InputError>(numerators.size() == denominators.size() && !numerators.empty(),
                      "ratio interval: ", numerators.size(), " numerators and ", denominators.size(),
                      " denominators, but there must be as many of both, and at least 1");
  const double a = mean(numerators);
  const double b = mean(denominators);
  RatioInterval result{
      .ratio = a / b, .low = -std::numeric_limits<double>::infinity(), .high = std::numeric_limits<double>::infinity()};
  const auto count = static_cast<double>(numerators.size());
  if (numerators.size() < 2) return result;
  double var_a = 0.0;
  double var_b = 0.0;
  double covariance = 0.0;
  for (std::size_t i = 0; i < numerators.size(); ++i) {
    var_a += (numerators[i] - a) * (numerators[i] - a);
    var_b += (denominators[i] - b) * (denominators[i] - b);
    covariance += (numerators[i] - a) * (denominators[i] - b);
  }
  const double t = student_t_quantile(0.5 + confidence / 2.0, count - 1.0);
  const double weight = t * t / (count * (count - 1.0));
  const double squared = b * b - weight * var_b;
  if (squared <= 0.0) return result;
  const double half_linear = a * b - weight * covariance;
  const double constant = a * a - weight * var_a;
  // Not negative for a bounded interval, but for rounding.
  const double root = std::sqrt(std::max(0.0, half_linear * half_linear - squared * constant));
  result.bounded = true;
  result.low = (half_linear - root) / squared;
  result.high = (half_linear + root) / squared;
  return result;
}

}  // namespace routing
