#include "routing/optim/adam.h"

#include "optim/optimizer_cases.h"
#include "routing/core/parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace routing::adam_test {
namespace {

bool same_bits(const at::Tensor& first, const at::Tensor& second) {
  return first.scalar_type() == second.scalar_type() && at::equal(first, second);
}

TEST(Adam, HandWorkedTwoSteps) {
  // Betas 0.5 and 0.75, gradients 2 and then 0, epsilon 0, learning rate 0.5.
  //   m = 1, v = 1: corrected 2 and 4, p = 1 - 0.5 * 2 / 2 = 0.5
  //   m = 0.5, v = 0.75: corrected 0.5 / 0.75 and 0.75 / 0.4375, p = 0.5 - 0.5 * (2/3) / sqrt(12/7)
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const NamedParameter parameter{.name = "p", .value = at::ones({1}, type)};
    Adam adam({parameter}, {.beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.0});
    set_gradient(parameter, at::full({1}, 2.0));
    adam.step(0.5);
    EXPECT_NEAR(parameter.value.item<double>(), 0.5, 1e-6);
    EXPECT_NEAR(adam.state().at("p.first_moment").item<double>(), 1.0, 1e-6);
    EXPECT_NEAR(adam.state().at("p.second_moment").item<double>(), 1.0, 1e-6);
    set_gradient(parameter, at::zeros({1}));
    adam.step(0.5);
    EXPECT_NEAR(parameter.value.item<double>(), 0.5 - std::sqrt(7.0 / 12.0) / 3.0, 1e-6);
    EXPECT_EQ(adam.steps(), 2);
    EXPECT_EQ(adam.state().at("steps").item<std::int64_t>(), 2);
  }
}

// A double parameter goes through tensor operations, a float one through the kernel: two implementations.
TEST(Adam, FloatsAndDoublesAgreeForEveryLayoutAndDecay) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    for (const bool decay : {false, true}) {
      for (const bool transposed : {false, true}) {
        const at::Tensor start = normal_tensor({5, 7}, 1);
        const at::Tensor fast = transposed ? start.t().contiguous().t() : start.clone();
        const at::Tensor slow = start.to(at::kDouble);
        const NamedParameter fast_parameter{.name = "p", .value = fast, .decay = decay};
        const NamedParameter slow_parameter{.name = "p", .value = slow, .decay = decay};
        const AdamOptions options{.kind = kind, .weight_decay = 0.3};
        Adam fast_adam({fast_parameter}, options);
        Adam slow_adam({slow_parameter}, options);
        for (std::uint64_t step = 0; step < 5; ++step) {
          const at::Tensor gradient = normal_tensor({7, 5}, 10 + step).t();
          set_gradient(fast_parameter, gradient);
          set_gradient(slow_parameter, gradient);
          fast_adam.step(0.1, 0.5);
          slow_adam.step(0.1, 0.5);
        }
        EXPECT_LT((fast.to(at::kDouble) - slow).abs().max().item<double>(), 2e-6);
        EXPECT_GT((start - fast).abs().min().item<double>(), 1e-4);
      }
    }
  }
}

TEST(Adam, DecayAppliesOnlyWhereTheParameterSaysSo) {
  // Without a gradient's pull, decoupled decay leaves 1 - 0.5 * 0.5 of the value.
  const NamedParameter matrix{.name = "matrix", .value = at::ones({2, 2})};
  const NamedParameter gain{.name = "gain", .value = at::ones({2}), .decay = false};
  Adam adam({matrix, gain}, {.kind = OptimizerKind::adamw, .weight_decay = 0.5});
  set_gradient(matrix, at::zeros({2, 2}));
  set_gradient(gain, at::zeros({2}));
  adam.step(0.5);
  EXPECT_TRUE(at::equal(matrix.value, at::full({2, 2}, 0.75)));
  EXPECT_TRUE(at::equal(gain.value, at::ones({2})));
}

TEST(Adam, ParametersWithoutGradientAreLeftAloneWithTheirMoments) {
  const NamedParameter moved{.name = "moved", .value = at::ones({3})};
  const NamedParameter left{.name = "left", .value = at::ones({3})};
  Adam adam({moved, left}, {.weight_decay = 0.5});
  set_gradient(moved, at::ones({3}));
  set_gradient(left, at::ones({3}));
  adam.step(0.1);
  const at::Tensor value = left.value.clone();
  const at::Tensor moment = adam.state().at("left.first_moment").clone();
  EXPECT_GT(moment.min().item<double>(), 0.0);
  left.value.mutable_grad().reset();
  const auto version = left.value._version();
  adam.step(0.1);
  EXPECT_TRUE(same_bits(left.value, value));
  EXPECT_TRUE(same_bits(adam.state().at("left.first_moment"), moment));
  EXPECT_EQ(left.value._version(), version);
  EXPECT_LT(moved.value.max().item<double>(), 0.85);
}

TEST(Adam, AStepMovesTheVersionOfTheValueOnEitherPath) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const NamedParameter parameter{.name = "p", .value = at::ones({3}, type).set_requires_grad(true)};
    Adam adam({parameter}, {});
    parameter.value.square().sum().backward();
    const auto version = parameter.value._version();
    adam.step(0.1);
    EXPECT_GT(parameter.value._version(), version);
    EXPECT_TRUE(parameter.value.is_leaf());
  }
}

TEST(Adam, ABackwardPassThroughValuesFromBeforeTheStepIsRefused) {
  const NamedParameter parameter{.name = "p", .value = at::ones({3}).set_requires_grad(true)};
  Adam adam({parameter}, {});
  set_gradient(parameter, at::ones({3}));
  const at::Tensor loss = parameter.value.square().sum();
  adam.step(0.1);
  EXPECT_ANY_THROW(loss.backward());
}

TEST(Adam, ZeroGradientsDropsThem) {
  const NamedParameter parameter{.name = "p", .value = at::ones({3}).set_requires_grad(true)};
  Adam adam({parameter}, {});
  parameter.value.sum().backward();
  adam.zero_gradients();
  EXPECT_FALSE(parameter.value.grad().defined());
  (2.0 * parameter.value).sum().backward();
  EXPECT_TRUE(at::equal(parameter.value.grad(), at::full({3}, 2.0)));
}

TEST(Adam, StepKeepsTheGradientsAndBitsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor start = normal_tensor({300, 301}, 3);
  const at::Tensor gradient = normal_tensor({300, 301}, 4);
  const int threads_before = num_threads();
  std::vector<at::Tensor> values;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const NamedParameter parameter{.name = "p", .value = start.clone()};
    Adam adam({parameter}, {.weight_decay = 0.1});
    set_gradient(parameter, gradient.clone());
    for (int step = 0; step < 3; ++step) adam.step(0.01, 0.7);
    EXPECT_TRUE(same_bits(parameter.value.grad(), gradient));
    values.push_back(parameter.value);
  }
  set_num_threads(threads_before);
  EXPECT_FALSE(at::equal(values[0], start));
  EXPECT_TRUE(same_bits(values[0], values[1]));
  EXPECT_TRUE(same_bits(values[0], values[2]));
}

TEST(Adam, LoadedStateGoesOnWithTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const auto fresh = [&](const at::Tensor& value) {
      return std::vector<NamedParameter>{{.name = "layer.weight", .value = value}};
    };
    const auto train = [&](Adam& adam, std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t step = first; step <= last; ++step) {
        set_gradient(adam.parameters()[0], normal_tensor({4, 9}, 100 + step));
        adam.step(0.01 * static_cast<double>(step));
      }
    };
    Adam unbroken(fresh(normal_tensor({4, 9}, 5, type)), {.weight_decay = 0.1});
    train(unbroken, 1, 3);
    const OptimizerState state = copied_state(unbroken);
    EXPECT_EQ(state.size(), 3U);
    EXPECT_EQ(state.at("steps").scalar_type(), at::kLong);
    EXPECT_EQ(state.at("steps").dim(), 0);
    Adam resumed(fresh(unbroken.parameters()[0].value.clone()), {.weight_decay = 0.1});
    resumed.load_state(state);
    train(unbroken, 4, 6);
    train(resumed, 4, 6);
    EXPECT_EQ(resumed.steps(), 6);
    EXPECT_TRUE(same_bits(resumed.parameters()[0].value, unbroken.parameters()[0].value));
    // What was loaded is a copy.
    EXPECT_FALSE(at::equal(state.at("layer.weight.first_moment"), resumed.state().at("layer.weight.first_moment")));
  }
}

TEST(Adam, StateThatDoesNotFitIsRefusedByNameAndChangesNothing) {
  Adam adam({{.name = "a", .value = at::ones({2, 3})}}, {});
  set_gradient(adam.parameters()[0], at::ones({2, 3}));
  adam.step(0.1);
  std::map<std::string, at::Tensor> good;
  for (const auto& [name, tensor] : adam.state()) good.emplace(name, at::zeros_like(tensor));
  const StateRefusals refusals{adam, good};
  refusals.expect("a.second_moment", {}, "has no");
  refusals.expect("steps", {}, "has no");
  refusals.expect("b.first_moment", at::ones({1}), "another model");
  refusals.expect("a.first_moment", at::ones({3, 2}), "is [3, 2], but must be [2, 3]");
  refusals.expect("a.first_moment", at::ones({2, 3}, at::kDouble), "is Double, but must be Float");
  refusals.expect("steps", at::full({}, -1, at::kLong), "is -1");
  EXPECT_EQ(adam.steps(), 1);
  EXPECT_GT(adam.state().at("a.first_moment").min().item<double>(), 0.0);
  adam.load_state(good);
  EXPECT_EQ(adam.steps(), 0);
  EXPECT_EQ(adam.state().at("a.first_moment").max().item<double>(), 0.0);
}

TEST(Adam, ParametersThatCannotBeAreRefusedByName) {
  const at::Tensor tensor = at::ones({2});
  const auto message = [](const std::vector<NamedParameter>& parameters) {
    return error_of([&] { const Adam adam(parameters, {}); });
  };
  expect_contains(message({{.name = "a", .value = tensor}, {.name = "a", .value = at::ones({2})}}),
                  "\"a\" is listed twice");
  expect_contains(message({{.name = "a", .value = tensor}, {.name = "b", .value = tensor}}),
                  "\"a\" and \"b\" are one tensor");
  expect_contains(message({{.name = "a", .value = {}}}), "\"a\" has no tensor");
  expect_contains(message({{.name = "a", .value = at::ones({2}, at::kLong)}}), "\"a\" is CPULong");
}

TEST(Adam, OptionsThatCannotBeAreRefusedByKey) {
  const auto message = [](const AdamOptions& options) { return error_of([&] { const Adam adam({}, options); }); };
  expect_contains(message({.beta1 = 1.0}), "train.beta1 is 1");
  expect_contains(message({.beta2 = -0.1}), "train.beta2 is -0.1");
  expect_contains(message({.epsilon = -1.0}), "train.epsilon is -1");
  expect_contains(message({.weight_decay = -2.0}), "train.weight_decay is -2");
  EXPECT_EQ(message({}), "");
}

TEST(Adam, NumbersThatAreNotFiniteAreRefusedBeforeAnythingChanges) {
  Adam adam({{.name = "a", .value = at::ones({2})}}, {});
  set_gradient(adam.parameters()[0], at::ones({2}));
  const double undefined = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(adam.step(undefined), InputError);
  EXPECT_THROW(adam.step(-0.1), InputError);
  EXPECT_THROW(adam.step(0.1, undefined), InputError);
  EXPECT_EQ(adam.steps(), 0);
  EXPECT_TRUE(at::equal(adam.parameters()[0].value, at::ones({2})));
}

TEST(Adam, OptionsComeFromTheTrainingSection) {
  TrainConfig config;
  config.optimizer = OptimizerKind::adamw;
  config.beta1 = 0.1;
  config.beta2 = 0.2;
  config.epsilon = 0.3;
  config.weight_decay = 0.4;
  const AdamOptions options = adam_options(config);
  EXPECT_EQ(options.kind, OptimizerKind::adamw);
  EXPECT_EQ(options.beta1, 0.1);
  EXPECT_EQ(options.beta2, 0.2);
  EXPECT_EQ(options.epsilon, 0.3);
  EXPECT_EQ(options.weight_decay, 0.4);
  config.optimizer = OptimizerKind::adafactor;
  expect_contains(error_of([&] { adam_options(config); }), "train.optimizer is adafactor");
}

}  // namespace
}  // namespace routing::adam_test
