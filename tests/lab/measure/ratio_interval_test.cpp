#include "lab/measure/ratio_interval.h"

#include "routing/core/error.h"
#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace routing::ratio_interval_test {
namespace {

// t(0.975, 2) = 4.302653, t² / 6 = 3.085470; sums of squares and products all 2; so the roots of
// 114.829060 r² - 2 · 15.829060 r - 2.170940 = 0.
TEST(RatioInterval, HandWorked) {
  const std::vector<double> a{1.0, 2.0, 3.0};
  const std::vector<double> b{10.0, 11.0, 12.0};
  const RatioInterval interval = ratio_interval(a, b);
  EXPECT_TRUE(interval.bounded);
  EXPECT_DOUBLE_EQ(interval.ratio, 2.0 / 11.0);
  EXPECT_NEAR(interval.low, -0.056852, 1e-6);
  EXPECT_NEAR(interval.high, 0.332549, 1e-6);
}

// By its definition: at both ends a - r b is just not clearly different from 0.
TEST(RatioInterval, EndsWhereTheDifferenceStopsToBeClear) {
  RandomStream stream(7, "ratios");
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 20; ++i) {
    b.push_back(1.0 + 0.5 * stream.normal());
    a.push_back(0.3 * b.back() + 0.2 * stream.normal());
  }
  const RatioInterval interval = ratio_interval(a, b, 0.9);
  ASSERT_TRUE(interval.bounded);
  EXPECT_LT(interval.low, interval.ratio);
  EXPECT_GT(interval.high, interval.ratio);
  for (const double end : {interval.low, interval.high}) {
    std::vector<double> rest;
    for (std::size_t i = 0; i < a.size(); ++i) rest.push_back(a[i] - end * b[i]);
    const MeanInterval difference = mean_interval(rest, 0.9);
    EXPECT_NEAR(std::abs(difference.mean), difference.half_width, 1e-9);
  }
}

TEST(RatioInterval, HoldsTheTrueRatioAsOftenAsPromised) {
  RandomStream stream(9, "ratios");
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < 8; ++i) {
      b.push_back(1.0 + 0.3 * stream.normal());
      a.push_back(0.4 + 0.2 * stream.normal());
    }
    const RatioInterval interval = ratio_interval(a, b);
    if (interval.low <= 0.4 && 0.4 <= interval.high) ++held;
  }
  // 1900 expected, standard deviation 10.
  EXPECT_GT(held, 1860);
  EXPECT_LT(held, 1940);
}

TEST(RatioInterval, IsBoundedExactlyWhereTheDenominatorIsClearlyNotZero) {
  const std::vector<double> a{1.0, 1.2, 0.9, 1.1};
  for (const double shift : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0}) {
    const std::vector<double> b{shift + 0.4, shift - 0.3, shift + 0.2, shift - 0.35};
    const MeanInterval own = mean_interval(b);
    const RatioInterval interval = ratio_interval(a, b);
    EXPECT_EQ(interval.bounded, own.low() > 0.0 || own.high() < 0.0) << shift;
    EXPECT_EQ(interval.bounded, std::isfinite(interval.low) && std::isfinite(interval.high)) << shift;
  }
}

TEST(RatioInterval, NeedsPairs) {
  const std::vector<double> two{1.0, 2.0};
  const std::vector<double> one{1.0};
  EXPECT_THROW(ratio_interval(two, one), InputError);
  EXPECT_THROW(ratio_interval({}, {}), InputError);
  EXPECT_FALSE(ratio_interval(one, one).bounded) << "one pair says nothing about spread";
}

}  // namespace
}  // namespace routing::ratio_interval_test
