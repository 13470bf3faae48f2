#include "routing/attention/patterns/lsh.h"

#include "routing/attention/patterns/pattern.h"
#include "routing/core/error.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/attend/visibility.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace routing::lsh_test {
namespace {

using support::random_tensor;

TEST(LshBuckets, HandWorkedRotation) {
  // R is the identity: the bucket is the largest of (x, y, -x, -y).
  const at::Tensor rotation = at::eye(2, at::kDouble).view({1, 1, 2, 2});
  const at::Tensor vectors =
      at::tensor({3.0, 1.0, 1.0, 2.0, -5.0, 1.0, 0.5, -0.6, 0.0, 0.0, 1.0, 1.0}, at::kDouble).view({1, 1, 6, 2});
  // The zero vector and the tie (1, 1) go to the first maximum.
  EXPECT_TRUE(lsh_buckets(vectors, rotation).view({-1}).equal(at::tensor({0, 1, 2, 3, 0, 0}, at::kInt)));
}

TEST(LshBuckets, EqualArgmaxOfTheProjectionsAndDoNotDependOnLength) {
  const LshPattern pattern{.buckets = 6, .rounds = 3};
  const at::Tensor rotations = lsh_rotations(pattern, 2, 5, 1, at::TensorOptions(at::kDouble));
  const at::Tensor x = random_tensor({2, 2, 50, 5}, 3);
  const at::Tensor buckets = lsh_buckets(x, rotations);
  const at::Tensor projected = at::einsum("bhnd,hrdc->bhrnc", {x, rotations});
  EXPECT_TRUE(buckets.equal(at::cat({projected, -projected}, -1).argmax(-1).to(at::kInt)));
  // Scale changes nothing: only the direction counts.
  EXPECT_TRUE(lsh_buckets(7.0 * x, rotations).equal(buckets));
}

TEST(LshRotations, OfAHeadDoNotDependOnHowManyHeadsThereAre) {
  const LshPattern pattern{.buckets = 8, .rounds = 2};
  const at::Tensor two = lsh_rotations(pattern, 2, 4, 5, at::TensorOptions(at::kDouble));
  const at::Tensor three = lsh_rotations(pattern, 3, 4, 5, at::TensorOptions(at::kDouble));
  EXPECT_EQ(two.sizes(), at::IntArrayRef({2, 2, 4, 4}));
  EXPECT_TRUE(three.narrow(0, 0, 2).equal(two));
  EXPECT_FALSE(two[0].equal(two[1]));
}

TEST(LshPlan, HandWorkedGroups) {
  const at::Tensor buckets = at::tensor({1, 0, 1, 1, 0}, at::kInt).view({1, 1, 1, 5});
  const Plan plan = lsh_plan(self_layout(1, 1, 5), {.buckets = 2}, {.lookback = 2, .causal = true}, buckets);
  EXPECT_TRUE(plan.query_order.equal(at::tensor({1, 4, 0, 2, 3}, at::kInt)));
  EXPECT_TRUE(plan.groups.equal(at::tensor({0, 2, 0, 2, 2, 5, 2, 5}, at::kLong).view({2, 4})));
  const at::Tensor expected = at::tensor({1, 0, 0, 0, 0,  //
                                          0, 1, 0, 0, 0,  //
                                          1, 0, 1, 0, 0,  //
                                          0, 0, 1, 1, 0,  // token 0 has left the window of two
                                          0, 1, 0, 0, 1},
                                         at::kInt)
                                  .view({5, 5});
  EXPECT_TRUE(plan.to_dense_counts()[0][0].equal(expected));
}

// Every round puts each real token into exactly one bucket, as query and as key.
TEST(LshPlan, EveryRealTokenHasOneBucketARound) {
  const LshPattern pattern{.buckets = 4, .rounds = 3, .window = 5};
  const at::Tensor valid = support::ragged_mask(3, 30, 2);
  const at::Tensor rotations = lsh_rotations(pattern, 2, 4, 1, at::TensorOptions(at::kDouble));
  const at::Tensor queries = lsh_buckets(random_tensor({3, 2, 30, 4}, 1), rotations);
  const at::Tensor keys = lsh_buckets(random_tensor({3, 2, 30, 4}, 2), rotations);
  const Plan plan = lsh_plan(self_layout(3, 2, 30, valid), pattern, {.causal = true}, queries, keys);
  for (const MemberIndex& index : {plan.query_index, index_members(plan, Side::keys)}) {
    const at::Tensor memberships = index.offsets.diff().view({3, 2, 30});
    EXPECT_TRUE(memberships.equal((valid.to(at::kLong) * 3).unsqueeze(1).expand({3, 2, 30})));
  }
}

// A head whose first round hashes by the sign of the first number of a vector, its second by that of the second.
std::shared_ptr<Pattern> sign_pattern(std::int64_t rounds, Merge merge) {
  const auto pattern = make_pattern(
      {.pattern = LshPattern{.buckets = 2, .rounds = rounds, .window = 3}, .shared_query_key = true, .merge = merge},
      {.dim = 2, .options = at::TensorOptions(at::kDouble)});
  at::Tensor rotations = pattern->named_buffers()["rotations"];
  rotations.copy_(at::tensor({1.0, 0.0, 0.0, 1.0}, at::kDouble).view({1, 2, 2, 1}).narrow(1, 0, rounds));
  return pattern;
}

// Round 0 puts all three tokens into one bucket, round 1 tokens 0 and 2. So token 2 finds token 0 and itself in both.
// Reformer takes log N_ij off their logits: logits 0, 0 and ln 2, for weights 1/4, 1/4 and 1/2. Counted as often as
// they are found, the weights would be 2/7, 1/7 and 4/7.
TEST(LshGroups, HandWorkedKeyOfTwoRoundsCountsOnce) {
  const at::Tensor x = at::tensor({1.0, 1.0, 1.0, -1.0, 2.0, 1.0}, at::kDouble).view({1, 1, 3, 2});
  const Plan plan =
      sign_pattern(2, Merge::lse)->plan({.layout = self_layout(1, 1, 3), .queries = x, .training = false});
  const at::Tensor expected = at::tensor({1, 0, 0, 1, 1, 0, 1, 1, 1}, at::kInt).view({3, 3});
  EXPECT_TRUE(plan.to_dense_counts()[0][0].equal(expected));
  EXPECT_EQ(attended_pairs(plan), 6);
  const at::Tensor q = at::tensor({0.0, 0.0, 1.0}, at::kDouble).view({1, 1, 3, 1});
  const at::Tensor k = at::tensor({0.0, 0.0, std::log(2.0)}, at::kDouble).view({1, 1, 3, 1});
  const at::Tensor v = at::tensor({16.0, 8.0, 12.0}, at::kDouble).view({1, 1, 3, 1});
  const AttendResult result = attend(q, k, v, plan, {});
  EXPECT_NEAR(result.output[0][0][2].item<double>(), 16.0 / 4 + 8.0 / 4 + 12.0 / 2, 1e-14);
  EXPECT_NEAR(result.lse[0][0][2].item<double>(), std::log(4.0), 1e-14);
}

// Reformer, appendix A: one softmax over all rounds, in which the logit of key j loses log N_ij for the N_ij rounds
// that have it beside query i. In double, by n x n matrices.
TEST(LshGroups, EqualsTheDenseFormulaWithLogNTakenOffTheLogits) {
  constexpr std::int64_t kTokens = 60;
  constexpr std::int64_t kDim = 4;
  const LshPattern config{.buckets = 4, .rounds = 5, .window = 9};
  const auto pattern = make_pattern({.pattern = config, .heads = 2, .shared_query_key = true},
                                    {.dim = kDim, .options = at::TensorOptions(at::kDouble)});
  const at::Tensor x = random_tensor({2, 2, kTokens, kDim}, 6);
  const at::Tensor v = random_tensor({2, 2, kTokens, 3}, 7);
  const at::Tensor buckets = lsh_buckets(x, pattern->named_buffers()["rotations"]);
  const auto bucket = buckets.accessor<std::int32_t, 4>();
  at::Tensor rounds = at::zeros({2, 2, kTokens, kTokens}, at::kDouble);  // N_ij
  auto count = rounds.accessor<double, 4>();
  for (std::int64_t unit = 0; unit < 4; ++unit) {
    for (std::int64_t round = 0; round < config.rounds; ++round) {
      for (std::int64_t i = 0; i < kTokens; ++i) {
        std::int64_t seen = 0;
        for (std::int64_t j = i; j >= 0 && seen < config.window; --j) {
          if (bucket[unit / 2][unit % 2][round][j] != bucket[unit / 2][unit % 2][round][i]) continue;
          count[unit / 2][unit % 2][i][j] += 1.0;
          ++seen;
        }
      }
    }
  }
  ASSERT_GE(rounds.max().item<double>(), 4.0) << "keys that several rounds find";
  // A key counted N times, with log N off its logit, each time.
  const at::Tensor logits = at::matmul(x, x.transpose(2, 3)) - rounds.log().clamp_min(0.0);
  const at::Tensor weights = logits.exp() * rounds;
  const at::Tensor expected = at::matmul(weights, v) / weights.sum(-1, /*keepdim=*/true);
  const Plan plan = pattern->plan({.layout = self_layout(2, 2, kTokens), .queries = x});
  const AttendResult result = attend(x, x, v, plan, {.scale = 1.0});
  EXPECT_LE((result.output - expected).abs().max().item<double>(), 1e-12);
  EXPECT_LE((result.lse - weights.sum(-1).log()).abs().max().item<double>(), 1e-12);
}

// A mean is over rounds, each a softmax over all keys of its bucket.
TEST(LshGroups, OnlyOneSoftmaxOverSeveralRoundsCountsKeysOnce) {
  const at::Tensor x = at::tensor({1.0, 1.0, 1.0, -1.0, 2.0, 1.0}, at::kDouble).view({1, 1, 3, 2});
  const auto plan_of = [&](std::int64_t rounds, Merge merge) {
    return sign_pattern(rounds, merge)->plan({.layout = self_layout(1, 1, 3), .queries = x, .training = false});
  };
  EXPECT_EQ(plan_of(2, Merge::lse).rules.repeats, RepeatRule::once);
  EXPECT_EQ(plan_of(1, Merge::lse).rules.repeats, RepeatRule::every_time);
  EXPECT_EQ(plan_of(2, Merge::mean).rules.repeats, RepeatRule::every_time);
  EXPECT_EQ(plan_of(2, Merge::mean).to_dense_counts()[0][0][2][0].item<int>(), 2);
}

TEST(LshPlan, WrongBucketsAreRefused) {
  const LshPattern pattern{.buckets = 2};
  const at::Tensor too_large = at::full({1, 1, 1, 3}, 2, at::kInt);
  EXPECT_THROW(lsh_plan(self_layout(1, 1, 3), pattern, {}, too_large), InputError);
  EXPECT_THROW(lsh_plan(self_layout(1, 1, 4), pattern, {}, at::zeros({1, 1, 1, 3}, at::kInt)), InputError);
  EXPECT_THROW(lsh_buckets(at::zeros({1, 2, 3, 4}), at::zeros({1, 1, 4, 2})), InputError);
}

}  // namespace
}  // namespace routing::lsh_test
