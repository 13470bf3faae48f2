#include "routing/ops/dense/linear.h"

#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace routing::linear_test {
namespace {

using support::random_tensor;

at::Tensor random_floats(at::IntArrayRef sizes, std::uint64_t seed) {
  return random_tensor(sizes, seed).to(at::kFloat);
}

at::Tensor rounded(const at::Tensor& tensor, MatmulPrecision precision) {
  return precision == MatmulPrecision::bf16 ? tensor.to(at::kBFloat16).to(at::kDouble) : tensor.to(at::kDouble);
}

struct Results {
  at::Tensor output, d_input, d_weight, d_bias;
};

Results run(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& d_output,
            const LinearOptions& options) {
  std::vector<at::Tensor> leaves{input.detach().requires_grad_(), weight.detach().requires_grad_()};
  if (bias.defined()) leaves.push_back(bias.detach().requires_grad_());
  const at::Tensor output = routing::linear(leaves[0], leaves[1], bias.defined() ? leaves[2] : at::Tensor(), options);
  const auto d = torch::autograd::grad({output}, leaves, {d_output});
  return {output.detach(), d[0], d[1], bias.defined() ? d[2] : at::Tensor()};
}

class Linear : public ::testing::TestWithParam<MatmulPrecision> {
  support::ThreadGuard guard_;
};

// Factors as multiplied are exact in double; what remains is the sum of `terms` products of about 1 in float32.
TEST_P(Linear, OutputsAndGradientsEqualTheFormulasInDouble) {
  for (const auto& [rows, in, out] :
       std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {3, 17, 5}, {65, 3, 1}, {200, 64, 31}, {600, 300, 270}}) {
    const LinearOptions options{.precision = GetParam()};
    const at::Tensor x = random_floats({rows, in}, 1);
    const at::Tensor w = random_floats({out, in}, 2);
    const at::Tensor b = random_floats({out}, 3);
    const at::Tensor dy = random_floats({rows, out}, 4);
    const Results result = run(x, w, b, dy, options);
    const at::Tensor y = at::mm(rounded(x, GetParam()), rounded(w, GetParam()).t()) + b.to(at::kDouble);
    const auto close = [](const at::Tensor& got, const at::Tensor& wanted) {
      return at::allclose(got.to(at::kDouble), wanted, /*rtol=*/1e-5, /*atol=*/2e-4);
    };
    EXPECT_TRUE(close(result.output, y)) << rows << " " << in << " " << out;
    EXPECT_TRUE(close(result.d_input, at::mm(rounded(dy, GetParam()), rounded(w, GetParam()))));
    EXPECT_TRUE(close(result.d_weight, at::mm(rounded(dy, GetParam()).t(), rounded(x, GetParam()))));
    EXPECT_TRUE(close(result.d_bias, dy.to(at::kDouble).sum(0)));
  }
}

TEST_P(Linear, BitsDependNeitherOnRowsNorOnThreads) {
  const at::Tensor x = random_floats({200, 70}, 1);
  const at::Tensor w = random_floats({33, 70}, 2);
  const at::Tensor b = random_floats({33}, 3);
  const at::Tensor dy = random_floats({200, 33}, 4);
  const LinearOptions options{.precision = GetParam()};
  set_num_threads(1);
  const Results whole = run(x, w, b, dy, options);
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (const std::int64_t rows : {1, 2, 63, 64, 65, 200}) {
      const std::int64_t first = 200 - rows;
      const Results part = run(x.narrow(0, first, rows), w, b, dy.narrow(0, first, rows), options);
      EXPECT_TRUE(part.output.equal(whole.output.narrow(0, first, rows))) << rows << " rows, " << threads;
      EXPECT_TRUE(part.d_input.equal(whole.d_input.narrow(0, first, rows))) << rows << " rows, " << threads;
    }
    const Results again = run(x, w, b, dy, options);
    EXPECT_TRUE(again.d_weight.equal(whole.d_weight)) << threads;
    EXPECT_TRUE(again.d_bias.equal(whole.d_bias)) << threads;
  }
}

TEST_P(Linear, TakesAnyLeadingShapeAndAnyStrides) {
  const at::Tensor x = random_floats({7, 2, 3}, 1).transpose(0, 2);  // [3, 2, 7], not contiguous
  const at::Tensor w = random_floats({7, 5}, 2).t();
  const LinearOptions options{.precision = GetParam()};
  const at::Tensor y = routing::linear(x, w, {}, options);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({3, 2, 5}));
  EXPECT_TRUE(y.equal(routing::linear(x.contiguous().view({6, 7}), w.contiguous(), {}, options).view({3, 2, 5})));
  EXPECT_EQ(routing::linear(at::empty({0, 4, 7}), w, {}, options).sizes(), at::IntArrayRef({0, 4, 5}));
  EXPECT_EQ(routing::linear(at::empty({7}), w, {}, options).sizes(), at::IntArrayRef({5}));
}

TEST_P(Linear, NoRowsHaveZeroWeightGradients) {
  const Results result = run(at::empty({0, 3}), random_floats({4, 3}, 1), random_floats({4}, 2), at::empty({0, 4}),
                             {.precision = GetParam()});
  EXPECT_TRUE(result.d_weight.equal(at::zeros({4, 3})));
  EXPECT_TRUE(result.d_bias.equal(at::zeros({4})));
}

TEST_P(Linear, BranchesOfOneInputHaveTheOutputsOfEachAndTheSumOfTheirGradients) {
  const std::vector<at::Tensor> leaves{
      random_floats({3, 40, 20}, 1).requires_grad_(), random_floats({7, 20}, 2).requires_grad_(),
      random_floats({30, 20}, 3).requires_grad_(), random_floats({5, 20}, 4).requires_grad_()};
  const std::vector<at::Tensor> weights(leaves.begin() + 1, leaves.end());
  const std::vector<at::Tensor> outputs = linear_branches(leaves[0], weights, GetParam());
  std::vector<at::Tensor> apart;
  std::vector<at::Tensor> d;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    apart.push_back(routing::linear(leaves[0], weights[i], {}, {.precision = GetParam()}));
    d.push_back(random_floats(apart[i].sizes(), 5 + i));
    EXPECT_TRUE(at::equal(outputs[i], apart[i])) << i;
  }
  const auto found = torch::autograd::grad(outputs, leaves, d, /*retain_graph=*/true);
  const auto wanted = torch::autograd::grad(apart, leaves, d);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(at::allclose(found[i], wanted[i], 1e-5, 1e-5)) << i;
    EXPECT_TRUE(i == 0 || at::equal(found[i], wanted[i])) << "weights do not meet: " << i;
  }
  // A branch that nobody reads, and an input that needs no gradient.
  const auto one = torch::autograd::grad({outputs[1]}, {leaves[2]}, {d[1]}, /*retain_graph=*/true);
  EXPECT_TRUE(at::equal(one[0], wanted[2]));
  const at::Tensor given = leaves[0].detach();
  const auto of_weight = torch::autograd::grad(linear_branches(given, weights, GetParam()), weights, d);
  EXPECT_TRUE(at::equal(of_weight[2], wanted[3]));
  const at::NoGradGuard no_gradient;
  EXPECT_TRUE(at::equal(linear_branches(leaves[0], weights, GetParam())[2], apart[2])) << "without a graph";
  EXPECT_THROW(linear_branches(leaves[0], {weights[0], at::zeros({4, 19})}), InputError);
}

INSTANTIATE_TEST_SUITE_P(BothPrecisions, Linear, ::testing::Values(MatmulPrecision::fp32, MatmulPrecision::bf16),
                         [](const auto& instance) {
                           return instance.param == MatmulPrecision::fp32 ? "fp32" : "bf16";
                         });

TEST(LinearGradient, EqualsFiniteDifferencesInDouble) {
  const auto function = [&](const std::vector<at::Tensor>& x) {
    return routing::linear(x[0], x[1], x.size() > 2 ? x[2] : at::Tensor()).reshape({-1});
  };
  const std::vector<at::Tensor> inputs{random_tensor({2, 3, 4}, 1), random_tensor({5, 4}, 2), random_tensor({5}, 3)};
  EXPECT_LT(support::jacobian_error(function, inputs), 1e-8);
  EXPECT_LT(support::jacobian_error(function, {inputs[0], inputs[1]}), 1e-8);
}

TEST(LinearGradient, OnlyWhatIsAskedForIsComputed) {
  const at::Tensor x = random_floats({4, 3}, 1);
  const at::Tensor w = random_floats({2, 3}, 2).requires_grad_();
  const at::Tensor b = random_floats({2}, 3);
  routing::linear(x, w, b).sum().backward();
  EXPECT_TRUE(at::allclose(w.grad(), x.sum(0).expand({2, 3})));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(b.grad().defined());
}

TEST(LinearReference, MetaTensorsGetShapesForwardAndBackward) {
  const auto meta = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor w = at::empty({5, 3}, meta).requires_grad_();
    const at::Tensor y = routing::linear(at::empty({2, 4, 3}, meta), w, at::empty({5}, meta), {.precision = precision});
    EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 4, 5}));
    const auto d = torch::autograd::grad({y}, {w}, {at::empty_like(y)});
    EXPECT_EQ(d[0].sizes(), w.sizes());
  }
}

TEST(LinearErrors, EachMisfitIsAnInputError) {
  const at::Tensor x = at::zeros({2, 3});
  const at::Tensor w = at::zeros({5, 3});
  EXPECT_THROW(routing::linear(x, at::zeros({5, 4})), InputError);
  EXPECT_THROW(routing::linear(x, at::zeros({3})), InputError);
  EXPECT_THROW(routing::linear(x, at::zeros({0, 3})), InputError);
  EXPECT_THROW(routing::linear(x, w, at::zeros({4})), InputError);
  EXPECT_THROW(routing::linear(x, w.to(at::kDouble)), InputError);
  EXPECT_THROW(routing::linear(x.to(at::kLong), w.to(at::kLong)), InputError);
  EXPECT_THROW(routing::linear(x, w, at::zeros({5}, at::kMeta)), InputError);
}

TEST(LinearErrors, SecondDerivativeIsRefused) {
  const at::Tensor x = at::ones({2, 3}).requires_grad_();
  const at::Tensor y = routing::linear(x, at::ones({5, 3})).sum();
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true), InputError);
}

}  // namespace
}  // namespace routing::linear_test
