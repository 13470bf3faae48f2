// What must hold for every pattern, over hundreds of seeds: keys obey S_i, padding never appears, the self rule holds
// over several groups, permuting the batch permutes the plan and the result, and threads change nothing.
#include "routing/core/parallel.h"
#include "routing/ops/attend/attend.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

namespace routing::plan_properties_test {
namespace {

using support::CaseInputs;
using support::CaseSizes;
using support::make_inputs;
using support::PatternCase;

constexpr std::uint64_t kSeeds = 200;

class PlanProperties : public ::testing::TestWithParam<PatternCase> {
 protected:
  // A different length and raggedness for each seed.
  static CaseSizes sizes_of(std::uint64_t seed) {
    return {.batch = 1 + static_cast<std::int64_t>(seed % 3),
            .tokens = 1 + static_cast<std::int64_t>((seed * 7) % 29),
            .dim = 3,
            .ragged = seed % 2 == 0,
            .seed = seed};
  }
};

TEST_P(PlanProperties, CausalPlansReadNoLaterKey) {
  if (GetParam().kind != AttentionKind::causal_self) GTEST_SKIP() << "concerns causal plans only";
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const at::Tensor counts = make_inputs(GetParam(), sizes_of(seed)).plan.to_dense_counts();
    ASSERT_EQ(counts.triu(1).abs().sum().item<std::int64_t>(), 0) << "seed " << seed;
  }
}

// As many keys at or before the query as the window says, counted inside each group; likewise after it.
TEST_P(PlanProperties, WindowsAreNeverExceeded) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const CaseInputs inputs = make_inputs(GetParam(), sizes_of(seed));
    const VisibilityRules& rules = inputs.plan.rules;
    if (!rules.lookback && !rules.lookahead) GTEST_SKIP() << "this pattern has no window";
    const at::Tensor masks = inputs.plan.to_dense_masks(0, 1);
    const at::Tensor behind = masks.to(at::kLong).tril(0).sum(2);
    const at::Tensor ahead = masks.to(at::kLong).triu(1).sum(2);
    ASSERT_LE(behind.max().item<std::int64_t>(), rules.lookback.value_or(1 << 30));
    ASSERT_LE(ahead.max().item<std::int64_t>(), rules.lookahead.value_or(1 << 30));
  }
}

TEST_P(PlanProperties, PaddingNeverAppears) {
  for (std::uint64_t seed = 0; seed < kSeeds; seed += 2) {
    const CaseInputs inputs = make_inputs(GetParam(), sizes_of(seed));
    const at::Tensor counts = inputs.plan.to_dense_counts();
    const at::Tensor padded_queries = inputs.valid.logical_not().view({inputs.valid.size(0), 1, -1, 1});
    const at::Tensor padded_keys = inputs.key_valid.logical_not().view({inputs.key_valid.size(0), 1, 1, -1});
    ASSERT_EQ(counts.masked_select(padded_queries.expand_as(counts)).sum().item<std::int64_t>(), 0);
    ASSERT_EQ(counts.masked_select(padded_keys.expand_as(counts)).sum().item<std::int64_t>(), 0);
    const at::Tensor memberships =
        inputs.plan.query_index.offsets.diff().view({-1, inputs.plan.heads, inputs.plan.num_queries});
    ASSERT_EQ(memberships.masked_select(inputs.valid.logical_not().unsqueeze(1).expand_as(memberships))
                  .sum()
                  .item<std::int64_t>(),
              0);
  }
}

TEST_P(PlanProperties, SelfRuleHoldsOverAllGroupsOfAToken) {
  if (GetParam().kind == AttentionKind::cross) GTEST_SKIP() << "across sequences no key is the query itself";
  PatternCase other = GetParam();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const at::Tensor counts = make_inputs(GetParam(), sizes_of(seed)).plan.to_dense_counts();
    // The same plan with itself allowed says what there would be to see.
    other.group.self = SelfRule::allowed;
    const at::Tensor all = make_inputs(other, sizes_of(seed)).plan.to_dense_counts();
    const at::Tensor self = all.diagonal(0, 2, 3);
    const at::Tensor others = all.sum(3) - self;
    const bool alone_only = GetParam().group.self == SelfRule::only_if_alone;
    const at::Tensor expected = alone_only ? at::where(others == 0, self, at::zeros_like(self)) : self;
    ASSERT_TRUE(counts.diagonal(0, 2, 3).equal(expected)) << "seed " << seed;
    ASSERT_TRUE((counts.sum(3) - counts.diagonal(0, 2, 3)).equal(others)) << "seed " << seed;
  }
}

TEST_P(PlanProperties, PermutingTheBatchPermutesPlanAndResult) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    CaseSizes sizes = sizes_of(seed);
    sizes.batch = 3;
    const CaseInputs inputs = make_inputs(GetParam(), sizes);
    const at::Tensor order = at::tensor({2, 0, 1}, at::kLong);
    const auto permuted = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.index_select(0, order) : tensor;
    };
    CaseInputs shuffled{.q = permuted(inputs.q),
                        .k = permuted(inputs.k),
                        .v = permuted(inputs.v),
                        .valid = permuted(inputs.valid),
                        .key_valid = permuted(inputs.key_valid),
                        .layout = inputs.layout,
                        .plan = inputs.plan};
    for (std::size_t place = 0; place < 3; ++place) {
      const auto from = static_cast<std::size_t>(order[static_cast<std::int64_t>(place)].item<std::int64_t>());
      shuffled.layout.valid_queries[place] = inputs.layout.valid_queries[from];
      shuffled.layout.valid_keys[place] = inputs.layout.valid_keys[from];
    }
    const Plan plan = support::plan_for(GetParam(), shuffled, sizes);
    ASSERT_TRUE(plan.to_dense_counts().equal(permuted(inputs.plan.to_dense_counts()))) << "seed " << seed;
    const at::Tensor straight = attend(inputs.q, inputs.k, inputs.v, inputs.plan, {}).output;
    const at::Tensor result = attend(shuffled.q, shuffled.k, shuffled.v, plan, {}).output;
    ASSERT_TRUE(at::allclose(result, permuted(straight), 0.0, 1e-12)) << "seed " << seed;
  }
}

TEST_P(PlanProperties, PlansAreEqualBitForBitWithOneTwoAndFiveThreads) {
  for (const std::int64_t tokens : {1, 65, 700}) {
    const CaseSizes sizes{.batch = 3, .tokens = tokens, .ragged = true};
    set_num_threads(1);
    const Plan one = make_inputs(GetParam(), sizes).plan;
    for (const int threads : {2, 5}) {
      set_num_threads(threads);
      EXPECT_TRUE(make_inputs(GetParam(), sizes).plan == one) << tokens << " tokens, " << threads << " threads";
    }
    set_num_threads(available_cores());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPattern, PlanProperties, ::testing::ValuesIn(support::every_pattern_case()),
                         [](const auto& instance) { return instance.param.name; });

TEST(PlanEquality, SeesADifferenceInEveryPart) {
  const PatternCase& full = support::every_pattern_case().front();
  const Plan plan = make_inputs(full, {.tokens = 4}).plan;
  EXPECT_TRUE(plan == make_inputs(full, {.tokens = 4}).plan);
  EXPECT_FALSE(plan == make_inputs(full, {.tokens = 5}).plan);
  Plan other = plan;
  other.rules.lookback = 2;
  EXPECT_FALSE(plan == complete_plan(other));
  other = plan;
  other.groups = other.groups.clone();
  other.groups[0][1] = 3;
  EXPECT_FALSE(plan == complete_plan(other));
}

}  // namespace
}  // namespace routing::plan_properties_test
