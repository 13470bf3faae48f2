// attend against the dense oracle, for every pattern, kind, merge, length and padding.
#include "routing/core/random.h"
#include "routing/ops/attend/attend.h"
#include "support/dense_oracle.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace routing::attend_oracle_test {
namespace {

using support::CaseInputs;
using support::dense_attend;
using support::make_inputs;
using support::PatternCase;
using support::random_tensor;

constexpr double kTolerance = 1e-10;

double largest_difference(const at::Tensor& first, const at::Tensor& second) {
  if (first.numel() == 0) return 0.0;
  // Minus infinity minus itself is not a number, but equal all the same.
  return at::where(first == second, at::zeros_like(first), first - second).abs().max().item<double>();
}

class AttendOracle : public ::testing::TestWithParam<PatternCase> {};

AttendOptions options_for(Merge merge, double eps) {
  return {.scale = 0.7, .merge = merge, .merge_eps = eps};
}

// Slopes for the two heads of every case.
AttendOptions with_recency(AttendOptions options) {
  options.recency = at::tensor({0.3, 0.05}, at::kDouble);
  return options;
}

TEST_P(AttendOracle, EqualsTheDenseOracleAtEveryLength) {
  for (const std::int64_t tokens : {1, 2, 3, 63, 64, 65, 257}) {
    for (const bool ragged : {false, true}) {
      const CaseInputs inputs = make_inputs(GetParam(), {.batch = ragged ? 3 : 1, .tokens = tokens, .ragged = ragged});
      for (const AttendOptions& options :
           {options_for(Merge::lse, 0.0), options_for(Merge::mean, 0.0), options_for(Merge::mean, 0.01),
            with_recency(options_for(Merge::lse, 0.0))}) {
        const AttendResult result = attend(inputs.q, inputs.k, inputs.v, inputs.plan, options);
        const AttendResult expected = dense_attend(inputs.q, inputs.k, inputs.v, inputs.plan, options);
        EXPECT_LT(largest_difference(result.output, expected.output), kTolerance)
            << tokens << " tokens, ragged " << ragged << ", " << to_string(options.merge);
        EXPECT_LT(largest_difference(result.lse, expected.lse), kTolerance) << tokens << " tokens, ragged " << ragged;
      }
    }
  }
}

TEST_P(AttendOracle, EqualsTheDenseOracleWithRelativePositionsAndDropout) {
  const bool cross = GetParam().kind == AttentionKind::cross;
  for (const RelativePosition relative :
       {RelativePosition::none, RelativePosition::true_offset, RelativePosition::rank}) {
    if (cross && relative != RelativePosition::none) continue;
    const CaseInputs inputs = make_inputs(GetParam(), {.batch = 2, .tokens = 33, .ragged = true, .seed = 5});
    for (const Merge merge : {Merge::lse, Merge::mean}) {
      AttendOptions options = options_for(merge, 0.0);
      options.relative = relative;
      if (relative != RelativePosition::none) {
        options.relative_key = random_tensor({2 * 5 + 1, inputs.q.size(3)}, 11);
        options.relative_value = random_tensor({2 * 5 + 1, inputs.v.size(3)}, 12);
      }
      options.dropout = {.probability = 0.3, .key = 99, .sample_ids = at::tensor({41, 17}, at::kLong)};
      for (const AttendOptions& each : {options, with_recency(options)}) {
        const AttendResult result = attend(inputs.q, inputs.k, inputs.v, inputs.plan, each);
        const AttendResult expected = dense_attend(inputs.q, inputs.k, inputs.v, inputs.plan, each);
        EXPECT_LT(largest_difference(result.output, expected.output), kTolerance)
            << to_string(relative) << " " << to_string(merge);
        EXPECT_LT(largest_difference(result.lse, expected.lse), kTolerance);
      }
    }
  }
}

TEST_P(AttendOracle, GradientsEqualAutogradThroughTheDenseOracle) {
  const bool cross = GetParam().kind == AttentionKind::cross;
  const CaseInputs inputs = make_inputs(GetParam(), {.batch = 2, .tokens = 65, .ragged = true, .seed = 3});
  for (const Merge merge : {Merge::lse, Merge::mean}) {
    AttendOptions options = options_for(merge, 0.01);
    std::vector<at::Tensor> leaves{inputs.q.clone(), inputs.k.clone(), inputs.v.clone()};
    if (!cross) {
      options.relative = RelativePosition::rank;
      leaves.push_back(random_tensor({2 * 4 + 1, inputs.q.size(3)}, 11));
      leaves.push_back(random_tensor({2 * 4 + 1, inputs.v.size(3)}, 12));
    }
    options.dropout = {.probability = 0.2, .key = 5};
    for (at::Tensor& leaf : leaves) leaf.set_requires_grad(true);
    if (!cross) {
      options.relative_key = leaves[3];
      options.relative_value = leaves[4];
    }
    const auto gradients_of = [&](const AttendResult& result) {
      // Rows that see nothing have an lse of minus infinity, and no gradient.
      const at::Tensor seen = result.lse.detach().isfinite();
      const at::Tensor lse = at::where(seen, result.lse, at::zeros_like(result.lse));
      const at::Tensor loss =
          (result.output * random_tensor(result.output.sizes(), 8)).sum() + (lse * random_tensor(lse.sizes(), 9)).sum();
      return torch::autograd::grad({loss}, leaves);
    };
    for (const AttendOptions& each : {options, with_recency(options)}) {
      const auto result = gradients_of(attend(leaves[0], leaves[1], leaves[2], inputs.plan, each));
      const auto expected = gradients_of(dense_attend(leaves[0], leaves[1], leaves[2], inputs.plan, each));
      for (std::size_t index = 0; index < leaves.size(); ++index) {
        EXPECT_LT(largest_difference(result[index], expected[index]), kTolerance)
            << "input " << index << ", " << to_string(merge);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPattern, AttendOracle, ::testing::ValuesIn(support::every_pattern_case()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace routing::attend_oracle_test
