// The layer against its formula in double, finite differences, and the operations it is made of.
#include "routing/ops/dense/feedforward.h"

#include "routing/core/error.h"
#include "routing/ops/dense/linear.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

namespace routing::feedforward_test {
namespace {

using support::random_tensor;

// Input, in, in_bias, out, out_bias.
std::vector<at::Tensor> leaves_of(std::int64_t batch, std::int64_t tokens, std::int64_t width, std::int64_t hidden,
                                  at::ScalarType type = at::kFloat) {
  std::vector<at::Tensor> leaves{random_tensor({batch, tokens, width}, 1), random_tensor({hidden, width}, 2),
                                 random_tensor({hidden}, 3), random_tensor({width, hidden}, 4),
                                 random_tensor({width}, 5)};
  for (at::Tensor& leaf : leaves) leaf = leaf.to(type).requires_grad_();
  return leaves;
}

at::Tensor run(const std::vector<at::Tensor>& leaves, const FeedforwardOptions& options = {}) {
  return relu_feedforward(leaves[0], {.in = leaves[1], .in_bias = leaves[2], .out = leaves[3], .out_bias = leaves[4]},
                          options);
}

at::Tensor by_operations(const std::vector<at::Tensor>& leaves, const FeedforwardOptions& options = {}) {
  const LinearOptions linear_options{.precision = options.precision};
  const at::Tensor hidden = routing::linear(leaves[0], leaves[1], leaves[2], linear_options).clamp_min(0.0);
  return routing::linear(dropout(hidden, options.dropout), leaves[3], leaves[4], linear_options);
}

class ReluFeedforward : public ::testing::TestWithParam<MatmulPrecision> {
  support::ThreadGuard guard_;
};

// Pieces are 512 rows with 5000 hidden numbers, so 1100 rows are three; 3 sequences of 367 end inside of them.
TEST_P(ReluFeedforward, HasTheBitsOfTheOperationsItIsMadeOf) {
  for (const auto& [batch, tokens, width, hidden] :
       std::vector<std::array<std::int64_t, 4>>{{1, 1, 3, 5}, {2, 33, 20, 70}, {3, 367, 8, 5000}}) {
    for (const double probability : {0.0, 0.3}) {
      const FeedforwardOptions options{
          .precision = GetParam(),
          .dropout = {.probability = probability, .key = 11, .sample_ids = at::arange(batch, at::kLong) + 4}};
      const auto leaves = leaves_of(batch, tokens, width, hidden);
      const at::Tensor output = run(leaves, options);
      const at::Tensor wanted_output = by_operations(leaves, options);
      ASSERT_TRUE(at::equal(output, wanted_output)) << tokens << " tokens, dropout " << probability;
      const at::Tensor d_output = random_tensor(output.sizes(), 6).to(at::kFloat);
      const auto d = torch::autograd::grad({output}, leaves, {d_output});
      const auto wanted = torch::autograd::grad({wanted_output}, leaves, {d_output});
      for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(at::equal(d[i], wanted[i])) << i << ", " << tokens;
      const at::NoGradGuard no_gradient;
      EXPECT_TRUE(at::equal(run(leaves, options), wanted_output)) << "without a graph";
    }
  }
}

TEST_P(ReluFeedforward, EqualsTheFormulaInDouble) {
  const auto leaves = leaves_of(2, 50, 24, 96);
  const auto rounded = [](const at::Tensor& numbers) {
    return GetParam() == MatmulPrecision::bf16 ? numbers.to(at::kBFloat16).to(at::kDouble) : numbers.to(at::kDouble);
  };
  const at::Tensor hidden = (at::matmul(rounded(leaves[0]), rounded(leaves[1]).t()) + leaves[2].to(at::kDouble))
                                .clamp_min(0.0)
                                .to(at::kFloat);
  const at::Tensor wanted = at::matmul(rounded(hidden), rounded(leaves[3]).t()) + leaves[4].to(at::kDouble);
  // A hidden number near the middle of two bfloat16 may go to the other one than in double.
  const double tolerance = GetParam() == MatmulPrecision::bf16 ? 0.2 : 1e-3;
  EXPECT_LT((run(leaves, {.precision = GetParam()}).to(at::kDouble) - wanted).abs().max().item<double>(), tolerance);
}

TEST_P(ReluFeedforward, BitsDependNeitherOnRowsNorOnThreads) {
  const auto leaves = leaves_of(1, 1100, 8, 5000);
  const at::Tensor d_output = random_tensor({1, 1100, 8}, 6).to(at::kFloat);
  set_num_threads(1);
  const at::Tensor whole = run(leaves, {.precision = GetParam()});
  const auto wanted = torch::autograd::grad({whole}, leaves, {d_output});
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    const auto d = torch::autograd::grad({run(leaves, {.precision = GetParam()})}, leaves, {d_output});
    for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(at::equal(d[i], wanted[i])) << i;
    auto part = leaves;
    part[0] = leaves[0].detach().narrow(1, 513, 70);
    EXPECT_TRUE(at::equal(run(part, {.precision = GetParam()}), whole.narrow(1, 513, 70)));
  }
}

TEST_P(ReluFeedforward, NoRowsHaveZeroWeightGradients) {
  const auto leaves = leaves_of(0, 4, 3, 5);
  const auto d = torch::autograd::grad({run(leaves, {.precision = GetParam()})}, leaves, {at::empty({0, 4, 3})});
  for (std::size_t i = 1; i < leaves.size(); ++i) EXPECT_TRUE(at::equal(d[i], at::zeros(leaves[i].sizes()))) << i;
}

// Each weight alone, and the input alone.
TEST_P(ReluFeedforward, OnlyWhatIsAskedForIsComputed) {
  const auto all = leaves_of(2, 9, 6, 12);
  const auto wanted = torch::autograd::grad({run(all, {.precision = GetParam()}).sum()}, all);
  for (std::size_t kept = 0; kept < all.size(); ++kept) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : all) leaves.push_back(leaf.detach());
    leaves[kept].requires_grad_();
    run(leaves, {.precision = GetParam()}).sum().backward();
    EXPECT_TRUE(at::equal(leaves[kept].grad(), wanted[kept])) << kept;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(leaves[i].grad().defined(), i == kept) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(BothPrecisions, ReluFeedforward,
                         ::testing::Values(MatmulPrecision::fp32, MatmulPrecision::bf16), [](const auto& instance) {
                           return instance.param == MatmulPrecision::fp32 ? "fp32" : "bf16";
                         });

TEST(ReluFeedforwardGradient, EqualsFiniteDifferencesInDouble) {
  const auto function = [](const std::vector<at::Tensor>& leaves) {
    return run(leaves, {.dropout = {.probability = 0.25, .key = 3}}).reshape({-1});
  };
  auto leaves = leaves_of(2, 3, 4, 7, at::kDouble);
  for (at::Tensor& leaf : leaves) leaf = leaf.detach();
  EXPECT_LT(support::jacobian_error(function, leaves), 1e-7);
}

TEST(ReluFeedforwardErrors, EachMisfitIsAnInputError) {
  const auto with = [](std::size_t index, const at::Tensor& tensor) {
    auto leaves = leaves_of(2, 3, 4, 7);
    leaves[index] = tensor;
    return leaves;
  };
  EXPECT_THROW(run(with(0, at::zeros({3, 4}))), InputError);
  EXPECT_THROW(run(with(1, at::zeros({7, 5}))), InputError);
  EXPECT_THROW(run(with(2, at::zeros({6}))), InputError);
  EXPECT_THROW(run(with(2, at::Tensor())), InputError);
  EXPECT_THROW(run(with(3, at::zeros({7, 4}))), InputError);
  EXPECT_THROW(run(with(4, at::zeros({4}, at::kDouble))), InputError);
}

TEST(ReluFeedforwardErrors, SecondDerivativeIsRefused) {
  const auto leaves = leaves_of(1, 2, 3, 5);
  EXPECT_THROW(torch::autograd::grad({run(leaves).sum()}, {leaves[0]}, {}, true, /*create_graph=*/true), InputError);
}

TEST(ReluFeedforwardReference, MetaTensorsGetShapes) {
  const auto meta = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  const at::Tensor y = relu_feedforward(at::empty({2, 4, 3}, meta), {.in = at::empty({5, 3}, meta),
                                                                     .in_bias = at::empty({5}, meta),
                                                                     .out = at::empty({3, 5}, meta),
                                                                     .out_bias = at::empty({3}, meta)});
  EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 4, 3}));
}

}  // namespace
}  // namespace routing::feedforward_test
