// A short convolution over time against plain loops, finite differences and itself in pieces.
#include "routing/ops/causal_convolution.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "support/finite_differences.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

namespace routing {
namespace {

using testing::random_tensor;

TEST(CausalConvolution, HandWorkedValues) {
  const at::Tensor rows = at::tensor({1.0F, 10.0F, 2.0F, 20.0F, 3.0F, 30.0F}).view({1, 3, 2});
  const at::Tensor weight = at::tensor({1.0F, 2.0F, 0.5F, 0.0F}).view({2, 2});
  const at::Tensor expected = at::tensor({1.0F, 20.0F, 2.5F, 40.0F, 4.0F, 60.0F}).view({1, 3, 2});
  EXPECT_TRUE(causal_convolution(rows, weight).equal(expected));
  const at::Tensor before = at::tensor({8.0F, 7.0F}).view({1, 1, 2});
  EXPECT_EQ(causal_convolution(rows, weight, before)[0][0][0].item<float>(), 5.0F);
  EXPECT_EQ(causal_convolution(rows, weight, before)[0][1][0].item<float>(), 2.5F);
}

TEST(CausalConvolution, EqualsPlainLoopsForEveryTail) {
  for (const std::int64_t channels : {1, 7, 16, 33, 160}) {
    for (const std::int64_t tokens : {1, 2, 3, 65, 130}) {
      const at::Tensor rows = random_tensor({2, tokens, channels}, 1);
      const at::Tensor weight = random_tensor({4, channels}, 2);
      at::Tensor expected = at::zeros_like(rows);
      const auto x = rows.accessor<double, 3>();
      const auto w = weight.accessor<double, 2>();
      auto y = expected.accessor<double, 3>();
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t t = 0; t < tokens; ++t) {
          for (std::int64_t k = 0; k <= std::min<std::int64_t>(t, 3); ++k) {
            for (std::int64_t c = 0; c < channels; ++c) y[b][t][c] += w[k][c] * x[b][t - k][c];
          }
        }
      }
      EXPECT_TRUE(at::allclose(causal_convolution(rows, weight), expected, 1e-12, 1e-12)) << channels << " " << tokens;
      const at::Tensor floats = causal_convolution(rows.to(at::kFloat), weight.to(at::kFloat));
      EXPECT_TRUE(at::allclose(floats.to(at::kDouble), expected, 1e-5, 1e-5)) << channels << " " << tokens;
    }
  }
}

// The kernel's gradient beside that of the tensor code in double, which finite differences check.
TEST(CausalConvolution, GradientsEqualFiniteDifferencesAndThoseOfTheTensorCode) {
  const at::Tensor rows = random_tensor({2, 5, 3}, 1);
  const at::Tensor weight = random_tensor({3, 3}, 2);
  const auto convolve = [](const std::vector<at::Tensor>& inputs) {
    return causal_convolution(inputs[0], inputs[1]).flatten();
  };
  EXPECT_LT(testing::jacobian_error(convolve, {rows, weight}), 1e-7);
  for (const std::int64_t tokens : {1, 2, 64, 150}) {
    const at::Tensor x = random_tensor({3, tokens, 20}, 4).requires_grad_(true);
    const at::Tensor w = random_tensor({3, 20}, 5).requires_grad_(true);
    const at::Tensor x_float = x.detach().to(at::kFloat).requires_grad_(true);
    const at::Tensor w_float = w.detach().to(at::kFloat).requires_grad_(true);
    const at::Tensor weights = random_tensor({3, tokens, 20}, 6);
    (causal_convolution(x, w) * weights).sum().backward();
    (causal_convolution(x_float, w_float) * weights.to(at::kFloat)).sum().backward();
    EXPECT_TRUE(at::allclose(x_float.grad().to(at::kDouble), x.grad(), 1e-5, 1e-5)) << tokens;
    EXPECT_TRUE(at::allclose(w_float.grad().to(at::kDouble), w.grad(), 1e-4, 1e-4)) << tokens;
  }
}

TEST(CausalConvolution, ASequenceInPiecesHasTheBitsOfTheWhole) {
  const at::Tensor rows = random_tensor({2, 70, 37}, 1, at::kFloat);
  const at::Tensor weight = random_tensor({3, 37}, 2, at::kFloat);
  const at::Tensor whole = causal_convolution(rows, weight);
  for (const std::int64_t piece : {1, 2, 5, 69}) {
    at::Tensor before = at::zeros({2, 2, 37});
    for (std::int64_t first = 0; first < 70; first += piece) {
      const std::int64_t count = std::min(piece, 70 - first);
      const at::Tensor here = rows.narrow(1, first, count);
      EXPECT_TRUE(causal_convolution(here, weight, before).equal(whole.narrow(1, first, count))) << piece << first;
      const at::Tensor both = at::cat({before, here}, 1);
      before = both.narrow(1, both.size(1) - 2, 2);
    }
  }
}

TEST(CausalConvolution, BitsDoNotDependOnThreads) {
  const int before = num_threads();
  const auto run = [](int threads) {
    set_num_threads(threads);
    const at::Tensor x = random_tensor({3, 333, 50}, 1, at::kFloat).requires_grad_(true);
    const at::Tensor w = random_tensor({3, 50}, 2, at::kFloat).requires_grad_(true);
    const at::Tensor y = causal_convolution(x, w);
    y.square().sum().backward();
    return std::vector<at::Tensor>{y.detach(), x.grad(), w.grad()};
  };
  const std::vector<at::Tensor> one = run(1);
  for (const int threads : {2, 5}) {
    const std::vector<at::Tensor> many = run(threads);
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(many[i])) << threads << " " << i;
  }
  set_num_threads(before);
}

TEST(CausalConvolution, WhatDoesNotFitIsRefused) {
  const at::Tensor rows = at::zeros({1, 4, 6});
  const auto refusal = [&](const at::Tensor& weight, const at::Tensor& before) {
    return message_of<InputError>([&] { causal_convolution(rows, weight, before); });
  };
  EXPECT_NE(refusal(at::zeros({3, 5}), {}).find("weights Float [3, 5]"), std::string::npos);
  EXPECT_NE(refusal(at::zeros({3, 6}), at::zeros({1, 3, 6})).find("must be Float [1, 2, 6]"), std::string::npos);
  EXPECT_NE(refusal(at::zeros({3, 6}).requires_grad_(true), at::zeros({1, 2, 6})).find("differentiate whole sequences"),
            std::string::npos);
}

}  // namespace
}  // namespace routing
