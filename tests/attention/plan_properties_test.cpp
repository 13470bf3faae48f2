// What must hold for every pattern, over hundreds of seeds: keys obey S_i, padding never appears, the self rule holds
// over several groups, permuting the batch permutes the plan and the result, and threads change nothing.
#include "routing/core/parallel.h"
#include "routing/ops/attend/attend.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <string>

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

// What one plan must hold; its dense counts are worked out once for all of it.
struct Counted {
  PatternCase pattern_case;
  CaseSizes sizes;
  CaseInputs inputs = make_inputs(pattern_case, sizes);
  at::Tensor counts = inputs.plan.to_dense_counts();
};

void expect_no_later_key(const Counted& counted) {
  if (counted.pattern_case.kind != AttentionKind::causal_self) return;
  EXPECT_EQ(counted.counts.triu(1).abs().sum().item<std::int64_t>(), 0);
}

// As many keys at or before the query as the window says, counted inside each group; likewise after it.
void expect_windows_not_exceeded(const Counted& counted) {
  const VisibilityRules& rules = counted.inputs.plan.rules;
  if (!rules.lookback && !rules.lookahead) return;
  const at::Tensor masks = counted.inputs.plan.to_dense_masks(0, 1).to(at::kLong);
  EXPECT_LE(masks.tril(0).sum(2).max().item<std::int64_t>(), rules.lookback.value_or(1 << 30));
  EXPECT_LE(masks.triu(1).sum(2).max().item<std::int64_t>(), rules.lookahead.value_or(1 << 30));
}

void expect_no_padding(const Counted& counted) {
  if (!counted.sizes.ragged) return;
  const CaseInputs& inputs = counted.inputs;
  const at::Tensor padded_queries = inputs.valid.logical_not().view({inputs.valid.size(0), 1, -1, 1});
  const at::Tensor padded_keys = inputs.key_valid.logical_not().view({inputs.key_valid.size(0), 1, 1, -1});
  const auto sum_at = [](const at::Tensor& numbers, const at::Tensor& places) {
    return numbers.masked_select(places.expand_as(numbers)).sum().item<std::int64_t>();
  };
  EXPECT_EQ(sum_at(counted.counts, padded_queries), 0);
  EXPECT_EQ(sum_at(counted.counts, padded_keys), 0);
  const at::Tensor memberships =
      inputs.plan.query_index.offsets.diff().view({-1, inputs.plan.heads, inputs.plan.num_queries});
  EXPECT_EQ(sum_at(memberships, inputs.valid.logical_not().unsqueeze(1)), 0);
}

// Over all groups of a token: itself only where there is nothing else to see.
void expect_self_rule(const Counted& counted) {
  if (counted.pattern_case.group.self != SelfRule::only_if_alone) return;
  // The same plan with itself allowed says what there would be to see.
  PatternCase other = counted.pattern_case;
  other.group.self = SelfRule::allowed;
  const at::Tensor all = make_inputs(other, counted.sizes).plan.to_dense_counts();
  const at::Tensor self = all.diagonal(0, 2, 3);
  const at::Tensor others = all.sum(3) - self;
  const at::Tensor itself = counted.counts.diagonal(0, 2, 3);
  EXPECT_TRUE(itself.equal(at::where(others == 0, self, at::zeros_like(self))));
  EXPECT_TRUE((counted.counts.sum(3) - itself).equal(others));
}

TEST_P(PlanProperties, KeysObeyCausalityWindowsPaddingAndTheSelfRule) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Counted counted{GetParam(), sizes_of(seed)};
    expect_no_later_key(counted);
    expect_windows_not_exceeded(counted);
    expect_no_padding(counted);
    expect_self_rule(counted);
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
    // Attention is dearer than plans, and every third seed has every length with and without padding.
    if (seed % 3 != 0) continue;
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
