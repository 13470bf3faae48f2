#include "routing/evaluation/likelihood.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace routing::likelihood_test {
namespace {

TEST(Likelihood, AByteAtRandomCostsEightBits) {
  EXPECT_DOUBLE_EQ(bits(std::log(2.0)), 1.0);
  EXPECT_DOUBLE_EQ(bits(std::log(256.0)), 8.0);
  EXPECT_DOUBLE_EQ(bits_per_byte(1000.0 * std::log(256.0), 1000), 8.0);
  // Two bytes per token: the bytes count, not the tokens.
  EXPECT_DOUBLE_EQ(bits_per_byte(3.0 * std::log(16.0), 6), 2.0);
}

TEST(Likelihood, NoBytesAndNoTokensAreRefused) {
  EXPECT_THROW(bits_per_byte(1.0, 0), InputError);
  EXPECT_THROW(NatsSum().mean(), InputError);
  EXPECT_EQ(NatsSum().total(), 0.0);
  EXPECT_EQ(NatsSum().tokens(), 0);
}

TEST(NatsSum, AddsAndCounts) {
  NatsSum sum;
  for (const double nats : {1.0, 2.5, 0.25, 0.25}) sum.add(nats);
  EXPECT_EQ(sum.total(), 4.0);
  EXPECT_EQ(sum.tokens(), 4);
  EXPECT_EQ(sum.mean(), 1.0);
}

// Added plainly, each of the small ones would vanish beside 1e16.
TEST(NatsSum, SmallNumbersCountBesideLargeOnes) {
  NatsSum large_first;
  large_first.add(1e16);
  for (int i = 0; i < 1000; ++i) large_first.add(0.5);
  EXPECT_EQ(large_first.total(), 1e16 + 500.0);
  NatsSum large_last;
  for (int i = 0; i < 5; ++i) large_last.add(0.3);
  large_last.add(1e16);
  large_last.add(-1e16);
  EXPECT_NEAR(large_last.total(), 1.5, 1e-15);
}

TEST(NatsSum, ImpossibleTokensAreInfiniteAndUndefinedOnesStayUndefined) {
  NatsSum impossible;
  impossible.add(1.0);
  impossible.add(std::numeric_limits<double>::infinity());
  impossible.add(1.0);
  EXPECT_EQ(impossible.total(), std::numeric_limits<double>::infinity());
  impossible.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(impossible.total()));
}

}  // namespace
}  // namespace routing::likelihood_test
