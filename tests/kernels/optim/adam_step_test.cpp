#include "routing/kernels/optim/adam_step.h"

#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "support/framed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace routing::kernels::adam_step_test {
namespace {

// A parameter with its moments, for the kernel (float) and for the plain loops (double).
template <class Number>
struct Parameter {
  std::vector<Number> value, first, second;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

void kernel_step(Parameter<float>& parameter, const std::vector<float>& gradient, const AdamStep& step) {
  std::vector<float> value = framed(parameter.value);
  std::vector<float> first = framed(parameter.first);
  std::vector<float> second = framed(parameter.second);
  adam_step({.value = value.data() + kFrame,
             .gradient = gradient.data(),
             .first_moment = first.data() + kFrame,
             .second_moment = second.data() + kFrame,
             .count = static_cast<std::int64_t>(gradient.size())},
            adam_factors(step));
  parameter = {.value = unframed(value), .first = unframed(first), .second = unframed(second)};
}

// The formulas of the header as the papers write them, with corrected moments.
void plain_step(Parameter<double>& parameter, const std::vector<float>& gradient, const AdamStep& step) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double g = step.gradient_scale * static_cast<double>(gradient[i]) + step.l2 * parameter.value[i];
    parameter.first[i] = step.beta1 * parameter.first[i] + (1.0 - step.beta1) * g;
    parameter.second[i] = step.beta2 * parameter.second[i] + (1.0 - step.beta2) * g * g;
    const double m = parameter.first[i] / (1.0 - std::pow(step.beta1, step.step));
    const double v = parameter.second[i] / (1.0 - std::pow(step.beta2, step.step));
    const double decay = step.learning_rate * step.decoupled_decay * parameter.value[i];
    parameter.value[i] -= step.learning_rate * m / (std::sqrt(v) + step.epsilon) + decay;
  }
}

std::vector<float> normal_numbers(std::size_t count, RandomStream& stream) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(stream.normal());
  return numbers;
}

Parameter<float> fresh(std::vector<float> value) {
  const std::size_t count = value.size();
  return {.value = std::move(value), .first = std::vector<float>(count), .second = std::vector<float>(count)};
}

TEST(AdamStep, HandWorkedFirstStep) {
  // g = 0.5 * 4 = 2: m = 0.1 * 2, v = 0.02 * 4; corrected m = 2, v = 4, so the step is 0.25 * 2 / (2 + 2).
  Parameter<float> parameter = fresh({1.0F});
  kernel_step(parameter, {4.0F}, {.learning_rate = 0.25, .epsilon = 2.0, .gradient_scale = 0.5});
  EXPECT_FLOAT_EQ(parameter.first[0], 0.2F);
  EXPECT_FLOAT_EQ(parameter.second[0], 0.08F);
  EXPECT_FLOAT_EQ(parameter.value[0], 0.875F);
}

TEST(AdamStep, FirstStepWithoutEpsilonMovesByTheLearningRateAgainstTheSignOfTheGradient) {
  Parameter<float> parameter = fresh({1.0F, 1.0F, 1.0F, 1.0F});
  kernel_step(parameter, {3.0F, -3.0F, 1e-6F, -1e6F}, {.learning_rate = 0.125, .epsilon = 0.0});
  EXPECT_FLOAT_EQ(parameter.value[0], 0.875F);
  EXPECT_FLOAT_EQ(parameter.value[1], 1.125F);
  EXPECT_FLOAT_EQ(parameter.value[2], 0.875F);
  EXPECT_FLOAT_EQ(parameter.value[3], 1.125F);
}

TEST(AdamStep, DecayIsPartOfTheGradientOrApart) {
  // Without a gradient, l2 0.5 at value 2 is a gradient of 1: a whole step. Decoupled decay only shrinks the value.
  Parameter<float> coupled = fresh({2.0F});
  kernel_step(coupled, {0.0F}, {.learning_rate = 0.25, .epsilon = 1e-9, .l2 = 0.5});
  EXPECT_FLOAT_EQ(coupled.value[0], 1.75F);
  EXPECT_FLOAT_EQ(coupled.first[0], 0.1F);
  Parameter<float> decoupled = fresh({2.0F});
  kernel_step(decoupled, {0.0F}, {.learning_rate = 0.25, .epsilon = 1e-9, .decoupled_decay = 0.5});
  EXPECT_FLOAT_EQ(decoupled.value[0], 1.75F);
  EXPECT_EQ(decoupled.first[0], 0.0F);
}

// float32 against double over ten steps. The tolerance is also what -fno-math-errno has to keep to.
TEST(AdamStep, EqualsPlainLoopsAtEveryTail) {
  RandomStream stream(1, "adam");
  for (const std::size_t count : {0UL, 1UL, 3UL, 15UL, 16UL, 17UL, 1000UL, 16384UL + 5UL}) {
    for (const bool decoupled : {false, true}) {
      Parameter<float> fast = fresh(normal_numbers(count, stream));
      Parameter<double> slow{.value = {fast.value.begin(), fast.value.end()},
                             .first = std::vector<double>(count),
                             .second = std::vector<double>(count)};
      for (std::int64_t step = 1; step <= 10; ++step) {
        const AdamStep settings{.step = step,
                                .learning_rate = 0.01 * static_cast<double>(step),
                                .l2 = decoupled ? 0.0 : 0.03,
                                .decoupled_decay = decoupled ? 0.2 : 0.0,
                                .gradient_scale = 0.3};
        const std::vector<float> gradient = normal_numbers(count, stream);
        kernel_step(fast, gradient, settings);
        plain_step(slow, gradient, settings);
      }
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(fast.value[i], slow.value[i], 2e-6 * (1.0 + std::abs(slow.value[i]))) << i << " of " << count;
        ASSERT_NEAR(fast.first[i], slow.first[i], 1e-6) << i << " of " << count;
        ASSERT_NEAR(fast.second[i], slow.second[i], 1e-6) << i << " of " << count;
      }
    }
  }
}

TEST(AdamStep, BitsDoNotDependOnTheNumberOfThreads) {
  RandomStream stream(2, "adam");
  constexpr std::size_t kCount = 5 * 16384 + 77;
  const Parameter<float> start = fresh(normal_numbers(kCount, stream));
  const std::vector<float> gradient = normal_numbers(kCount, stream);
  const int threads_before = num_threads();
  std::vector<Parameter<float>> results;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    results.push_back(start);
    for (std::int64_t step = 1; step <= 2; ++step) {
      kernel_step(results.back(), gradient, {.step = step, .learning_rate = 0.01, .l2 = 0.1});
    }
  }
  set_num_threads(threads_before);
  EXPECT_NE(results[0].value, start.value);
  EXPECT_TRUE(results[0] == results[1]);
  EXPECT_TRUE(results[0] == results[2]);
}

TEST(AdamStep, MomentsWithoutGradientReachZeroInsteadOfStayingSubnormal) {
  Parameter<float> parameter = fresh({1.0F});
  parameter.first[0] = parameter.second[0] = 4.0F * std::numeric_limits<float>::min();
  for (std::int64_t step = 1; step <= 200; ++step) kernel_step(parameter, {0.0F}, {.step = step});
  EXPECT_EQ(parameter.first[0], 0.0F);
  EXPECT_EQ(parameter.second[0], 0.0F);
}

TEST(AdamStep, NonFiniteGradientsSpoilTheirOwnElementOnly) {
  Parameter<float> parameter = fresh({1.0F, 1.0F, 1.0F});
  kernel_step(parameter, {1.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F}, {.learning_rate = 0.5});
  EXPECT_FLOAT_EQ(parameter.value[0], 0.5F);
  EXPECT_TRUE(std::isnan(parameter.value[1]));
  EXPECT_TRUE(std::isnan(parameter.first[1]) && std::isnan(parameter.second[1]));
  EXPECT_FLOAT_EQ(parameter.value[2], 0.5F);
}

}  // namespace
}  // namespace routing::kernels::adam_step_test
