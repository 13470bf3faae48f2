// New tokens over kept rows attend as they would in the whole sequence.
#include "routing/attention/patterns/position_patterns.h"
#include "routing/core/error.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/attend/attend_fused.h"
#include "routing/ops/attend/head_tensors.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace routing::attend_kept_test {
namespace {

using support::random_tensor;

constexpr std::int64_t kTokens = 70;

// The last two of all tokens of one head, which see everything up to themselves; the store holds the last token first.
KeptPlan last_two_tokens() {
  KeptPlan plan{.batch = 1,
                .heads = 1,
                .num_queries = 2,
                .num_keys = kTokens,
                .query_order = {0, 1},
                .key_order = std::vector<std::int32_t>(kTokens),
                .query_origins = {kTokens - 2},
                .groups = {0, 2, 0, kTokens},
                .unit_offsets = {0, 1},
                .member_offsets = {0, 1, 2},
                .member_group = {0, 0},
                .member_rank = {0, 1},
                .views = {.group_offsets = {0, 2},
                          .views = {{.key_from = 0, .key_to = kTokens - 1, .place = kTokens - 1},
                                    {.key_from = 0, .key_to = kTokens, .place = kTokens}},
                          .repeats = {}}};
  std::iota(plan.key_order.begin(), plan.key_order.end(), 0);
  plan.key_rows.assign(plan.key_order.rbegin(), plan.key_order.rend());
  return plan;
}

TEST(AttendKept, HasTheBitsOfTheWholePass) {
  const at::Tensor q = random_tensor({1, 1, kTokens, 8}, 1, at::kFloat);
  const at::Tensor k = random_tensor({1, 1, kTokens, 8}, 2, at::kFloat);
  const at::Tensor v = random_tensor({1, 1, kTokens, 6}, 3, at::kFloat);
  const Plan whole_plan = full_plan(self_layout(1, 1, kTokens), true, SelfRule::allowed);
  const at::Tensor rows = at::cat({k[0][0], v[0][0]}, 1).flip(0).contiguous();
  KeptTables tables;
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const AttendOptions options{.scale = 0.4,
                                .relative = RelativePosition::true_offset,
                                .relative_key = random_tensor({7, 8}, 4, at::kFloat),
                                .relative_value = random_tensor({7, 6}, 5, at::kFloat),
                                .recency = at::tensor({0.05F}),
                                .precision = precision};
    const at::Tensor whole = attend_fused_forward({q, k, v}, whole_plan, options).output;
    const auto attend_rows = [&](const at::Tensor& kept) {
      at::Tensor output = at::zeros({1, 1, 2, 6});
      attend_kept(q.narrow(2, kTokens - 2, 2), {kept, 8, tables}, last_two_tokens(), options, written_rows(output));
      return output;
    };
    const at::Tensor expected = whole.narrow(2, kTokens - 2, 2);
    EXPECT_TRUE(attend_rows(rows).equal(expected)) << "bf16: " << (precision == MatmulPrecision::bf16);
    if (attend_keeps_halves(precision)) {
      EXPECT_TRUE(attend_rows(rows.to(at::kBFloat16)).equal(expected)) << "rows that were rounded before";
    } else {
      EXPECT_THROW(attend_rows(rows.to(at::kBFloat16)), InputError) << "nobody reads them here";
    }
  }
}

TEST(KeptTables, ArePackedOnceForEachPrecision) {
  const at::Tensor table = random_tensor({5, 4}, 1, at::kFloat);
  kernels::AttendRules rules{.dim = 4, .value_dim = 4, .relative = RelativePosition::rank, .max_relative = 2};
  KeptTables tables;
  EXPECT_EQ(tables.packed(rules), nullptr) << "there is no table";
  rules.relative_key = table.data_ptr<float>();
  const kernels::PackedTables first = *tables.packed(rules);
  EXPECT_EQ(&tables.packed(rules)->contents(), &first.contents());
  rules.bf16 = true;
  EXPECT_NE(&tables.packed(rules)->contents(), &first.contents());
}

TEST(KeptPlan, AKeyOfTwoGroupsCountsInTheFirstOnceRepeatsAreMarked) {
  KeptPlan plan{.batch = 1,
                .heads = 1,
                .num_queries = 1,
                .num_keys = 3,
                .query_order = {0, 0},
                .key_order = {4, 7, 5, 7},
                .key_rows = {0, 2, 1, 2},
                .query_origins = {7},
                .groups = {0, 1, 0, 2, 1, 2, 2, 4},
                .unit_offsets = {0, 2},
                .member_offsets = {0, 2},
                .member_group = {0, 1},
                .member_rank = {0, 0},
                .views = {.group_offsets = {0, 1, 2},
                          .views = {{.key_from = 0, .key_to = 2, .place = 2}, {.key_from = 0, .key_to = 2, .place = 2}},
                          .repeats = {}}};
  EXPECT_EQ(plan.keys_of(0, 0, 0), (std::vector<std::int32_t>{4, 7, 5, 7}));
  mark_repeats(plan);
  EXPECT_EQ(plan.keys_of(0, 0, 0), (std::vector<std::int32_t>{4, 7, 5}));
  EXPECT_EQ(kernel_plan(plan).key_rows[3], 2);
  EXPECT_TRUE(kernel_plan(plan).repeats.any());
  plan.clear();
  EXPECT_TRUE(plan.key_order.empty() && plan.groups.empty() && plan.views.views.empty());
  EXPECT_FALSE(kernel_plan(plan).repeats.any());
}

}  // namespace
}  // namespace routing::attend_kept_test
