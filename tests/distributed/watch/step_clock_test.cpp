// Time in steps, and beside them.
#include "routing/distributed/watch/step_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace routing::step_clock_test {
namespace {

TEST(StepClock, CountsEarlierPartsInSecondsAndStepsAloneInTheRate) {
  StepClock clock(100.0);
  EXPECT_GE(clock.seconds(), 100.0);
  EXPECT_EQ(clock.steps(), 0);
  EXPECT_EQ(clock.tokens_per_second(), 0.0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  clock.begin_step();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  clock.end_step(500);
  clock.begin_step();
  clock.end_step(500);
  EXPECT_EQ(clock.steps(), 2);
  EXPECT_GE(clock.step_seconds(), 0.002);
  EXPECT_LE(clock.step_seconds(), clock.seconds() - 100.0 - 0.030) << "what is beside the steps does not count";
  EXPECT_DOUBLE_EQ(clock.tokens_per_second(), 1000.0 / clock.step_seconds());
}

}  // namespace
}  // namespace routing::step_clock_test
