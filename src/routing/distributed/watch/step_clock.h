// How long a run has trained and how fast: the clock of one part, from a start of the program to its end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace routing {

class StepClock {
 public:
  // Runs from now on; earlier parts of the run took so long.
  explicit StepClock(double seconds_before = 0.0) : seconds_before_(seconds_before) {}

  // Of training so far, earlier parts included.
  double seconds() const { return seconds_before_ + since(begin_); }

  void begin_step() { step_begin_ = Clock::now(); }
  void end_step(std::int64_t tokens) {
    step_seconds_ += since(step_begin_);
    tokens_ += tokens;
    ++steps_;
  }
  // Of this part, in steps alone, without evaluation and saving.
  std::int64_t steps() const { return steps_; }
  double step_seconds() const { return step_seconds_; }
  double tokens_per_second() const { return static_cast<double>(tokens_) / std::max(step_seconds_, 1e-9); }

 private:
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  double seconds_before_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point step_begin_ = begin_;
  double step_seconds_ = 0.0;
  std::int64_t tokens_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace routing
