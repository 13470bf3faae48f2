// Plans against masks written from the paper's formulas, read as j <= i, and against hand-worked lists.
#include "routing/attention/patterns/position_patterns.h"

#include "routing/attention/plan/remembered_tokens.h"
#include "routing/ops/attend/attend.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

namespace routing::position_patterns_test {
namespace {

using Formula = std::function<bool(std::int64_t, std::int64_t)>;

at::Tensor mask_from(std::int64_t tokens, const Formula& reads) {
  at::Tensor mask = at::zeros({tokens, tokens}, at::kInt);
  for (std::int64_t i = 0; i < tokens; ++i) {
    for (std::int64_t j = 0; j < tokens; ++j) mask[i][j] = reads(i, j) ? 1 : 0;
  }
  return mask;
}

void expect_mask(const Plan& plan, const Formula& reads, const std::string& what) {
  const at::Tensor counts = plan.to_dense_counts();
  const at::Tensor expected = mask_from(plan.num_queries, reads);
  for (std::int64_t sequence = 0; sequence < plan.batch; ++sequence) {
    for (std::int64_t head = 0; head < plan.heads; ++head) {
      EXPECT_TRUE(counts[sequence][head].equal(expected)) << what << " of " << plan.num_queries << " tokens";
    }
  }
}

constexpr std::int64_t kLengths[] = {1, 2, 3, 7, 8, 9, 30};

TEST(FullPlan, ReadsEveryKeyUpToTheQueryOrAll) {
  for (const std::int64_t n : kLengths) {
    expect_mask(
        full_plan(self_layout(2, 3, n), true, SelfRule::allowed), [](auto i, auto j) { return j <= i; }, "full");
    expect_mask(
        full_plan(self_layout(2, 3, n), false, SelfRule::allowed), [](auto, auto) { return true; }, "full");
  }
}

TEST(LocalPlan, SlidingReadsTheLastWindowTokens) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t w : {1, 2, 5, 100}) {
      expect_mask(
          local_plan(self_layout(1, 2, n), {.window = w}, true, SelfRule::allowed),
          [&](auto i, auto j) { return i - w < j && j <= i; }, "sliding");
      expect_mask(
          local_plan(self_layout(1, 2, n), {.window = w}, false, SelfRule::allowed),
          [&](auto i, auto j) { return i - w < j && j < i + w; }, "sliding both ways");
      expect_mask(
          local_plan(self_layout(1, 2, n), {.window = w, .lookahead = 3}, false, SelfRule::allowed),
          [&](auto i, auto j) { return i - w < j && j <= i + 3; }, "sliding with lookahead");
    }
  }
}

// docs/facts.md B1: the query at offset t of its block sees B + t + 1 keys, t + 1 in the first block.
TEST(LocalPlan, BlockReadsItsOwnAndThePreviousBlock) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t block : {1, 3, 4, 100}) {
      const LocalPattern pattern{.form = LocalForm::block, .window = block};
      expect_mask(
          local_plan(self_layout(1, 2, n), pattern, true, SelfRule::allowed),
          [&](auto i, auto j) { return j <= i && j / block >= i / block - 1; }, "block");
      expect_mask(
          local_plan(self_layout(1, 2, n), pattern, false, SelfRule::allowed),
          [&](auto i, auto j) { return std::abs(j / block - i / block) <= 1; }, "block both ways");
    }
  }
}

TEST(LocalPlan, BlockReadsAsManyBlocksBesideItAsItsFlange) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t flange : {0, 2, 3}) {
      const LocalPattern pattern{.form = LocalForm::block, .window = 3, .flange = flange};
      expect_mask(
          local_plan(self_layout(1, 2, n), pattern, true, SelfRule::allowed),
          [&](auto i, auto j) { return j <= i && i / 3 - j / 3 <= flange; }, "flange");
      expect_mask(
          local_plan(self_layout(1, 2, n), pattern, false, SelfRule::allowed),
          [&](auto i, auto j) { return std::abs(j / 3 - i / 3) <= flange; }, "flange both ways");
    }
  }
}

TEST(LocalPlan, BlockCrossCutsBothSequencesIntoEquallyManyBlocks) {
  // 9 queries in blocks of 3 make 3 blocks; 7 keys make 3 blocks of 3, 3 and 1.
  for (const std::int64_t flange : {0, 1, 2}) {
    const Plan plan = local_plan(cross_layout({.batch = 1, .heads = 1, .num_queries = 9, .num_keys = 7}),
                                 {.form = LocalForm::block, .window = 3, .flange = flange}, false, SelfRule::allowed);
    const at::Tensor counts = plan.to_dense_counts()[0][0];
    for (std::int64_t i = 0; i < 9; ++i) {
      for (std::int64_t j = 0; j < 7; ++j) {
        EXPECT_EQ(counts[i][j].item<int>(), std::abs(i / 3 - j / 3) <= flange ? 1 : 0) << i << " " << j;
      }
    }
  }
}

// Child et al. 2019, section 4.3: the second set of fixed attention. Nothing but the formula makes a token its own key.
TEST(FixedPlan, ReadsTheLastTokensOfEveryCell) {
  for (const std::int64_t n : kLengths) {
    for (const FixedPattern& pattern :
         {FixedPattern{.stride = 1, .summary = 1}, FixedPattern{.stride = 4, .summary = 1},
          FixedPattern{.stride = 5, .summary = 2}, FixedPattern{.stride = 7, .summary = 7},
          FixedPattern{.stride = 100, .summary = 8}}) {
      const auto sums_up = [&](auto j) { return j % pattern.stride >= pattern.stride - pattern.summary; };
      expect_mask(
          fixed_plan(self_layout(2, 2, n), pattern, true, SelfRule::allowed),
          [&](auto i, auto j) { return sums_up(j) && j <= i; }, "fixed");
      expect_mask(
          fixed_plan(self_layout(2, 2, n), pattern, false, SelfRule::allowed),
          [&](auto /*i*/, auto j) { return sums_up(j); }, "fixed both ways");
    }
  }
}

TEST(StridedPlan, ReadsPositionsOfTheSameResidue) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t stride : {1, 2, 5, 100}) {
      expect_mask(
          strided_plan(self_layout(2, 2, n), {.stride = stride}, true, SelfRule::allowed),
          [&](auto i, auto j) { return (i - j) % stride == 0 && j <= i; }, "strided");
      expect_mask(
          strided_plan(self_layout(2, 2, n), {.stride = stride}, false, SelfRule::allowed),
          [&](auto i, auto j) { return (i - j) % stride == 0; }, "strided both ways");
    }
  }
}

// Cells of 3, the last of each read by all: tokens 0 and 1 see nothing, token 2 itself, token 5 tokens 2 and 5.
TEST(FixedAttention, HandWorkedQueriesBeforeTheFirstSummaryGetZero) {
  const Plan plan = fixed_plan(self_layout(1, 1, 6), {.stride = 3, .summary = 1}, true, SelfRule::allowed);
  const at::Tensor q = at::tensor({9.0, 9.0, 9.0, 0.0, 9.0, 1.0}, at::kDouble).view({1, 1, 6, 1});
  const at::Tensor k = at::tensor({9.0, 9.0, 0.0, 9.0, 9.0, std::log(3.0)}, at::kDouble).view({1, 1, 6, 1});
  const at::Tensor v = at::tensor({9.0, 9.0, 4.0, 9.0, 9.0, 8.0}, at::kDouble).view({1, 1, 6, 1});
  const AttendResult result = attend(q, k, v, plan, {});
  const at::Tensor expected = at::tensor({0.0, 0.0, 4.0, 4.0, 4.0, 4.0 / 4 + 8.0 * 3 / 4}, at::kDouble);
  EXPECT_LE((result.output.view({6}) - expected).abs().max().item<double>(), 1e-14);
  EXPECT_TRUE(std::isinf(result.lse[0][0][1].item<double>()));
}

TEST(SelfRule, OnlyIfAloneRemovesTheDiagonalExceptWhereNothingElseIsSeen) {
  for (const std::int64_t n : kLengths) {
    expect_mask(
        strided_plan(self_layout(1, 1, n), {.stride = 4}, true, SelfRule::only_if_alone),
        [](auto i, auto j) { return i < 4 ? i == j : (i - j) % 4 == 0 && j < i; }, "strided alone");
    expect_mask(
        local_plan(self_layout(1, 1, n), {.window = 3}, true, SelfRule::only_if_alone),
        [](auto i, auto j) { return i == 0 ? j == 0 : i - 3 < j && j < i; }, "sliding alone");
  }
}

// The lists themselves, for one small case of each.
// Strided attention over two remembered tokens and four new ones: the groups are the same, their queries begin later.
TEST(Plans, RememberedTokensAreKeysOnly) {
  const Plan whole = strided_plan(self_layout(1, 1, 6), {.stride = 2}, true, SelfRule::allowed);
  const Plan later = with_queries_from(whole, 2);
  EXPECT_TRUE(at::equal(later.groups, at::tensor({1, 3, 0, 3, 4, 6, 3, 6}, at::kLong).view({2, 4})));
  const at::Tensor before = whole.to_dense_counts();
  const at::Tensor after = later.to_dense_counts();
  EXPECT_TRUE(at::equal(after.narrow(2, 2, 4), before.narrow(2, 2, 4)));
  EXPECT_EQ(after.narrow(2, 0, 2).sum().item<std::int64_t>(), 0);
  EXPECT_TRUE(with_queries_from(whole, 0) == whole);
  EXPECT_EQ(with_queries_from(whole, 6).to_dense_counts().sum().item<std::int64_t>(), 0);
}

TEST(Plans, HandWorkedLists) {
  const Plan strided = strided_plan(self_layout(1, 2, 5), {.stride = 2}, true, SelfRule::allowed);
  EXPECT_TRUE(strided.query_order.equal(at::tensor({0, 2, 4, 1, 3}, at::kInt)));
  EXPECT_TRUE(
      strided.groups.equal(at::tensor({0, 3, 0, 3, 3, 5, 3, 5, 0, 3, 0, 3, 3, 5, 3, 5}, at::kLong).view({4, 4})));
  EXPECT_TRUE(strided.query_order.is_same(strided.key_order));
  const Plan block = local_plan(self_layout(1, 1, 5), {.form = LocalForm::block, .window = 2}, true, SelfRule::allowed);
  EXPECT_TRUE(block.groups.equal(at::tensor({0, 2, 0, 2, 2, 4, 0, 4, 4, 5, 2, 5}, at::kLong).view({3, 4})));
  const Plan own =
      local_plan(self_layout(1, 1, 5), {.form = LocalForm::block, .window = 2, .flange = 0}, true, SelfRule::allowed);
  EXPECT_TRUE(own.groups.equal(at::tensor({0, 2, 0, 2, 2, 4, 2, 4, 4, 5, 4, 5}, at::kLong).view({3, 4})));
  const Plan fixed = fixed_plan(self_layout(1, 2, 7), {.stride = 3, .summary = 2}, true, SelfRule::allowed);
  EXPECT_TRUE(fixed.query_order.equal(at::tensor({0, 1, 2, 3, 4, 5, 6}, at::kInt)));
  EXPECT_TRUE(fixed.key_order.equal(at::tensor({1, 2, 4, 5}, at::kInt)));
  EXPECT_TRUE(fixed.groups.equal(at::tensor({0, 7, 0, 4, 0, 7, 0, 4}, at::kLong).view({2, 4})));
  const Plan full = full_plan(self_layout(2, 1, 3, at::tensor({1, 1, 1, 1, 0, 1}).view({2, 3}).to(at::kBool)), true,
                              SelfRule::allowed);
  EXPECT_TRUE(full.query_order.equal(at::tensor({0, 1, 2, 0, 2}, at::kInt)));
  EXPECT_TRUE(full.unit_offsets.equal(at::tensor({0, 1, 2}, at::kLong)));
}

TEST(RandomPlan, HasGroupsOfDistinctRealTokens) {
  const at::Tensor valid = support::ragged_mask(3, 40, 4);
  const Plan plan = random_plan(self_layout(3, 2, 40, valid), {.groups = 5, .window = 12}, true, SelfRule::allowed, 9);
  EXPECT_EQ(plan.num_groups(), 3 * 2 * 5);
  for (std::int64_t group = 0; group < plan.num_groups(); ++group) {
    const std::int64_t sequence = group / 10;
    const std::int64_t real = valid[sequence].sum().item<std::int64_t>();
    EXPECT_EQ(group_range(plan, group).num_queries(), std::min<std::int64_t>(12, real));
  }
}

TEST(RandomPlan, HeadsGroupsAndKeysDifferButSequencesOfOneLengthDoNot) {
  const Plan plan = random_plan(self_layout(2, 2, 64), {.groups = 3, .window = 8}, false, SelfRule::allowed, 9);
  std::set<std::vector<std::int32_t>> lists;
  for (std::int64_t group = 0; group < plan.num_groups(); ++group) {
    const GroupRange range = group_range(plan, group);
    const auto* members = plan.query_order.data_ptr<std::int32_t>();
    lists.insert({members + range.q_begin, members + range.q_end});
  }
  EXPECT_EQ(lists.size(), 6U);
  const at::Tensor counts = plan.to_dense_counts();
  EXPECT_TRUE(counts[0].equal(counts[1]));
  const Plan cross = random_plan(cross_layout({.batch = 1, .heads = 1, .num_queries = 64, .num_keys = 64}),
                                 {.groups = 1, .window = 8}, false, SelfRule::allowed, 9);
  EXPECT_FALSE(cross.query_order.equal(cross.key_order));
}

}  // namespace
}  // namespace routing::position_patterns_test
