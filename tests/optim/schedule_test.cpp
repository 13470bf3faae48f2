#include "routing/optim/schedule.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace routing::schedule_test {
namespace {

constexpr std::int64_t kWarmup = 4;

TrainConfig config_of(ScheduleKind schedule, std::int64_t warmup = kWarmup) {
  TrainConfig config;
  config.steps = 12;
  config.learning_rate = 0.5;
  config.schedule = schedule;
  config.warmup_steps = warmup;
  config.decay_steps = 0;
  config.final_learning_rate = 0.2;
  return config;
}

TEST(Schedule, ConstantRisesToThePeakAndStays) {
  const TrainConfig config = config_of(ScheduleKind::constant);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3), 0.375);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 5), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1000000), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config_of(ScheduleKind::constant, 0), 1), 0.5);
}

TEST(Schedule, VaswaniRisesLinearlyAndFallsWithTheSquareRoot) {
  const TrainConfig config = config_of(ScheduleKind::vaswani);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 5), 0.5 * std::sqrt(0.8));
  EXPECT_DOUBLE_EQ(learning_rate(config, 16), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 400), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(config_of(ScheduleKind::vaswani, 0), 1), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config_of(ScheduleKind::vaswani, 0), 4), 0.25);
}

// width^-0.5 min(t^-0.5, t W^-1.5) for width 1024 and W 4000 peaks at 4.94e-4.
TEST(Schedule, VaswaniIsTheFormulaOfThePaperWithItsPeakNamed) {
  TrainConfig config = config_of(ScheduleKind::vaswani, 4000);
  config.learning_rate = std::pow(1024.0 * 4000.0, -0.5);
  for (const int step : {1, 100, 3999, 4000, 4001, 100000}) {
    const double t = step;
    const double paper = std::pow(1024.0, -0.5) * std::min(std::pow(t, -0.5), t * std::pow(4000.0, -1.5));
    EXPECT_NEAR(learning_rate(config, step), paper, 1e-12 * paper) << step;
  }
}

TEST(Schedule, CosineRisesToThePeakAndFallsToItsFinalShare) {
  // From step 4 to 12: half way down at 8, where (0.2 + 1) / 2 of the peak is left.
  const TrainConfig config = config_of(ScheduleKind::cosine);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 5), 0.5 * (0.2 + 0.8 * (1.0 + std::cos(M_PI / 8.0)) / 2.0));
  EXPECT_DOUBLE_EQ(learning_rate(config, 6), 0.5 * (0.2 + 0.4 * (1.0 + std::sqrt(0.5))));
  EXPECT_DOUBLE_EQ(learning_rate(config, 8), 0.3);
  EXPECT_DOUBLE_EQ(learning_rate(config, 12), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 13), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1000000), 0.1);
}

TEST(Schedule, CosineEndsAtDecayStepsIfGivenAndMayStartAtOnce) {
  TrainConfig config = config_of(ScheduleKind::cosine);
  config.decay_steps = 8;
  EXPECT_DOUBLE_EQ(learning_rate(config, 6), 0.3);
  EXPECT_DOUBLE_EQ(learning_rate(config, 8), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 9), 0.1);
  config.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.3);
  // A warm-up as long as the run: the peak, then the final share, nothing divided by zero.
  config.warmup_steps = 8;
  EXPECT_DOUBLE_EQ(learning_rate(config, 8), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 9), 0.1);
}

// The values of the authors' schedule: 0.01 for 10000 steps, 0.0032 at 100 k, 0.001 at 1 M, 0.00053 at 3.53 M.
TEST(Schedule, RsqrtIsFlatForTheWarmupAndHasNoRise) {
  TrainConfig config = config_of(ScheduleKind::rsqrt, 10000);
  config.learning_rate = 0.01;
  EXPECT_DOUBLE_EQ(learning_rate(config, 1), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(config, 10000), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(config, 10001), 0.01 * std::sqrt(10000.0 / 10001.0));
  EXPECT_DOUBLE_EQ(learning_rate(config, 40000), 0.005);
  EXPECT_NEAR(learning_rate(config, 100000), 0.0032, 0.00005);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1000000), 0.001);
  EXPECT_NEAR(learning_rate(config, 3530000), 0.00053, 0.000005);
}

TEST(Schedule, VaswaniIsRsqrtWithALinearWarmup) {
  for (const std::int64_t warmup : {0, 1, 4, 10000}) {
    for (const std::int64_t step : {1, 2, 3, 4, 5, 9999, 10000, 10001, 3530000}) {
      const double rise =
          std::min(1.0, static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, warmup)));
      EXPECT_DOUBLE_EQ(learning_rate(config_of(ScheduleKind::vaswani, warmup), step),
                       rise * learning_rate(config_of(ScheduleKind::rsqrt, warmup), step))
          << step << " of warm-up " << warmup;
    }
  }
}

TEST(Schedule, StepsBeforeTheFirstAreRefused) {
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::vaswani, ScheduleKind::cosine, ScheduleKind::rsqrt}) {
    EXPECT_THROW(learning_rate(config_of(kind), 0), InputError);
  }
}

}  // namespace
}  // namespace routing::schedule_test
