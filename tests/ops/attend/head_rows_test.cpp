#include "routing/ops/attend/head_rows.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/ops/attend/head_tensors.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace routing::head_rows_test {
namespace {

using support::random_tensor;

const at::TensorOptions kDoubles{at::kDouble};

// [batch, heads, tokens, dim] as projections leave them (heads inside of tokens), or heads outside.
at::Tensor heads(at::IntArrayRef sizes, std::uint64_t seed, bool inside = true) {
  const at::Tensor rows = random_tensor(sizes, seed).to(at::kFloat);
  return inside ? rows.transpose(1, 2).contiguous().transpose(1, 2) : rows;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(HeadGroups, SplitIntoViewsWhoseGradientsMeetInOneTensor) {
  for (const bool inside : {true, false}) {
    const at::Tensor rows = heads({2, 5, 70, 3}, 1, inside).requires_grad_();
    const std::vector<at::Tensor> groups = split_head_groups(rows, {{0, 2}, {2, 3}});
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_TRUE(at::equal(groups[0], rows.narrow(1, 0, 2)));
    EXPECT_TRUE(at::equal(groups[1], rows.narrow(1, 2, 3)));
    EXPECT_EQ(groups[1].data_ptr<float>(), rows.narrow(1, 2, 3).data_ptr<float>()) << "no copy";
    const at::Tensor d0 = heads({2, 2, 70, 3}, 2, !inside);
    const at::Tensor d1 = heads({2, 3, 70, 3}, 3, inside);
    const at::Tensor d = torch::autograd::grad({groups[0], groups[1]}, {rows}, {d0, d1})[0];
    EXPECT_TRUE(at::equal(d, at::cat({d0, d1}, 1)));
    EXPECT_EQ(d.stride(1) < d.stride(2), inside) << "as the rows lie in memory";
  }
}

TEST(HeadGroups, HeadsThatNobodyReadsHaveNoGradient) {
  const at::Tensor rows = heads({1, 4, 6, 2}, 1).requires_grad_();
  const at::Tensor d = heads({1, 1, 6, 2}, 2);
  // The second group is not used, the last head is in no group.
  const std::vector<at::Tensor> groups = split_head_groups(rows, {{1, 1}, {2, 1}});
  const at::Tensor zeros = at::zeros({1, 1, 6, 2});
  EXPECT_TRUE(at::equal(torch::autograd::grad({groups[0]}, {rows}, {d})[0], at::cat({zeros, d, zeros, zeros}, 1)));
  EXPECT_TRUE(split_head_groups(rows, {{0, 4}})[0].is_same(rows)) << "all heads are not a group of their own";
  EXPECT_THROW(split_head_groups(rows, {{3, 2}}), InputError);
}

TEST(HeadGroups, MergeIsAConcatenationInsideOfTokens) {
  const at::Tensor a = heads({2, 2, 65, 3}, 1).transpose(1, 2).requires_grad_();
  const at::Tensor b = heads({2, 4, 65, 3}, 2, false).transpose(1, 2).requires_grad_();
  const at::Tensor merged = merge_head_groups({a, b});
  EXPECT_TRUE(at::equal(merged, at::cat({a, b}, 2)));
  EXPECT_TRUE(merged.is_contiguous());
  const at::Tensor d = random_tensor({2, 65, 6, 3}, 3).to(at::kFloat);
  const auto gradients = torch::autograd::grad({merged}, {a, b}, {d});
  EXPECT_TRUE(at::equal(gradients[0], d.narrow(2, 0, 2)));
  EXPECT_TRUE(at::equal(gradients[1], d.narrow(2, 2, 4)));
  EXPECT_TRUE(merge_head_groups({a}).is_same(a));
  EXPECT_THROW(merge_head_groups({}), InputError);
  const at::NoGradGuard no_gradient;
  EXPECT_TRUE(at::equal(merge_head_groups({a, b}), merged)) << "without a graph";
}

TEST(SharedRows, StandAtTheNextTokenTimesTheFactorOfTheirHead) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor rows = at::arange(1, 13, kDoubles).to(type).view({1, 2, 3, 2});
    const at::Tensor log_scale = at::tensor({0.0, std::log(2.0)}, kDoubles).to(type);
    const SharedRows result = shared_query_key_rows(rows, log_scale, true);
    const std::vector<double> keys{0, 0, 1, 2, 3, 4, 0, 0, 7, 8, 9, 10};
    const std::vector<double> queries{1, 2, 3, 4, 5, 6, 14, 16, 18, 20, 22, 24};
    EXPECT_TRUE(at::equal(result.keys.contiguous().flatten(), at::tensor(keys, kDoubles).to(type)));
    EXPECT_LT(largest_difference(result.queries.contiguous().flatten(), at::tensor(queries, kDoubles)), 1e-5);
    EXPECT_TRUE(at::equal(result.rows, rows));
    EXPECT_TRUE(at::equal(shared_query_key_rows(rows.narrow(2, 0, 1), {}, true).keys, at::zeros({1, 2, 1, 2}, type)))
        << "one token";
  }
  const at::Tensor rows = heads({1, 2, 3, 4}, 1);
  const SharedRows same = shared_query_key_rows(rows, {}, false);
  EXPECT_TRUE(same.queries.is_same(rows) && same.keys.is_same(rows)) << "attention sees that they are shared";
  EXPECT_THROW(shared_query_key_rows(rows, at::zeros({3}), true), InputError);
}

struct Gradients {
  at::Tensor rows, log_scale;
};

Gradients gradients_of(const at::Tensor& rows, const at::Tensor& log_scale, bool shift,
                       const std::vector<at::Tensor>& d) {
  const std::vector<at::Tensor> leaves{rows.detach().requires_grad_(), log_scale.detach().requires_grad_()};
  const SharedRows result = shared_query_key_rows(leaves[0], leaves[1], shift);
  const auto found = torch::autograd::grad({result.queries, result.keys, result.rows}, leaves, d);
  return {found[0], found[1]};
}

TEST(SharedRows, GradientsEqualThoseOfTensorsInDouble) {
  for (const bool shift : {false, true}) {
    for (const bool inside : {false, true}) {
      for (const std::int64_t tokens : {1, 2, 64, 131}) {
        const at::Tensor rows = heads({2, 3, tokens, 5}, 1, inside);
        const at::Tensor log_scale = random_tensor({3}, 2).to(at::kFloat);
        std::vector<at::Tensor> d;
        std::vector<at::Tensor> wide;
        for (std::uint64_t seed = 3; seed < 6; ++seed) {
          d.push_back(heads({2, 3, tokens, 5}, seed, seed % 2 == 0));
          wide.push_back(d.back().to(at::kDouble));
        }
        const Gradients found = gradients_of(rows, log_scale, shift, d);
        const Gradients wanted = gradients_of(rows.to(at::kDouble), log_scale.to(at::kDouble), shift, wide);
        EXPECT_LT(largest_difference(found.rows, wanted.rows), 1e-5) << tokens;
        EXPECT_LT(largest_difference(found.log_scale, wanted.log_scale), 1e-3) << tokens;
      }
    }
  }
}

TEST(SharedRows, EachResultAloneHasItsGradient) {
  const at::Tensor rows = heads({1, 2, 9, 3}, 1).requires_grad_();
  const at::Tensor log_scale = random_tensor({2}, 2).to(at::kFloat).requires_grad_();
  const at::Tensor d = heads({1, 2, 9, 3}, 3);
  const SharedRows result = shared_query_key_rows(rows, log_scale, true);
  const auto alone = [&](const at::Tensor& output) {
    return torch::autograd::grad({output}, {rows}, {d}, /*retain_graph=*/true)[0];
  };
  const at::Tensor factors = log_scale.detach().exp().view({1, 2, 1, 1});
  EXPECT_LT(largest_difference(alone(result.queries), d * factors), 1e-6);
  EXPECT_TRUE(at::equal(alone(result.keys), at::cat({d.narrow(2, 1, 8), at::zeros({1, 2, 1, 3})}, 2)));
  EXPECT_TRUE(at::equal(alone(result.rows), d));
}

TEST(SharedRows, GradientsInDoubleEqualFiniteDifferences) {
  const auto function = [](const std::vector<at::Tensor>& x) {
    const SharedRows result = shared_query_key_rows(x[0], x[1], true);
    return (result.queries * result.keys + result.rows).reshape({-1});
  };
  EXPECT_LT(support::jacobian_error(function, {random_tensor({1, 2, 4, 3}, 1), random_tensor({2}, 2)}), 1e-8);
}

TEST(HeadRowsErrors, SecondDerivativesAreRefused) {
  const at::Tensor rows = heads({1, 2, 3, 4}, 1).requires_grad_();
  const std::vector<at::Tensor> sums{split_head_groups(rows, {{0, 1}, {1, 1}})[0].sum(),
                                     merge_head_groups({rows, rows}).sum(),
                                     shared_query_key_rows(rows, {}, true).keys.sum()};
  for (const at::Tensor& sum : sums) {
    EXPECT_THROW(torch::autograd::grad({sum}, {rows}, {}, true, /*create_graph=*/true), InputError);
  }
}

TEST(SharedRows, BitsDoNotDependOnThreads) {
  const support::ThreadGuard guard;
  const at::Tensor rows = heads({2, 4, 1000, 16}, 1);
  const at::Tensor log_scale = random_tensor({4}, 2).to(at::kFloat);
  const std::vector<at::Tensor> d{heads({2, 4, 1000, 16}, 3), heads({2, 4, 1000, 16}, 4), heads({2, 4, 1000, 16}, 5)};
  set_num_threads(1);
  const Gradients one = gradients_of(rows, log_scale, true, d);
  set_num_threads(5);
  const Gradients five = gradients_of(rows, log_scale, true, d);
  EXPECT_TRUE(at::equal(one.rows, five.rows));
  EXPECT_TRUE(at::equal(one.log_scale, five.log_scale));
}

TEST(HeadTensors, RoundedHeadsAreThoseOfTorchInTheSameOrderOfMemory) {
  const at::Tensor projection = at::randn({2, 70, 4, 5});
  for (const at::Tensor& heads : {projection.transpose(1, 2), projection.transpose(1, 2).narrow(1, 1, 2),
                                  projection.permute({0, 2, 1, 3}).contiguous(), projection.permute({0, 3, 1, 2})}) {
    const at::Tensor rounded = rounded_heads(heads);
    EXPECT_TRUE(at::equal(rounded, heads.to(at::kBFloat16))) << heads.strides();
    EXPECT_EQ(rounded.storage().nbytes(), static_cast<std::size_t>(2 * heads.numel()));
    // Rows whose numbers lie apart become contiguous first.
    const bool inside = heads.stride(3) == 1 && heads.stride(1) < heads.stride(2);
    EXPECT_EQ(rounded.stride(1) < rounded.stride(2), inside);
  }
}

}  // namespace
}  // namespace routing::head_rows_test
