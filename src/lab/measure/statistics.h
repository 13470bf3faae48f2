// What a few numbers say about the one behind them: means with intervals, by Student's t.
//
//   mean ± t(0.975, n - 1) · s / sqrt(n)      s² = sum (x - mean)² / (n - 1)
//
// For three seeds t is 4.303, for ten 2.262, for many samples 1.960: the same formula serves both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// An InputError without values.
double mean(std::span<const double> values);
// Of the n - 1 kind; 0 for a single value, an InputError without any.
double standard_deviation(std::span<const double> values);

// The t below which a share of Student's distribution lies, for 0 < share < 1 and degrees > 0.
double student_t_quantile(double share, double degrees);

// The value below which a share of the sorted values lies, by linear interpolation between neighbours: 0 is the
// smallest, 0.5 the median, 1 the largest. An InputError for an empty list.
double quantile(std::vector<double> values, double share);

// Where the true mean is with the confidence asked for, if the values are independent and about normal.
struct MeanInterval {
  double mean = 0.0;
  double half_width = 0.0;  // infinite for a single value, which says nothing about its spread
  double deviation = 0.0;   // standard deviation of one value
  std::int64_t values = 0;

  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
};

inline constexpr double kConfidence = 0.95;

// An InputError without values, or for a confidence outside of (0, 1).
MeanInterval mean_interval(std::span<const double> values, double confidence = kConfidence);

// Of first[i] - second[i]: what two models have in common (seed, sentence) cancels out. An InputError for lists of
// different lengths.
MeanInterval paired_difference(std::span<const double> first, std::span<const double> second,
                               double confidence = kConfidence);

// The same of samples that come one after the other and are not kept (Welford's sums).
class SampleMoments {
 public:
  void add(double value);
  std::int64_t count() const { return count_; }
  // An InputError before the first value.
  MeanInterval interval(double confidence = kConfidence) const;

 private:
  std::int64_t count_ = 0;
  double mean_ = 0.0;
  double squares_ = 0.0;  // sum of squared distances from the mean
};

}  // namespace routing
