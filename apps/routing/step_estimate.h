// How many training steps fit into some minutes, from steps timed one by one.
#pragma once

#include <cstdint>
#include <functional>

namespace routing {

// Seconds of a usual step: the median of at least 9 that time_one_step() returns. A few steps that something else on
// the machine disturbed do not move it. If the median is more than a quarter above the fastest, more than a few may
// have been: then steps are timed on, 27 at most, unless those so far took `most_seconds`.
double seconds_per_step(const std::function<double()>& time_one_step, double most_seconds);

// Rounded down to tens, and at least 10.
std::int64_t steps_that_fit(double minutes, double step_seconds);

}  // namespace routing
