#include "lab/measure/statistics.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace routing {
namespace {

constexpr double kMostDegrees = 1e6;

// The continued fraction of the incomplete beta function, by Lentz's method. Converges fast for x < (a + 1)/(a + b +
// 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 100000;
  constexpr double kTiny = 1e-300;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double numerator = 1.0;
  double denominator = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
  double result = denominator;
  for (int term = 1; term <= kMostTerms; ++term) {
    const double m = term;
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    denominator = 1.0 / not_zero(1.0 + even * denominator);
    numerator = not_zero(1.0 + even / numerator);
    result *= denominator * numerator;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    denominator = 1.0 / not_zero(1.0 + odd * denominator);
    numerator = not_zero(1.0 + odd / numerator);
    const double factor = denominator * numerator;
    result *= factor;
    if (std::abs(factor - 1.0) < 1e-15) break;
  }
  return result;
}

// I_x(a, b), where y = 1 - x is given as well because it may be too small to be found from x.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0.0) return 0.0;
  if (y <= 0.0) return 1.0;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) +
                                b * (x < 0.5 ? std::log1p(-x) : std::log(y)));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, y) / b;
}

// The share of Student's distribution above t >= 0.
double upper_tail(double t, double degrees) {
  const double sum = degrees + t * t;
  return 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / sum, t * t / sum);
}

}  // namespace

double mean(std::span<const double> values) {
  return mean_interval(values).mean;
}

double standard_deviation(std::span<const double> values) {
  return mean_interval(values).deviation;
}

double student_t_quantile(double share, double degrees) {
  require<InputError>(share > 0.0 && share < 1.0, "Student's t: the share is ", share, "; give one between 0 and 1");
  require<InputError>(degrees > 0.0, "Student's t: degrees of freedom are ", degrees, "; they must be more than 0");
  if (share < 0.5) return -student_t_quantile(1.0 - share, degrees);
  degrees = std::min(degrees, kMostDegrees);
  const double tail = 1.0 - share;
  double low = 0.0;
  double high = 1.0;
  while (upper_tail(high, degrees) > tail) {
    low = high;
    high *= 2.0;
  }
  while (true) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high || high - low < 1e-13 * high) return middle;
    (upper_tail(middle, degrees) > tail ? low : high) = middle;
  }
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
