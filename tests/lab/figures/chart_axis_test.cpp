#include "lab/figures/chart_axis.h"

#include "routing/core/error.h"
#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace routing::chart_axis_test {
namespace {

std::vector<std::string> labels(const AxisRange& range, double step) {
  std::vector<std::string> found;
  for (const AxisTick& tick : ticks_of(range, step)) found.push_back(tick.label);
  return found;
}

using Labels = std::vector<std::string>;
using Values = std::vector<double>;

TEST(ChartAxis, StepIsTheSmallestRoundOneThatNeedsNoMoreSteps) {
  EXPECT_DOUBLE_EQ(round_step(300.0, 7), 50.0);
  EXPECT_DOUBLE_EQ(round_step(6.0, 6), 1.0);
  EXPECT_DOUBLE_EQ(round_step(6.1, 6), 2.0);
  EXPECT_DOUBLE_EQ(round_step(13.0, 6), 5.0);
  EXPECT_DOUBLE_EQ(round_step(31.0, 6), 10.0);
  EXPECT_DOUBLE_EQ(round_step(0.04, 6), 0.01);
  EXPECT_THROW(round_step(0.0, 6), InputError);
  EXPECT_THROW(round_step(1.0, 0), InputError);
}

TEST(ChartAxis, TicksAreTheMultiplesOfTheStepInTheRangeBothEndsIncluded) {
  EXPECT_EQ(labels({0.0, 300.0}, 100.0), (Labels{"0", "100", "200", "300"}));
  EXPECT_EQ(labels({2.09, 4.0}, 0.5), (Labels{"2.5", "3.0", "3.5", "4.0"}));
  EXPECT_EQ(labels({-0.3, 0.3}, 0.1), (Labels{"-0.3", "-0.2", "-0.1", "0.0", "0.1", "0.2", "0.3"}));
  EXPECT_DOUBLE_EQ(ticks_of({2.09, 4.0}, 0.5)[1].value, 3.0);
}

TEST(ChartAxis, ThousandsAndMillionsHaveALetter) {
  EXPECT_EQ(labels({0.0, 2000.0}, 500.0), (Labels{"0", "500", "1k", "1.5k", "2k"}));
  EXPECT_EQ(labels({0.0, 20000.0}, 10000.0), (Labels{"0", "10k", "20k"}));
  EXPECT_EQ(labels({9.5e5, 1.05e6}, 5e4), (Labels{"950k", "1M", "1.05M"}));
  EXPECT_EQ(labels({-2000.0, -1000.0}, 1000.0), (Labels{"-2k", "-1k"}));
  EXPECT_EQ(labels({0.0, 2e9}, 1e9), (Labels{"0", "1G", "2G"}));
}

TEST(ChartAxis, StepsBelowTheLastDigitOfAValueStillEnd) {
  EXPECT_LE(ticks_of({1e17, 1e17 + 64.0}, 1.0).size(), 65U);
}

TEST(ChartAxis, DoublingTicksArePowersOfTwoInFull) {
  EXPECT_EQ(doubling_ticks({1, 8}, 9), (std::vector<AxisTick>{{1, "1"}, {2, "2"}, {4, "4"}, {8, "8"}}));
  EXPECT_EQ(doubling_ticks({1, 4096}, 7),
            (std::vector<AxisTick>{
                {1, "1"}, {4, "4"}, {16, "16"}, {64, "64"}, {256, "256"}, {1024, "1024"}, {4096, "4096"}}));
  EXPECT_EQ(doubling_ticks({0.5, 1}, 1), (std::vector<AxisTick>{{0.5, "0.5"}}));
  EXPECT_THROW(doubling_ticks({0, 8}, 4), InputError);
  EXPECT_THROW(doubling_ticks({1, 8}, 0), InputError);
}

TEST(ChartAxis, RangeGrowsToWholeStepsAndNoFurther) {
  EXPECT_EQ(rounded_outwards({2.09, 8.3}, 1.0), (AxisRange{2.0, 9.0}));
  EXPECT_EQ(rounded_outwards({2.0, 9.0}, 1.0), (AxisRange{2.0, 9.0}));
  const AxisRange tenths = rounded_outwards({0.1, 0.3}, 0.1);
  EXPECT_DOUBLE_EQ(tenths.low, 0.1);
  EXPECT_DOUBLE_EQ(tenths.high, 0.3);
}

TEST(Smoothed, StraightLinesStayWhatTheyAre) {
  Values line;
  for (int i = 0; i < 30; ++i) line.push_back(5.0 - 0.25 * i);
  for (const std::size_t reach : {0U, 1U, 4U, 100U}) {
    const Values result = smoothed(line, reach);
    ASSERT_EQ(result.size(), line.size());
    for (std::size_t i = 0; i < line.size(); ++i) EXPECT_NEAR(result[i], line[i], 1e-12) << reach << " " << i;
  }
}

TEST(Smoothed, OneSpikeIsSharedAmongItsNeighboursByDistance) {
  // Weights 1 2 1 over four.
  const Values result = smoothed({0, 0, 0, 4, 0, 0, 0}, 1);
  const Values expected = {0, 0, 1, 2, 1, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-12) << i;
}

TEST(Smoothed, EndIsTheLineThroughItsTwoNeighbours) {
  // At the end the weights are 2 and 1, and a line through two points fits both.
  EXPECT_NEAR(smoothed({1, 5, 2}, 1).back(), 2.0, 1e-12);
  EXPECT_EQ(smoothed({7}, 3), (Values{7}));
  EXPECT_TRUE(smoothed({}, 3).empty());
}

// 0.5: weights 1, 1/2, 1/4 of the newest, the one before, the first.
TEST(ExponentialMean, HandWorked) {
  EXPECT_EQ(exponential_mean({4, 1, 8}, 0.5), (Values{4, 2, (8 + 0.5 + 1) / 1.75}));
  EXPECT_EQ(exponential_mean({4, 1, 8}, 0.0), (Values{4, 1, 8}));
  EXPECT_TRUE(exponential_mean({}, 0.5).empty());
  for (const double value : exponential_mean(Values(500, 3.0), 0.99)) EXPECT_NEAR(value, 3.0, 1e-12);
}

TEST(SpreadApart, PlacesFarEnoughApartStay) {
  EXPECT_EQ(spread_apart({50, 10, 30}, 10, {0, 100}), (Values{50, 10, 30}));
  EXPECT_TRUE(spread_apart({}, 10, {0, 100}).empty());
}

TEST(SpreadApart, CollidingPlacesMoveEquallyFarAndKeepTheirOrder) {
  EXPECT_EQ(spread_apart({52, 50}, 10, {0, 100}), (Values{56, 46}));
  EXPECT_EQ(spread_apart({50, 50, 50}, 10, {0, 100}), (Values{40, 50, 60}));
  EXPECT_EQ(spread_apart({1, 2}, 10, {0, 100}), (Values{0, 10}));
  EXPECT_EQ(spread_apart({99, 100}, 10, {0, 100}), (Values{90, 100}));
}

TEST(SpreadApart, TooManyShareTheRange) {
  EXPECT_EQ(spread_apart({5, 5, 5, 5, 5}, 10, {0, 20}), (Values{0, 5, 10, 15, 20}));
}

TEST(SpreadApart, RandomPlacesEndUpInOrderInsideAndApart) {
  RandomStream stream(1, "places");
  for (int trial = 0; trial < 300; ++trial) {
    Values wanted(1 + stream.below(10));
    for (double& place : wanted) place = 100.0 * stream.uniform();
    const Values places = spread_apart(wanted, 10.0, {0.0, 100.0});
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_GE(places[i], 0.0);
      EXPECT_LE(places[i], 100.0 + 1e-9);
      for (std::size_t j = 0; j < places.size(); ++j) {
        if (wanted[i] < wanted[j]) {
          EXPECT_GE(places[j] - places[i], 10.0 - 1e-9);
        }
      }
    }
  }
}

}  // namespace
}  // namespace routing::chart_axis_test
