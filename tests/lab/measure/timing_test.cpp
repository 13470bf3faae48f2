#include "lab/measure/timing.h"

#include "lab/measure/flops.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace routing::bench::timing_test {
namespace {

TEST(SecondsOf, AreThoseOfTheWork) {
  int runs = 0;
  const double seconds = seconds_of([&] {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_EQ(runs, 1);
  EXPECT_GE(seconds, 0.005);
}

TEST(BenchStatistics, ExponentsOfExactPowersAreFound) {
  // 3 n^1.5 at 4, 16 and 64.
  const std::vector<GrowthPoint> points{{4.0, 24.0}, {16.0, 192.0}, {64.0, 1536.0}};
  ASSERT_TRUE(growth_exponent(points).has_value());
  EXPECT_NEAR(*growth_exponent(points), 1.5, 1e-12);
}

TEST(BenchStatistics, ExponentsAreLeastSquaresOverLogarithms) {
  // In powers of two x = 0, 1, 2 and y = 0, 2, 2: mean 4/3, slope (1 * 4/3 + 1 * 2/3) / 2 = 1.
  const std::vector<GrowthPoint> points{{1.0, 1.0}, {2.0, 4.0}, {4.0, 4.0}};
  ASSERT_TRUE(growth_exponent(points).has_value());
  EXPECT_NEAR(*growth_exponent(points), 1.0, 1e-12);
}

TEST(BenchStatistics, ThereIsNoExponentWithoutTwoSizesOrWithANumberThatHasNoLogarithm) {
  EXPECT_FALSE(growth_exponent({}).has_value());
  EXPECT_FALSE(growth_exponent(std::vector<GrowthPoint>{{4.0, 24.0}}).has_value());
  EXPECT_FALSE(growth_exponent(std::vector<GrowthPoint>{{4.0, 24.0}, {4.0, 25.0}}).has_value());
  EXPECT_FALSE(growth_exponent(std::vector<GrowthPoint>{{4.0, 24.0}, {8.0, 0.0}}).has_value());
}

TEST(BenchFlops, CountProductsOfAttendedPairsOnly) {
  // 10 pairs, dim 3, value_dim 5. Forward: 10 dot products of 3 and 10 sums of 5 numbers, two operations each.
  EXPECT_DOUBLE_EQ(attention_forward_flops(10, 3, 5), 160.0);
  // Backward: scores, dK and dQ over 3, dP and dV over 5: 2 * 10 * (9 + 10).
  EXPECT_DOUBLE_EQ(attention_backward_flops(10, 3, 5), 380.0);
  // [2, 3] x [3, 4]: eight sums of three products.
  EXPECT_DOUBLE_EQ(product_flops(2, 3, 4), 48.0);
}

}  // namespace
}  // namespace routing::bench::timing_test
