#include "routing/kernels/pointwise/log_sum_exp.h"

#include "routing/core/random.h"
#include "routing/kernels/dispatch/lanes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace routing::kernels::log_sum_exp_test {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

TEST(LaneExp, IsWithinTwoUnitsInTheLastPlace) {
  double worst = 0.0;
  for (int i = 0; i <= 174000; ++i) {
    const float x = -87.0F + 0.001F * static_cast<float>(i);
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(lane_exp(x)) - exact) / exact);
  }
  EXPECT_LE(worst, 2.0 * 0x1.0p-23);
  EXPECT_EQ(lane_exp(0.0F), 1.0F);
  EXPECT_EQ(lane_exp(-88.0F), 0.0F);
  EXPECT_EQ(lane_exp(kMinusInfinity), 0.0F);
  EXPECT_TRUE(std::isnan(lane_exp(std::nanf(""))));
}

TEST(LaneSum, AddsEveryTermOnceInTheWrittenOrder) {
  for (std::int64_t count = 0; count <= 70; ++count) {
    EXPECT_EQ(lane_sum(count, [](std::int64_t i) { return static_cast<float>(i); }),
              static_cast<float>(count * (count - 1) / 2));
  }
  // Terms 0 and 16 share a lane: 2^24 swallows the 1 of term 16, but not the sum of the other lanes.
  const auto term = [](std::int64_t i) { return i == 0 ? 0x1.0p24F : 1.0F; };
  EXPECT_EQ(lane_sum(17, term), 0x1.0p24F + 14.0F + 2.0F - 2.0F);
}

// Panels of different widths against one sum in double.
TEST(AddPanel, RunningSumsEqualTheSumOverAllColumns) {
  constexpr std::int64_t kRows = 37;
  RandomStream stream(1, "log sum exp");
  std::vector<double> exact(kRows, 0.0);
  std::vector<float> largest(kRows, kMinusInfinity);
  std::vector<double> sum(kRows, 0.0);
  std::vector<float> picked(kRows, -1.0F);
  std::vector<float> wanted(kRows, -1.0F);
  std::vector<std::int64_t> targets;
  for (std::int64_t row = 0; row < kRows; ++row) targets.push_back(row - 1);
  std::int64_t first = 0;
  for (const std::int64_t columns : {1, 5, 16, 33}) {
    std::vector<float> logits;
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t c = 0; c < columns; ++c) {
        logits.push_back(static_cast<float>(3.0 * stream.normal() + static_cast<double>(first)));
        exact[static_cast<std::size_t>(row)] += std::exp(static_cast<double>(logits.back()));
        if (first + c == targets[static_cast<std::size_t>(row)]) wanted[static_cast<std::size_t>(row)] = logits.back();
      }
    }
    add_panel(logits.data(), {.num_rows = kRows, .first_column = first, .columns = columns}, targets.data(),
              {largest.data(), sum.data()}, picked.data());
    first += columns;
  }
  EXPECT_EQ(picked, wanted);
  for (std::size_t row = 0; row < exact.size(); ++row) {
    EXPECT_NEAR(std::log(sum[row]) + largest[row], std::log(exact[row]), 1e-6) << row;
  }
}

// Wherever it stands: exp of it would be infinite, were another number taken for the largest.
TEST(AddPanel, ANumberFarAboveTheOthersIsTheLargest) {
  for (std::int64_t columns = 1; columns <= 40; ++columns) {
    for (std::int64_t place = 0; place < columns; ++place) {
      std::vector<float> logits(static_cast<std::size_t>(columns), 0.0F);
      logits[static_cast<std::size_t>(place)] = 500.0F;
      float largest = kMinusInfinity;
      double sum = 0.0;
      float picked = 0.0F;
      add_panel(logits.data(), {.num_rows = 1, .columns = columns}, &place, {&largest, &sum}, &picked);
      EXPECT_EQ(largest, 500.0F) << place << " of " << columns;
      EXPECT_EQ(sum, 1.0) << place << " of " << columns;
      EXPECT_EQ(picked, 500.0F);
    }
  }
}

TEST(AddPanel, RowsOfMinusInfinityAddNothing) {
  const std::vector<float> nothing(3, kMinusInfinity);
  const std::vector<float> ones(3, 1.0F);
  const std::int64_t target = 0;
  float largest = kMinusInfinity;
  double sum = 0.0;
  float picked = 0.0F;
  add_panel(nothing.data(), {.num_rows = 1, .columns = 3}, &target, {&largest, &sum}, &picked);
  EXPECT_EQ(sum, 0.0);
  EXPECT_EQ(picked, kMinusInfinity);
  add_panel(ones.data(), {.num_rows = 1, .first_column = 3, .columns = 3}, &target, {&largest, &sum}, &picked);
  EXPECT_EQ(largest, 1.0F);
  EXPECT_EQ(sum, 3.0);
}

TEST(LogitsToGradient, HandWorkedRows) {
  // Probabilities 1/4 and 3/4, target the second of them, gradient 2; then a row that does not count.
  const auto log3 = static_cast<float>(std::log(3.0));
  std::vector<float> logits{0.0F, log3, 5.0F, 6.0F};
  const std::vector<std::int64_t> targets{11, -1};
  const std::vector<float> log_sum_exp{static_cast<float>(std::log(4.0)), 0.0F};
  const std::vector<float> gradient{2.0F, 2.0F};
  logits_to_gradient(logits.data(), {.num_rows = 2, .first_column = 10, .columns = 2},
                     {targets.data(), log_sum_exp.data(), gradient.data()});
  EXPECT_NEAR(logits[0], 0.5F, 1e-6F);
  EXPECT_NEAR(logits[1], -0.5F, 1e-6F);
  EXPECT_EQ(logits[2], 0.0F);
  EXPECT_EQ(logits[3], 0.0F);
}

}  // namespace
}  // namespace routing::kernels::log_sum_exp_test
