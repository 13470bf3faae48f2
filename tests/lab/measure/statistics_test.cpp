#include "lab/measure/statistics.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace routing::statistics_test {
namespace {

TEST(StudentT, QuantilesAreThoseOfPrintedTables) {
  struct Printed {
    double share, degrees, t;
  };
  // Three digits, as tables of Student's t have them.
  for (const Printed& row : std::vector<Printed>{{0.975, 1, 12.706},
                                                 {0.975, 2, 4.303},
                                                 {0.975, 3, 3.182},
                                                 {0.975, 4, 2.776},
                                                 {0.975, 9, 2.262},
                                                 {0.975, 30, 2.042},
                                                 {0.975, 120, 1.980},
                                                 {0.95, 1, 6.314},
                                                 {0.95, 5, 2.015},
                                                 {0.995, 2, 9.925},
                                                 {0.9995, 1, 636.619},
                                                 {0.9, 10, 1.372}}) {
    EXPECT_NEAR(student_t_quantile(row.share, row.degrees), row.t, 0.0005 * 1.01) << row.share << " " << row.degrees;
  }
}

// For 1, 2 and 4 degrees there are closed forms.
TEST(StudentT, QuantilesAreThoseOfTheClosedForms) {
  for (const double share : {0.501, 0.6, 0.75, 0.9, 0.975, 0.999, 0.99999}) {
    const double cauchy = std::tan(std::numbers::pi * (share - 0.5));
    EXPECT_NEAR(student_t_quantile(share, 1.0) / cauchy, 1.0, 1e-9) << share;
    const double a = 4.0 * share * (1.0 - share);
    const double two = 2.0 * (share - 0.5) * std::sqrt(2.0 / a);
    EXPECT_NEAR(student_t_quantile(share, 2.0) / two, 1.0, 1e-9) << share;
    const double four = 2.0 * std::sqrt(std::cos(std::acos(std::sqrt(a)) / 3.0) / std::sqrt(a) - 1.0);
    EXPECT_NEAR(student_t_quantile(share, 4.0) / four, 1.0, 1e-8) << share;
  }
}

TEST(StudentT, IsOddAboutTheMiddleAndGaussianForManyDegrees) {
  EXPECT_NEAR(student_t_quantile(0.5, 3.0), 0.0, 1e-12);
  EXPECT_EQ(student_t_quantile(0.025, 7.0), -student_t_quantile(0.975, 7.0));
  EXPECT_NEAR(student_t_quantile(0.975, 1e6), 1.959964, 4e-6);
  EXPECT_NEAR(student_t_quantile(0.975, 1e12), 1.959964, 4e-6);
}

TEST(StudentT, SharesAndDegreesThatCannotBeAreRefused) {
  EXPECT_THROW(student_t_quantile(0.0, 3.0), InputError);
  EXPECT_THROW(student_t_quantile(1.0, 3.0), InputError);
  EXPECT_THROW(student_t_quantile(std::nan(""), 3.0), InputError);
  EXPECT_THROW(student_t_quantile(0.5, 0.0), InputError);
}

TEST(Quantile, IsLinearBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.0), 1.0);
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2.0);
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.75), 2.5);
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 1.0), 3.0);
  EXPECT_DOUBLE_EQ(quantile({4}, 0.98), 4.0);
  EXPECT_THROW(quantile({}, 0.5), InputError);
}

TEST(Quantile, OfAnEvenNumberLiesBetweenNeighbours) {
  const std::vector<double> values{40.0, 10.0, 30.0, 20.0};
  EXPECT_DOUBLE_EQ(quantile(values, 0.0), 10.0);
  EXPECT_DOUBLE_EQ(quantile(values, 1.0), 40.0);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 25.0);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 17.5);
  EXPECT_DOUBLE_EQ(quantile({7.0}, 0.75), 7.0);
  EXPECT_THROW(quantile({}, 0.5), InputError);
}

// 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, s = sqrt(13), 4.302653 x sqrt(13 / 3) = 8.956686.
TEST(MeanIntervals, OfThreeValuesIsTheOneWorkedOutByHand) {
  const std::vector<double> values{2.0, 4.0, 9.0};
  const MeanInterval interval = mean_interval(values);
  EXPECT_DOUBLE_EQ(interval.mean, 5.0);
  EXPECT_DOUBLE_EQ(interval.deviation, std::sqrt(13.0));
  EXPECT_NEAR(interval.half_width, 8.956686, 2e-6);
  EXPECT_EQ(interval.values, 3);
  EXPECT_DOUBLE_EQ(interval.low(), 5.0 - interval.half_width);
  EXPECT_DOUBLE_EQ(interval.high(), 5.0 + interval.half_width);
  EXPECT_DOUBLE_EQ(mean(values), 5.0);
  EXPECT_DOUBLE_EQ(standard_deviation(values), std::sqrt(13.0));
}

TEST(MeanIntervals, OfOneValueIsEverything) {
  const std::vector<double> values{2.0};
  EXPECT_EQ(mean_interval(values).mean, 2.0);
  EXPECT_TRUE(std::isinf(mean_interval(values).half_width));
  EXPECT_EQ(standard_deviation(values), 0.0);
  EXPECT_THROW(mean_interval({}), InputError);
  EXPECT_THROW(mean({}), InputError);
  EXPECT_THROW(standard_deviation({}), InputError);
  EXPECT_THROW(mean_interval(values, 1.0), InputError);
}

TEST(MeanIntervals, HoldTheTrueMeanAsOftenAsTheySay) {
  RandomStream stream(1, "test of intervals");
  int hits = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 3; ++i) values.push_back(3.0 + 2.0 * stream.normal());
    const MeanInterval interval = mean_interval(values);
    hits += interval.low() <= 3.0 && 3.0 <= interval.high() ? 1 : 0;
  }
  // Four standard deviations of a binomial share are 1.4 %. With 1.96 for t it would be 81 %.
  EXPECT_NEAR(static_cast<double>(hits) / kTrials, 0.95, 0.014);
}

// 3 - 1, 5 - 4, 10 - 7: mean 2, deviation 1, 4.302653 / sqrt(3) = 2.484138.
TEST(PairedDifferences, ForgetWhatPairsHaveInCommon) {
  const MeanInterval interval =
      paired_difference(std::vector<double>{3.0, 5.0, 10.0}, std::vector<double>{1.0, 4.0, 7.0});
  EXPECT_DOUBLE_EQ(interval.mean, 2.0);
  EXPECT_DOUBLE_EQ(interval.deviation, 1.0);
  EXPECT_NEAR(interval.half_width, 2.484138, 1e-6);
  const std::string message = message_of<InputError>([] {
    paired_difference(std::vector<double>{1.0}, std::vector<double>{1.0, 2.0});
  });
  EXPECT_NE(message.find("1 values against 2"), std::string::npos) << message;
}

TEST(SampleMoments, StayExactForManySamplesFarFromZero) {
  SampleMoments moments;
  EXPECT_THROW(moments.interval(), InputError);
  for (int i = 0; i < 1000000; ++i) moments.add(1e9 + (i % 2 == 0 ? 1.0 : -1.0));
  EXPECT_EQ(moments.count(), 1000000);
  const MeanInterval interval = moments.interval();
  EXPECT_NEAR(interval.mean, 1e9, 1e-4);
  EXPECT_NEAR(interval.deviation, 1.0, 1e-5);
  EXPECT_NEAR(interval.half_width, 1.959964e-3, 1e-7);
}

}  // namespace
}  // namespace routing::statistics_test
