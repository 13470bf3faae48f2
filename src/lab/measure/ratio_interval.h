// How large is one mean as a share of another?
//
// Fieller's interval: the ratios r for which mean(a - r b) differs from 0 by no more than t(n - 1) standard errors.
// With V and C the variances and covariance of the two means, its ends are the roots of
//
//   (b² - t² V_b) r² - 2 (a b - t² C) r + (a² - t² V_a) = 0
//
// It is a bounded interval exactly if the mean of b is clearly not 0, that is, if 0 is outside its own interval.
// Otherwise any ratio might be true.
#pragma once

#include "lab/measure/statistics.h"

#include <span>

namespace routing {

struct RatioInterval {
  double ratio = 0.0;    // of the means
  bool bounded = false;  // if not, low and high are infinite
  double low = 0.0;
  double high = 0.0;
};

// numerators[i] and denominators[i] belong together; the pairs are independent. An InputError for lists of different
// lengths or without values.
RatioInterval ratio_interval(std::span<const double> numerators, std::span<const double> denominators,
                             double confidence = kConfidence);

}  // namespace routing
