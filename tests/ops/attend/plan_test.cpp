// The inverse index, the checks of a plan, and what view_plan says each query sees.
#include "routing/ops/attend/plan.h"

#include "routing/attention/plan/plan_builder.h"
#include "routing/core/error.h"
#include "routing/ops/attend/visibility.h"
#include "support/attend_problems.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <functional>

namespace routing::plan_test {
namespace {

// Two heads; the first has groups {0, 2} and {0, 1, 2}, the second {} and {1}.
Plan small_plan() {
  PlanBuilder builder(self_layout(1, 2, 3), {.causal = true}, PlanBuilder::Lists::one);
  const auto add = [&](std::vector<std::int32_t> members) {
    const ListRange range = builder.add_queries(members);
    builder.add_group(range, range);
  };
  add({0, 2});
  add({0, 1, 2});
  builder.end_unit();
  add({});
  add({1});
  builder.end_unit();
  return builder.build();
}

TEST(MemberIndex, HandWorkedEntries) {
  const Plan plan = small_plan();
  EXPECT_TRUE(plan.query_index.offsets.equal(at::tensor({0, 2, 3, 5, 5, 6, 6}, at::kLong)));
  EXPECT_TRUE(plan.query_index.group.equal(at::tensor({0, 1, 1, 0, 1, 3}, at::kLong)));
  EXPECT_TRUE(plan.query_index.rank.equal(at::tensor({0, 0, 1, 1, 2, 0}, at::kInt)));
  EXPECT_TRUE(index_members(plan, Side::keys).offsets.equal(plan.query_index.offsets));
}

TEST(MemberIndex, KeysOfSeparateListsHaveTheirOwnIndex) {
  PlanBuilder builder(cross_layout({.batch = 1, .heads = 1, .num_queries = 2, .num_keys = 4}), {.causal = false},
                      PlanBuilder::Lists::two);
  builder.add_group(builder.add_queries(std::vector<std::int32_t>{1}),
                    builder.add_keys(std::vector<std::int32_t>{0, 3}));
  builder.end_unit();
  const Plan plan = builder.build();
  EXPECT_TRUE(plan.query_index.offsets.equal(at::tensor({0, 0, 1}, at::kLong)));
  EXPECT_TRUE(index_members(plan, Side::keys).offsets.equal(at::tensor({0, 1, 1, 1, 2}, at::kLong)));
  EXPECT_TRUE(index_members(plan, Side::keys).rank.equal(at::tensor({0, 1}, at::kInt)));
}

TEST(PlanViews, CountTheSamePairsAsTheDenseMasksForEveryPattern) {
  for (const auto& pattern_case : support::every_pattern_case()) {
    const auto inputs = support::make_inputs(pattern_case, {.batch = 3, .tokens = 40, .ragged = true});
    EXPECT_EQ(attended_pairs(inputs.plan), inputs.plan.to_dense_counts().sum().item<std::int64_t>())
        << pattern_case.name;
  }
}

// What the views of one unit show, as masks like those of Plan::to_dense_masks.
at::Tensor masks_of_views(const Plan& plan, std::int64_t sequence, std::int64_t head) {
  const auto views = shared_views(plan);
  const std::int64_t unit = sequence * plan.heads + head;
  const auto* unit_offsets = plan.unit_offsets.data_ptr<std::int64_t>();
  const std::int64_t first = unit_offsets[unit];
  const std::int64_t groups = unit_offsets[unit + 1] - first;
  at::Tensor masks = at::zeros({groups, plan.num_queries, plan.num_keys}, at::kBool);
  auto mask = masks.accessor<bool, 3>();
  for (std::int64_t group = 0; group < groups; ++group) {
    const GroupRange range = group_range(plan, first + group);
    for (std::int64_t query = 0; query < range.num_queries(); ++query) {
      const std::int64_t entry = views->group_offsets[static_cast<std::size_t>(first + group)] + query;
      const QueryView& view = views->views[static_cast<std::size_t>(entry)];
      const std::int32_t i = plan.query_order.data_ptr<std::int32_t>()[range.q_begin + query];
      for (std::int32_t rank = view.key_from; rank < view.key_to; ++rank) {
        mask[group][i][plan.key_order.data_ptr<std::int32_t>()[range.k_begin + rank]] = views->counts(entry, rank);
      }
      EXPECT_EQ(view.sees_nothing(), !masks[group][i].any().item<bool>()) << "what is left is never nothing";
    }
  }
  return masks;
}

TEST(PlanViews, AreTheDenseMasksForEveryPattern) {
  for (const auto& pattern_case : support::every_pattern_case()) {
    for (const std::int64_t tokens : {1, 40, 200}) {
      const auto inputs = support::make_inputs(pattern_case, {.batch = 2, .tokens = tokens, .ragged = tokens == 40});
      EXPECT_TRUE(masks_of_views(inputs.plan, 1, 1).equal(inputs.plan.to_dense_masks(1, 1)))
          << pattern_case.name << ", " << tokens << " tokens";
    }
  }
}

TEST(PlanViews, AreTheDenseMasksWhereGroupsAreEmptyOrRepeatedAsAWhole) {
  for (const std::int64_t tokens : {1, 2, 63, 64, 65, 129, 300}) {
    for (const Plan& plan : support::hand_made_plans(1, tokens)) {
      EXPECT_TRUE(masks_of_views(plan, 0, 1).equal(plan.to_dense_masks(0, 1))) << tokens << " tokens";
      EXPECT_EQ(attended_pairs(plan), plan.to_dense_counts().sum().item<std::int64_t>()) << tokens << " tokens";
    }
  }
}

// Only memberships behind a token's first one have words, and only if something repeats there.
TEST(PlanViews, HandWorkedWordsOfRepeatedKeys) {
  PlanBuilder builder(self_layout(1, 1, 5), {.causal = true, .repeats = RepeatRule::once}, PlanBuilder::Lists::one);
  for (const std::vector<std::int32_t>& members : {std::vector<std::int32_t>{0, 2, 3}, {1, 2, 3}, {1, 2}, {3, 4}}) {
    const ListRange range = builder.add_queries(members);
    builder.add_group(range, range);
  }
  builder.end_unit();
  const PlanViews views = view_plan(builder.build());
  constexpr std::int64_t kNone = kernels::RepeatedKeys::kNone;
  // Entries: 0 2 3 | 1 2 3 | 1 2 | 3 4.
  EXPECT_EQ(views.repeats.keys().in_tile(4, 0), 0b010U) << "2 has seen itself";
  EXPECT_EQ(views.repeats.keys().in_tile(5, 0), 0b110U) << "3 has seen 2 and itself";
  for (const std::size_t entry : {0U, 1U, 2U, 3U, 9U}) EXPECT_EQ(views.repeats.first_word[entry], kNone) << entry;
  for (const std::size_t entry : {6U, 7U, 8U}) {
    EXPECT_EQ(views.repeats.first_word[entry], kNone) << entry;
    EXPECT_TRUE(views.views[entry].sees_nothing()) << "everything was seen before, entry " << entry;
  }
}

// Found by random plans: token 2 skips itself beside 0 and is alone afterwards. What a group skips it does not see, so
// the key counts in the second group. Token 3 is alone twice, and counts once.
TEST(PlanViews, AKeyThatTheFirstGroupSkipsCountsInTheNext) {
  PlanBuilder builder(self_layout(1, 1, 4),
                      {.causal = true, .self = SelfRule::only_if_alone_in_group, .repeats = RepeatRule::once},
                      PlanBuilder::Lists::one);
  for (const std::vector<std::int32_t>& members : {std::vector<std::int32_t>{0, 2}, {2}, {3}, {3}}) {
    const ListRange range = builder.add_queries(members);
    builder.add_group(range, range);
  }
  builder.end_unit();
  const Plan plan = builder.build();
  const at::Tensor masks = masks_of_views(plan, 0, 0);
  EXPECT_TRUE(masks.equal(plan.to_dense_masks(0, 0)));
  EXPECT_TRUE(masks[0][2][0].item<bool>());
  EXPECT_FALSE(masks[0][2][2].item<bool>());
  EXPECT_TRUE(masks[1][2][2].item<bool>());
  EXPECT_TRUE(masks[2][3][3].item<bool>());
  EXPECT_FALSE(masks[3][3][3].item<bool>());
}

TEST(PlanViews, OtherRulesHaveNoWords) {
  EXPECT_FALSE(view_plan(small_plan()).repeats.keys().any());
}

TEST(PlanViews, HandWorkedWindowsOverSeparateLists) {
  // Queries 1, 4, 9 over keys 0, 2, 4, 8: places 1, 3, 4.
  PlanBuilder builder(self_layout(1, 1, 10), {.lookback = 2, .lookahead = 1, .causal = false}, PlanBuilder::Lists::two);
  builder.add_group(builder.add_queries(std::vector<std::int32_t>{1, 4, 9}),
                    builder.add_keys(std::vector<std::int32_t>{0, 2, 4, 8}));
  builder.end_unit();
  const Plan plan = builder.build();
  const PlanViews views = view_plan(plan);
  ASSERT_EQ(views.views.size(), 3U);
  EXPECT_EQ(views.views[0].place, 1);
  EXPECT_EQ(views.views[0].key_from, 0);
  EXPECT_EQ(views.views[0].key_to, 2);
  EXPECT_EQ(views.views[1].place, 3);
  EXPECT_EQ(views.views[1].key_from, 1);
  EXPECT_EQ(views.views[1].key_to, 4);
  EXPECT_EQ(views.views[2].place, 4);
  EXPECT_EQ(views.views[2].key_from, 2);
  EXPECT_EQ(views.views[2].key_to, 4);
}

// Each mutation breaks one promise, and the message names it.
TEST(CheckPlan, EveryBrokenPromiseIsNamed) {
  struct Broken {
    const char* expected;
    std::function<void(Plan&)> mutate;
  };
  const std::vector<Broken> cases{
      {"query_order holds Long", [](Plan& p) { p.query_order = p.query_order.to(at::kLong); }},
      {"3 numbers", [](Plan& p) { p.groups = p.groups.narrow(1, 0, 3).contiguous(); }},
      {"not contiguous",
       [](Plan& p) {
         p.groups = p.groups.repeat({1, 2}).narrow(1, 0, 4);
       }},
      {"unit_offsets has", [](Plan& p) { p.unit_offsets = p.unit_offsets.narrow(0, 0, 2); }},
      {"unit_offsets falls",
       [](Plan& p) {
         p.unit_offsets = at::tensor({0, 5, 4}, at::kLong);
       }},
      {"unit_offsets covers",
       [](Plan& p) {
         p.unit_offsets = at::tensor({0, 2, 3}, at::kLong);
       }},
      {"position 3", [](Plan& p) { p.query_order = p.query_order + p.query_order.eq(2).to(at::kInt); }},
      {"sorted by time", [](Plan& p) { p.query_order = p.query_order.flip(0); }},
      {"of a list of", [](Plan& p) { p.groups = p.groups + 100; }},
      {"lookback", [](Plan& p) { p.rules.lookback = -1; }},
      {"is missing", [](Plan& p) { p.query_order = at::Tensor(); }},
      {"the index has", [](Plan& p) { p.query_index.rank = p.query_index.rank.narrow(0, 0, 2); }},
      {"the index says", [](Plan& p) { p.query_index.rank = p.query_index.rank + 1; }},
      {"the index says", [](Plan& p) { p.query_index.group = p.query_index.group.flip(0); }},
      {"groups must ascend",
       [](Plan& p) {
         p.query_index.group = at::tensor({1, 1, 1, 0, 1, 3}, at::kLong);
       }},
      {"member_offsets", [](Plan& p) { p.query_index.offsets = p.query_index.offsets.flip(0); }},
  };
  for (const Broken& broken : cases) {
    Plan tensors = small_plan();
    check_plan(tensors);
    broken.mutate(tensors);
    try {
      check_plan(tensors);
      ADD_FAILURE() << "accepted although " << broken.expected;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(broken.expected), std::string::npos) << error.what();
    }
  }
}

// A sealed plan is not looked at again; everything else is.
TEST(PlanSeal, CoversTheVeryTensorsItWasMadeForAndNothingElse) {
  const Plan plan = small_plan();
  ASSERT_TRUE(plan.seal);
  EXPECT_TRUE(plan.seal->covers(plan));
  const std::vector<std::function<void(Plan&)>> changes{
      [](Plan& p) { p.query_order = p.query_order.clone(); },
      [](Plan& p) { p.key_order = p.key_order.clone(); },
      [](Plan& p) { p.groups = p.groups.clone(); },
      [](Plan& p) { p.unit_offsets = p.unit_offsets.clone(); },
      [](Plan& p) { p.query_index.offsets = p.query_index.offsets.clone(); },
      [](Plan& p) { p.query_index.group = p.query_index.group.clone(); },
      [](Plan& p) { p.query_index.rank = at::Tensor(); },
      [](Plan& p) { p.batch += 1; },
      [](Plan& p) { p.num_keys += 1; },
      [](Plan& p) { p.rules.causal = !p.rules.causal; },
      [](Plan& p) { p.rules.lookback = 1; },
      [](Plan& p) { p.rules.repeats = RepeatRule::once; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Plan changed = plan;
    changes[i](changed);
    EXPECT_FALSE(plan.seal->covers(changed)) << "change " << i;
  }
}

TEST(PlanSeal, IsBrokenByWritingToTheTensors) {
  const Plan plan = small_plan();
  at::Tensor order = plan.query_order;
  check_plan(plan);
  order.add_(100);
  EXPECT_FALSE(plan.seal->covers(plan));
  EXPECT_THROW(check_plan(plan), InputError);
}

TEST(PlanSeal, ViewsAreComputedOnceAndEqualThoseOfThePlanWithoutSeal) {
  const Plan plan = small_plan();
  const auto views = shared_views(plan);
  EXPECT_EQ(views, shared_views(Plan(plan)));
  Plan loose = plan;
  loose.seal.reset();
  const auto others = shared_views(loose);
  EXPECT_NE(views, others);
  ASSERT_EQ(views->group_offsets, others->group_offsets);
  for (std::size_t i = 0; i < views->views.size(); ++i) {
    EXPECT_EQ(views->views[i].key_from, others->views[i].key_from);
    EXPECT_EQ(views->views[i].key_to, others->views[i].key_to);
  }
}

}  // namespace
}  // namespace routing::plan_test
