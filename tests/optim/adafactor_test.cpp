#include "routing/optim/adafactor.h"

#include "optim/optimizer_cases.h"
#include "routing/core/parallel.h"
#include "routing/optim/make_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace routing::adafactor_test {
namespace {

double largest_difference(const at::Tensor& first, const at::Tensor& second) {
  return (first.to(at::kDouble) - second.to(at::kDouble)).abs().max().item<double>();
}

TEST(Adafactor, HandWorkedMatrixAndVectorOfEitherType) {
  // The matrix of AdafactorStep.HandWorkedFirstStepOfAMatrix, clipped: u^2 = 3, 0.6, 0.6, 1.08, mean 1.32; rms(p) is 2.
  // The vector: u = (1, -1), not clipped, rms(p) 3.
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const NamedParameter matrix{.name = "m", .value = at::full({2, 2}, 2.0, type)};
    const NamedParameter vector{.name = "v", .value = at::full({2}, 3.0, type)};
    Adafactor adafactor({matrix, vector}, {});
    set_gradient(matrix, at::tensor({1.0, 1.0, 1.0, 3.0}, at::kDouble).view({2, 2}));
    set_gradient(vector, at::tensor({5.0, -0.25}, at::kDouble));
    adafactor.step(0.5);
    const at::Tensor updates = at::tensor({3.0, 0.6, 0.6, 1.08}, at::kDouble).sqrt().view({2, 2});
    EXPECT_LT(largest_difference(matrix.value, 2.0 - updates / std::sqrt(1.32)), 1e-6);
    EXPECT_LT(largest_difference(vector.value, at::tensor({1.5, 4.5})), 1e-6);
    const auto state = adafactor.state();
    EXPECT_LT(largest_difference(state.at("m.row_moment"), at::tensor({1.0, 5.0})), 1e-6);
    EXPECT_LT(largest_difference(state.at("m.column_moment"), at::tensor({1.0, 5.0})), 1e-6);
    EXPECT_LT(largest_difference(state.at("v.second_moment"), at::tensor({25.0, 0.0625})), 1e-6);
    EXPECT_EQ(state.at("steps").item<std::int64_t>(), 1);
    EXPECT_EQ(state.size(), 4U);
  }
}

TEST(Adafactor, KeepsRowsAndColumnsOfTheLastTwoDimensionsAndAllOfAVector) {
  const Adafactor adafactor({{.name = "scalar", .value = at::ones({})},
                             {.name = "vector", .value = at::ones({5})},
                             {.name = "matrix", .value = at::ones({3, 5})},
                             {.name = "heads", .value = at::ones({2, 3, 5})},
                             {.name = "half", .value = at::ones({3, 5}, at::kHalf)},
                             {.name = "double", .value = at::ones({3, 5}, at::kDouble)}},
                            {});
  const auto state = adafactor.state();
  const auto sizes = [&](const std::string& name) { return state.at(name).sizes().vec(); };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(state.size(), 11U);
  EXPECT_EQ(sizes("scalar.second_moment"), Sizes{});
  EXPECT_EQ(sizes("vector.second_moment"), (Sizes{5}));
  EXPECT_EQ(sizes("matrix.row_moment"), (Sizes{3}));
  EXPECT_EQ(sizes("matrix.column_moment"), (Sizes{5}));
  EXPECT_EQ(sizes("heads.row_moment"), (Sizes{2, 3}));
  EXPECT_EQ(sizes("heads.column_moment"), (Sizes{2, 5}));
  EXPECT_EQ(state.at("half.row_moment").scalar_type(), at::kFloat);
  EXPECT_EQ(state.at("double.row_moment").scalar_type(), at::kDouble);
}

// A double parameter goes through tensor operations, a float one through the kernel: two implementations.
TEST(Adafactor, FloatsAndDoublesAgreeForEveryShapeLayoutAndDecay) {
  const std::vector<std::vector<std::int64_t>> shapes{{},     {1},    {9},       {1, 1},      {1, 7},
                                                      {7, 1}, {5, 7}, {2, 3, 4}, {2, 2, 3, 4}};
  for (const OptimizerKind kind : {OptimizerKind::adafactor, OptimizerKind::adafactorw}) {
    for (const auto& shape : shapes) {
      for (const bool transposed : {false, true}) {
        if (transposed && shape.size() < 2) continue;
        const at::Tensor start = normal_tensor(shape, 1);
        const at::Tensor fast =
            transposed ? start.transpose(-1, -2).clone(at::MemoryFormat::Contiguous).transpose(-1, -2) : start.clone();
        const NamedParameter fast_parameter{.name = "p", .value = fast, .decay = !transposed};
        const NamedParameter slow_parameter{.name = "p", .value = start.to(at::kDouble), .decay = !transposed};
        const AdafactorOptions options{.kind = kind, .weight_decay = 0.3};
        Adafactor fast_adafactor({fast_parameter}, options);
        Adafactor slow_adafactor({slow_parameter}, options);
        for (std::uint64_t step = 0; step < 5; ++step) {
          // Growing: the updates are clipped.
          const at::Tensor gradient = normal_tensor(shape, 10 + step) * std::pow(3.0, static_cast<double>(step));
          const auto version = fast._version();
          set_gradient(fast_parameter, gradient);
          set_gradient(slow_parameter, gradient);
          fast_adafactor.step(0.1, 0.5);
          slow_adafactor.step(0.1, 0.5);
          EXPECT_GT(fast._version(), version);
        }
        EXPECT_LT(largest_difference(fast, slow_parameter.value), 3e-6);
        EXPECT_GT(largest_difference(start, fast), 1e-2);
      }
    }
  }
}

TEST(Adafactor, HalfPrecisionIsSteppedInFloat) {
  const NamedParameter parameter{.name = "p", .value = at::full({2, 2}, 2.0, at::kHalf)};
  Adafactor adafactor({parameter}, {});
  // A row of zeros, whose average is 1e-30: nothing in float16.
  set_gradient(parameter, at::tensor({0.0, 0.0, 1.0, 1.0}).view({2, 2}));
  adafactor.step(0.5);
  // The row's average is twice that of the matrix: u = 1 / sqrt(1 x 0.5 / 0.5) = 1, with an rms below 1.
  EXPECT_LT(largest_difference(parameter.value, at::tensor({2.0, 2.0, 1.0, 1.0}).view({2, 2})), 1e-3);
}

TEST(Adafactor, StepsAreAShareOfTheParametersSizeUnlessToldOtherwise) {
  for (const bool relative : {false, true}) {
    const NamedParameter large{.name = "large", .value = at::full({4, 4}, 10.0)};
    const NamedParameter zeros{.name = "zeros", .value = at::zeros({4, 4})};
    Adafactor adafactor({large, zeros}, {.relative_step = relative});
    set_gradient(large, at::full({4, 4}, 1e-5));
    set_gradient(zeros, at::full({4, 4}, 7.0));
    adafactor.step(0.01);
    EXPECT_LT(largest_difference(large.value, at::full({4, 4}, relative ? 9.9 : 9.99)), 1e-5);
    EXPECT_LT(largest_difference(zeros.value, at::full({4, 4}, relative ? -1e-5 : -0.01)), 1e-8);
  }
}

TEST(Adafactor, DecayAppliesOnlyWhereTheParameterSaysSoAndByTheLearningRateIfDecoupled) {
  const NamedParameter matrix{.name = "matrix", .value = at::full({2, 2}, 4.0)};
  const NamedParameter gain{.name = "gain", .value = at::full({2}, 4.0), .decay = false};
  // Without a gradient's pull, decoupled decay leaves 1 - 0.5 * 0.5 of the value, whatever the value's size.
  Adafactor decoupled({matrix, gain}, {.kind = OptimizerKind::adafactorw, .weight_decay = 0.5});
  set_gradient(matrix, at::zeros({2, 2}));
  set_gradient(gain, at::zeros({2}));
  decoupled.step(0.5);
  EXPECT_TRUE(at::equal(matrix.value, at::full({2, 2}, 3.0)));
  EXPECT_TRUE(at::equal(gain.value, at::full({2}, 4.0)));
  EXPECT_LT(decoupled.state().at("matrix.row_moment").max().item<double>(), 2e-30);
  // In the gradient it is a step of its own: 0.25 of the value's size 3.
  Adafactor coupled({matrix, gain}, {.weight_decay = 0.5});
  coupled.step(0.25);
  EXPECT_LT(largest_difference(matrix.value, at::full({2, 2}, 2.25)), 1e-6);
  EXPECT_TRUE(at::equal(gain.value, at::full({2}, 4.0)));
  EXPECT_NEAR(coupled.state().at("matrix.row_moment")[0].item<double>(), 2.25, 1e-6);
}

TEST(Adafactor, ParametersWithoutGradientAreLeftAloneWithTheirMoments) {
  const NamedParameter moved{.name = "moved", .value = at::ones({3, 2})};
  const NamedParameter left{.name = "left", .value = at::ones({3, 2})};
  Adafactor adafactor({moved, left}, {.weight_decay = 0.5});
  set_gradient(moved, at::ones({3, 2}));
  set_gradient(left, at::ones({3, 2}));
  adafactor.step(0.1);
  const at::Tensor value = left.value.clone();
  const at::Tensor moment = adafactor.state().at("left.row_moment").clone();
  EXPECT_GT(moment.min().item<double>(), 0.0);
  left.value.mutable_grad().reset();
  const auto version = left.value._version();
  adafactor.step(0.1);
  EXPECT_TRUE(at::equal(left.value, value));
  EXPECT_TRUE(at::equal(adafactor.state().at("left.row_moment"), moment));
  EXPECT_EQ(left.value._version(), version);
  EXPECT_LT(moved.value.max().item<double>(), 0.85);
}

TEST(Adafactor, StepKeepsTheGradientsAndBitsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor start = normal_tensor({601, 300}, 3);
  const at::Tensor gradient = normal_tensor({601, 300}, 4);
  const int threads_before = num_threads();
  for (const bool transposed : {false, true}) {
    std::vector<at::Tensor> values;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      at::Tensor value = start.clone();
      if (transposed) value = value.t();
      const NamedParameter parameter{.name = "p", .value = value};
      Adafactor adafactor({parameter}, {.weight_decay = 0.1});
      set_gradient(parameter, transposed ? gradient.t() : gradient);
      for (int step = 0; step < 3; ++step) adafactor.step(0.01, 0.7);
      EXPECT_TRUE(at::equal(parameter.value.grad(), transposed ? gradient.t() : gradient));
      values.push_back(parameter.value);
    }
    EXPECT_FALSE(at::equal(values[0], transposed ? start.t() : start));
    EXPECT_TRUE(at::equal(values[0], values[1]));
    EXPECT_TRUE(at::equal(values[0], values[2]));
  }
  set_num_threads(threads_before);
}

TEST(Adafactor, LoadedStateGoesOnWithTheSameBits) {
  const auto fresh = [](const at::Tensor& matrix, const at::Tensor& vector) {
    return std::vector<NamedParameter>{{.name = "weight", .value = matrix}, {.name = "bias", .value = vector}};
  };
  const auto train = [](Adafactor& adafactor, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step) {
      set_gradient(adafactor.parameters()[0], normal_tensor({4, 9}, 100 + step));
      set_gradient(adafactor.parameters()[1], normal_tensor({9}, 200 + step));
      adafactor.step(0.01 * static_cast<double>(step));
    }
  };
  Adafactor unbroken(fresh(normal_tensor({4, 9}, 5), normal_tensor({9}, 6)), {.weight_decay = 0.1});
  train(unbroken, 1, 3);
  const OptimizerState state = copied_state(unbroken);
  Adafactor resumed(fresh(unbroken.parameters()[0].value.clone(), unbroken.parameters()[1].value.clone()),
                    {.weight_decay = 0.1});
  resumed.load_state(state);
  train(unbroken, 4, 6);
  train(resumed, 4, 6);
  EXPECT_EQ(resumed.steps(), 6);
  for (const std::size_t i : {0UL, 1UL}) {
    EXPECT_TRUE(at::equal(resumed.parameters()[i].value, unbroken.parameters()[i].value));
  }
  // What was loaded is a copy.
  EXPECT_FALSE(at::equal(state.at("weight.row_moment"), resumed.state().at("weight.row_moment")));
}

TEST(Adafactor, StateThatDoesNotFitIsRefusedByNameAndChangesNothing) {
  Adafactor adafactor({{.name = "a", .value = at::ones({2, 3})}}, {});
  set_gradient(adafactor.parameters()[0], at::ones({2, 3}));
  adafactor.step(0.1);
  std::map<std::string, at::Tensor> good;
  for (const auto& [name, tensor] : adafactor.state()) good.emplace(name, at::zeros_like(tensor));
  const StateRefusals refusals{adafactor, good};
  refusals.expect("a.row_moment", {}, "has no");
  refusals.expect("steps", {}, "has no");
  refusals.expect("a.first_moment", at::ones({2, 3}), "another model or optimiser");
  refusals.expect("a.row_moment", at::ones({3}), "is [3], but must be [2]");
  refusals.expect("a.column_moment", at::ones({3}, at::kDouble), "is Double, but must be Float");
  refusals.expect("steps", at::full({}, -1, at::kLong), "is -1");
  EXPECT_EQ(adafactor.steps(), 1);
  EXPECT_GT(adafactor.state().at("a.row_moment").min().item<double>(), 0.0);
  adafactor.load_state(good);
  EXPECT_EQ(adafactor.steps(), 0);
  EXPECT_EQ(adafactor.state().at("a.row_moment").max().item<double>(), 0.0);
}

TEST(Adafactor, OptionsThatCannotBeAreRefusedByKey) {
  const auto message = [](const AdafactorOptions& options) {
    return error_of([&] { const Adafactor adafactor({}, options); });
  };
  expect_contains(message({.decay_exponent = 0.0}), "train.decay_exponent is 0");
  expect_contains(message({.update_clip = -1.0}), "train.update_clip is -1");
  expect_contains(message({.weight_decay = -2.0}), "train.weight_decay is -2");
  EXPECT_EQ(message({}), "");
}

TEST(Adafactor, EmptyParametersAreNoTrouble) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const NamedParameter parameter{.name = "p", .value = at::ones({0, 3}, type)};
    Adafactor adafactor({parameter}, {});
    set_gradient(parameter, at::ones({0, 3}));
    adafactor.step(0.1);
    EXPECT_EQ(adafactor.state().at("p.column_moment").abs().max().item<double>(), 0.0);
  }
}

TEST(Adafactor, OptionsComeFromTheTrainingSection) {
  TrainConfig config;
  config.optimizer = OptimizerKind::adafactorw;
  config.decay_exponent = 0.1;
  config.update_clip = 0.2;
  config.relative_step = false;
  config.weight_decay = 0.4;
  const AdafactorOptions options = adafactor_options(config);
  EXPECT_EQ(options.kind, OptimizerKind::adafactorw);
  EXPECT_EQ(options.decay_exponent, 0.1);
  EXPECT_EQ(options.update_clip, 0.2);
  EXPECT_FALSE(options.relative_step);
  EXPECT_EQ(options.weight_decay, 0.4);
  config.optimizer = OptimizerKind::adam;
  expect_contains(error_of([&] { adafactor_options(config); }), "train.optimizer is adam");
}

TEST(MakeOptimizer, MakesTheKindThatTheConfigurationNames) {
  for (const OptimizerKind kind : kEvery<OptimizerKind>) {
    TrainConfig config;
    config.optimizer = kind;
    config.weight_decay = 0.5;
    const NamedParameter parameter{.name = "p", .value = at::full({2, 2}, 2.0)};
    const auto optimizer = make_optimizer({parameter}, config);
    std::set<std::string> names;
    for (const auto& [name, tensor] : optimizer->state()) names.insert(name);
    const bool factored = kind == OptimizerKind::adafactor || kind == OptimizerKind::adafactorw;
    EXPECT_EQ(names, factored ? (std::set<std::string>{"p.column_moment", "p.row_moment", "steps"})
                              : (std::set<std::string>{"p.first_moment", "p.second_moment", "steps"}));
    set_gradient(parameter, at::zeros({2, 2}));
    optimizer->step(0.125);
    // Decay alone: decoupled 2 (1 - 0.125 / 2); in the gradient a whole step, of 0.125 or of 0.125 times the size.
    const bool decoupled = kind == OptimizerKind::adamw || kind == OptimizerKind::adafactorw;
    const double expected = decoupled ? 1.875 : factored ? 1.75 : 1.875;
    EXPECT_NEAR(parameter.value[0][0].item<double>(), expected, 1e-6) << to_string(kind);
    optimizer->zero_gradients();
    EXPECT_FALSE(parameter.value.grad().defined());
    EXPECT_EQ(optimizer->steps(), 1);
    EXPECT_EQ(optimizer->parameters().size(), 1U);
  }
}

}  // namespace
}  // namespace routing::adafactor_test
