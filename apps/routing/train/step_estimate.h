// How many training steps fit into some minutes, from steps timed one by one.
#pragma once

#include <cstdint>
#include <functional>

namespace routing {

struct TimingLimits {
  double least_seconds = 0.0;  // of steps that are timed: short ones are many, so that a moment does not decide
  double most_seconds = 0.0;
};

// From a hundredth to a twentieth of the time there is.
TimingLimits timing_limits(double minutes);

// Seconds of a usual step: the median of at least 9 that time_one_step() returns, and of at least `least_seconds`. A
// few steps that something else on the machine disturbed do not move it. If the median is more than a quarter above the
// fastest, more than a few may have been: then steps are timed on up to 27, unless those so far took `most_seconds`.
double seconds_per_step(const std::function<double()>& time_one_step, const TimingLimits& limits);

// Rounded down to tens, and at least 10.
std::int64_t steps_that_fit(double minutes, double step_seconds);

}  // namespace routing
