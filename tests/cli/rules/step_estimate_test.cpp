#include "train/step_estimate.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <vector>

namespace routing::step_estimate_test {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Estimate {
  double seconds = 0.0;
  std::size_t timed = 0;
};

// The timings one after the other, then `rest` for ever.
Estimate estimate(const std::vector<double>& timings, double rest,
                  const TimingLimits& limits = {.most_seconds = kNoLimit}) {
  Estimate result;
  result.seconds = seconds_per_step(
      [&] {
        const std::size_t index = result.timed++;
        return index < timings.size() ? timings[index] : rest;
      },
      limits);
  return result;
}

TEST(StepEstimate, TimingTakesOneToFivePercent) {
  EXPECT_DOUBLE_EQ(timing_limits(3.0).least_seconds, 1.8);
  EXPECT_DOUBLE_EQ(timing_limits(3.0).most_seconds, 9.0);
}

TEST(SecondsPerStep, IsTheMedianOfNineSteadySteps) {
  const Estimate result = estimate({0.26, 0.24, 0.25, 0.23, 0.27, 0.22, 0.28, 0.21, 0.245}, 9.0);
  EXPECT_EQ(result.seconds, 0.245);
  EXPECT_EQ(result.timed, 9U);
}

TEST(SecondsPerStep, IsNotMovedByFourOfNineThatTookMuchLonger) {
  EXPECT_EQ(estimate({3.6, 0.24, 3.6, 0.24, 3.6, 0.24, 0.24, 3.6, 0.24}, 9.0).seconds, 0.24);
}

TEST(SecondsPerStep, AMachineDisturbedInTheBeginningIsTimedUntilItIsQuiet) {
  const Estimate result = estimate({3.6, 3.6, 3.6, 3.6, 3.6, 3.6, 3.6, 3.6}, 0.24);
  EXPECT_EQ(result.seconds, 0.24);
  EXPECT_EQ(result.timed, 17U);  // 9 of 17 are quick
}

TEST(SecondsPerStep, AMachineThatIsAlwaysSlowIsTakenAsItIs) {
  const Estimate result = estimate({}, 2.0);
  EXPECT_EQ(result.seconds, 2.0);
  EXPECT_EQ(result.timed, 9U);
}

TEST(SecondsPerStep, TimesTwentySevenStepsAtMost) {
  std::vector<double> timings;
  for (int i = 0; i < 9; ++i) timings.insert(timings.end(), {1.0, 2.0, 4.0});
  const Estimate result = estimate(timings, 9.0);
  EXPECT_EQ(result.seconds, 2.0);
  EXPECT_EQ(result.timed, 27U);
}

TEST(SecondsPerStep, StopsAtTheTimeLimitButNotBeforeNineSteps) {
  const std::vector<double> timings = {1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 1.0, 1.0};
  EXPECT_EQ(estimate(timings, 9.0, {.most_seconds = 0.1}).timed, 9U);
  EXPECT_EQ(estimate(timings, 9.0, {.most_seconds = 34.5}).timed, 11U);
}

TEST(SecondsPerStep, TimesShortStepsForTheLeastTime) {
  // The first 12 seem steady and take 0.6 seconds; what comes after is the rule: 22 more reach 2.8 seconds.
  const Estimate result = estimate(std::vector<double>(12, 0.05), 0.1, {.least_seconds = 2.75, .most_seconds = 2.75});
  EXPECT_EQ(result.timed, 34U);
  EXPECT_EQ(result.seconds, 0.1);
}

TEST(StepsThatFit, AreWholeTensAndAtLeastTen) {
  EXPECT_EQ(steps_that_fit(3.0, 0.25), 720);
  EXPECT_EQ(steps_that_fit(3.0, 0.237), 750);  // 759.49
  EXPECT_EQ(steps_that_fit(1.0, 30.0), 10);
}

}  // namespace
}  // namespace routing::step_estimate_test
