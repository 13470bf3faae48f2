#include "routing/kernels/optim/sum_of_squares.h"

#include "routing/core/parallel.h"
#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace routing::kernels::sum_of_squares_test {
namespace {

template <class Number>
class SumOfSquares : public ::testing::Test {
 protected:
  static double sum(const std::vector<Number>& numbers) {
    return sum_of_squares(numbers.data(), static_cast<std::int64_t>(numbers.size()));
  }
};

using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SumOfSquares, Numbers);

TYPED_TEST(SumOfSquares, HandWorkedCases) {
  EXPECT_EQ(this->sum({}), 0.0);
  EXPECT_EQ(this->sum({-3}), 9.0);
  EXPECT_EQ(this->sum({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 385.0);
}

// Small whole numbers: every sum is exact, so no tolerance can hide a wrong tail.
TYPED_TEST(SumOfSquares, EqualsPlainLoopsAtEveryTail) {
  RandomStream stream(1, "squares");
  for (const std::size_t count : {1UL, 3UL, 7UL, 8UL, 9UL, 15UL, 16UL, 17UL, 1000UL, 65536UL, 65537UL, 200000UL}) {
    std::vector<TypeParam> numbers(count);
    double expected = 0.0;
    for (TypeParam& number : numbers) {
      const int whole = static_cast<int>(stream.below(19)) - 9;
      number = static_cast<TypeParam>(whole);
      expected += whole * whole;
    }
    EXPECT_EQ(this->sum(numbers), expected) << count;
  }
}

TYPED_TEST(SumOfSquares, BitsDoNotDependOnTheNumberOfThreads) {
  RandomStream stream(2, "squares");
  std::vector<TypeParam> numbers(7 * 65536 + 13);
  for (TypeParam& number : numbers) number = static_cast<TypeParam>(stream.normal());
  const int threads_before = num_threads();
  std::vector<double> results;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    results.push_back(this->sum(numbers));
  }
  set_num_threads(threads_before);
  EXPECT_NEAR(results[0], static_cast<double>(numbers.size()), 5000.0);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TYPED_TEST(SumOfSquares, NonFiniteNumbersMakeItNotFinite) {
  for (const TypeParam bad :
       {std::numeric_limits<TypeParam>::infinity(), std::numeric_limits<TypeParam>::quiet_NaN()}) {
    for (const std::size_t place : {0UL, 99UL}) {
      std::vector<TypeParam> numbers(100, TypeParam{1});
      numbers[place] = bad;
      EXPECT_FALSE(std::isfinite(this->sum(numbers)));
    }
  }
}

TEST(SumOfSquaresOfFloats, DoesNotOverflowOrVanish) {
  const std::vector<float> large(10, 3e38F);
  EXPECT_NEAR(sum_of_squares(large.data(), 10), 9e77, 1e71);
  const std::vector<float> small(10, 1e-30F);
  EXPECT_NEAR(sum_of_squares(small.data(), 10), 1e-59, 1e-65);
}

}  // namespace
}  // namespace routing::kernels::sum_of_squares_test
