#include "lab/measure/statistics.h"

#include "routing/core/error.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <limits>

namespace routing {

double mean(std::span<const double> values) {
  return mean_interval(values).mean;
}

double standard_deviation(std::span<const double> values) {
  return mean_interval(values).deviation;
}

double student_t_quantile(double share, double degrees) {
  require<InputError>(share > 0.0 && share < 1.0, "Student's t: the share is ", share, "; give one between 0 and 1");
  require<InputError>(degrees > 0.0, "Student's t: degrees of freedom are ", degrees, "; they must be more than 0");
  // Odd about the middle to the last bit.
  if (share < 0.5) return -student_t_quantile(1.0 - share, degrees);
  return boost::math::quantile(boost::math::students_t(degrees), share);
}

double quantile(std::vector<double> values, double share) {
  require<InputError>(!values.empty(), "quantile of no values; measure at least once");
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - std::floor(place));
}

MeanInterval mean_interval(std::span<const double> values, double confidence) {
  SampleMoments moments;
  for (const double value : values) moments.add(value);
  return moments.interval(confidence);
}

MeanInterval paired_difference(std::span<const double> first, std::span<const double> second, double confidence) {
  require<InputError>(first.size() == second.size(), "paired difference: ", first.size(), " values against ",
                      second.size(), "; give pairs");
  SampleMoments moments;
  for (std::size_t i = 0; i < first.size(); ++i) moments.add(first[i] - second[i]);
  return moments.interval(confidence);
}

void SampleMoments::add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
}

MeanInterval SampleMoments::interval(double confidence) const {
  require<InputError>(count_ > 0, "a mean of no values; measure at least once");
  require<InputError>(confidence > 0.0 && confidence < 1.0, "a confidence of ", confidence,
                      "; give one between 0 and 1");
  MeanInterval result{.mean = mean_, .values = count_};
  if (count_ == 1) {
    result.half_width = std::numeric_limits<double>::infinity();
    return result;
  }
  const auto n = static_cast<double>(count_);
  result.deviation = std::sqrt(squares_ / (n - 1.0));
  result.half_width = student_t_quantile(0.5 + 0.5 * confidence, n - 1.0) * result.deviation / std::sqrt(n);
  return result;
}

}  // namespace routing
