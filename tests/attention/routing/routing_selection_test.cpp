#include "routing/attention/routing/routing_selection.h"

#include "routing/attention/multi_head.h"
#include "routing/attention/patterns/position_patterns.h"
#include "routing/ops/attend/attend.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace routing::routing_selection_test {
namespace {

using support::random_tensor;
using Lists = std::vector<std::vector<std::int32_t>>;

// Centroids are the unit vectors of three dimensions, so that scores are the coordinates.
struct Axes {
  std::vector<float> centroids{1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::vector<float> tau;
  CentroidView view() const { return {.centroids = centroids.data(), .tau = tau.data(), .clusters = 3, .dim = 3}; }
};

const std::vector<float> kTokens{5, 1, 0,   //
                                 4, 3, 2,   //
                                 1, 1, 1,   //
                                 0, 2, 9,   //
                                 4, 0, -1,  //
                                 3, 3, 3};
const std::vector<std::int32_t> kAll{0, 1, 2, 3, 4, 5};

TEST(RoutingSelection, BalancedTakesTheBestTokensOfEachCentroid) {
  const Axes axes{.tau = {0, 0, 0}};
  const RoutingPattern pattern{.selection = RoutingSelection::balanced, .clusters = 3, .window = 2};
  // Coordinate 0: 5, then 4 twice, the earlier wins. Coordinate 1: 3 twice. Coordinate 2: 9 and 3.
  EXPECT_EQ(select_members(kTokens, kAll, axes.view(), pattern).members, (Lists{{0, 1}, {1, 5}, {3, 5}}));
  // Padding cannot be chosen.
  EXPECT_EQ(select_members(kTokens, std::vector<std::int32_t>{1, 2, 4}, axes.view(), pattern).members,
            (Lists{{1, 4}, {1, 2}, {1, 2}}));
  const UnitSelection all = select_members(kTokens, kAll, axes.view(), pattern);
  EXPECT_EQ(all.totals.unrouted, 2);     // tokens 2 and 4
  EXPECT_EQ(all.totals.overlapping, 2);  // tokens 1 and 5
}

TEST(RoutingSelection, NearestJoinsTheBestShiftedScore) {
  const Axes axes{.tau = {2, 0, 1}};
  const RoutingPattern pattern{.selection = RoutingSelection::nearest, .clusters = 3};
  // Shifted: (3, 1, -1) (2, 3, 1) (-1, 1, 0) (-2, 2, 8) (2, 0, -2) (1, 3, 2).
  const UnitSelection selection = select_members(kTokens, kAll, axes.view(), pattern);
  EXPECT_EQ(selection.members, (Lists{{0, 4}, {1, 2, 5}, {3}}));
  EXPECT_EQ(selection.totals.nearest, (std::vector<std::int64_t>{2, 3, 1}));
  // The best plain score, the first on a tie.
  EXPECT_EQ(selection.committed, (std::vector<std::int32_t>{0, 0, 0, 2, 0, 0}));
  EXPECT_EQ(selection.totals.argmax, (std::vector<std::int64_t>{5, 0, 1}));
}

TEST(RoutingSelection, ThresholdJoinsEveryPassedCluster) {
  const Axes axes{.tau = {4, 3, 3}};
  RoutingPattern pattern{.selection = RoutingSelection::threshold, .clusters = 3, .max_memberships = 3};
  // Passing: {0} {0, 1} {} {2} {0} {1, 2}; token 2 passes nothing and joins its best score, cluster 0.
  const UnitSelection selection = select_members(kTokens, kAll, axes.view(), pattern);
  EXPECT_EQ(selection.members, (Lists{{0, 1, 2, 4}, {1, 5}, {3, 5}}));
  EXPECT_EQ(selection.totals.passing, (std::vector<std::int64_t>{3, 2, 2}));
  EXPECT_EQ(selection.totals.fallback, 1);
  EXPECT_EQ(selection.totals.unrouted, 0);
  EXPECT_EQ(selection.totals.overlapping, 2);
  // With one membership: token 1 has 4 - 4 = 3 - 3 and goes to the lower number, so does token 5.
  pattern.max_memberships = 1;
  EXPECT_EQ(select_members(kTokens, kAll, axes.view(), pattern).members, (Lists{{0, 1, 2, 4}, {5}, {3}}));
}

TEST(RoutingSelection, ATokenThatPassesNoThresholdJoinsTheBestScore) {
  const Axes axes{.tau = {6, 4, 9}};
  RoutingPattern pattern{.selection = RoutingSelection::threshold, .clusters = 3};
  const auto selected = [&] { return select_members(kTokens, kAll, axes.view(), pattern); };
  // Only token 3 passes, cluster 2. The best score of the others is cluster 0's, on ties too.
  EXPECT_EQ(selected().members, (Lists{{0, 1, 2, 4, 5}, {}, {3}}));
  EXPECT_EQ(selected().totals.fallback, 5);
  // Nearest and balanced pass no thresholds, so nothing falls back.
  pattern.selection = RoutingSelection::nearest;
  EXPECT_EQ(selected().totals.fallback, 0);
  pattern.selection = RoutingSelection::balanced;
  EXPECT_EQ(selected().totals.fallback, 0);
}

// By plain loops, with many tokens that fall back, ties and thresholds of all heights.
TEST(RoutingSelection, ThresholdEqualsPlainLoops) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    // Whole numbers, so that scores are exact and ties common.
    const at::Tensor x = (random_tensor({130, 6}, seed) * 2.0).round().to(at::kFloat).contiguous();
    const at::Tensor mu = (random_tensor({37, 6}, seed + 1) * 2.0).round().to(at::kFloat).contiguous();
    const at::Tensor tau = (random_tensor({37}, seed + 2) * 4.0).round().to(at::kFloat) + 16.0;
    const CentroidView view{.centroids = mu.data_ptr<float>(), .tau = tau.data_ptr<float>(), .clusters = 37, .dim = 6};
    std::vector<std::int32_t> valid(130);
    for (std::int32_t t = 0; t < 130; ++t) valid[static_cast<std::size_t>(t)] = t;
    const RoutingPattern pattern{.clusters = 37, .max_memberships = 37};
    const UnitSelection unit =
        select_members({x.data_ptr<float>(), static_cast<std::size_t>(x.numel())}, valid, view, pattern);
    Lists expected(37);
    std::int64_t fell_back = 0;
    for (std::int32_t t = 0; t < 130; ++t) {
      bool passed = false;
      std::size_t best = 0;
      float best_score = -std::numeric_limits<float>::infinity();
      for (std::size_t c = 0; c < 37; ++c) {
        float score = 0.0F;
        for (std::size_t d = 0; d < 6; ++d) {
          score += x.data_ptr<float>()[static_cast<std::size_t>(t) * 6 + d] * mu.data_ptr<float>()[c * 6 + d];
        }
        const bool passes = score >= tau.data_ptr<float>()[c];
        if (passes) expected[c].push_back(t);
        passed = passed || passes;
        if (score > best_score) best = c;
        best_score = std::max(best_score, score);
      }
      if (passed) continue;
      expected[best].push_back(t);
      ++fell_back;
    }
    ASSERT_EQ(unit.members, expected) << "seed " << seed;
    ASSERT_EQ(unit.totals.fallback, fell_back) << "seed " << seed;
    ASSERT_GT(fell_back, 0) << "seed " << seed;
    ASSERT_LT(fell_back, 130) << "seed " << seed;
  }
}

TEST(RoutingSelection, TotalsAreCountedValues) {
  const Axes axes{.tau = {4, 3, 3}};
  const std::vector<std::int32_t> two{0, 3};
  const UnitSelection selection = select_members(kTokens, two, axes.view(), {.clusters = 3});
  EXPECT_EQ(selection.totals.tokens, 2);
  EXPECT_EQ(selection.totals.score_sum, (std::vector<double>{5, 3, 9}));
  EXPECT_EQ(selection.totals.score_square_sum, (std::vector<double>{25, 5, 81}));
  EXPECT_EQ(selection.totals.moving, (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(selection.totals.moving_sum, (std::vector<double>{5, 1, 0, 0, 0, 0, 0, 2, 9}));
  // (5,1,0) - (1,0,0): 16 + 1; (0,2,9) - (0,0,1): 4 + 64.
  EXPECT_DOUBLE_EQ(selection.totals.squared_distance, 17.0 + 68.0);
  ClusterTotals twice = selection.totals;
  twice.add(selection.totals);
  EXPECT_EQ(twice.tokens, 4);
  EXPECT_EQ(twice.moving_sum[8], 18.0);
  EXPECT_EQ(selection.totals.fallback, 0);
  EXPECT_EQ(select_members(kTokens, std::vector<std::int32_t>{2, 3}, axes.view(), {.clusters = 3}).totals.fallback, 1);
}

TEST(RoutingSelection, UpdateFromChoosesTheMovingTokens) {
  const Axes axes{.tau = {2, 0, 1}};
  const auto moving = [&](UpdateFrom from) {
    return select_members(kTokens, kAll, axes.view(),
                          {.selection = RoutingSelection::threshold, .clusters = 3, .update_from = from})
        .totals.moving;
  };
  EXPECT_EQ(moving(UpdateFrom::argmax), (std::vector<std::int64_t>{5, 0, 1}));
  EXPECT_EQ(moving(UpdateFrom::nearest), (std::vector<std::int64_t>{2, 3, 1}));
  EXPECT_EQ(moving(UpdateFrom::members), (std::vector<std::int64_t>{4, 6, 4}));
  EXPECT_EQ(moving(UpdateFrom::none), (std::vector<std::int64_t>{0, 0, 0}));
}

// Streamed top-w against sorting everything, over many seeds and lengths around the buffer size.
TEST(RoutingSelection, StreamedTopWindowEqualsSorting) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::int64_t tokens = 1 + static_cast<std::int64_t>(seed * 3 % 150);
    // Few distinct values, so that ties are common.
    const at::Tensor x = (random_tensor({tokens, 4}, seed) * 2.0).round().to(at::kFloat).contiguous();
    const at::Tensor mu = random_tensor({3, 4}, seed + 1).round().to(at::kFloat).contiguous();
    const std::vector<float> tau(3, 0.0F);
    const std::vector<float> rows(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
    std::vector<std::int32_t> valid;
    for (std::int32_t t = 0; t < tokens; ++t) {
      if ((t + static_cast<std::int32_t>(seed)) % 5 != 0) valid.push_back(t);
    }
    const RoutingPattern pattern{.selection = RoutingSelection::balanced, .clusters = 3, .window = 9};
    const auto members = select_members(rows, valid, {mu.data_ptr<float>(), tau.data(), 3, 4}, pattern).members;
    const at::Tensor scores = at::matmul(x, mu.t());
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<std::int32_t> order = valid;
      std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return scores[a][static_cast<std::int64_t>(c)].item<float>() >
               scores[b][static_cast<std::int64_t>(c)].item<float>();
      });
      order.resize(std::min<std::size_t>(9, order.size()));
      std::sort(order.begin(), order.end());
      ASSERT_EQ(members[c], order) << "seed " << seed;
      ASSERT_EQ(members[c].size(), std::min<std::size_t>(9, valid.size()));
    }
  }
}

TEST(RoutingSelection, CausalSelectionsLeaveNoTokenOutAndNeverExceedTheirMemberships) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const at::Tensor x = at::layer_norm(random_tensor({1, 1, 40, 5}, seed), {5}).to(at::kFloat).contiguous();
    const at::Tensor mu = at::layer_norm(random_tensor({6, 5}, seed + 7), {5}).to(at::kFloat).contiguous();
    const at::Tensor tau = random_tensor({6}, seed + 9).to(at::kFloat) * 2.0;
    const std::vector<float> rows(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
    std::vector<std::int32_t> valid(40);
    for (std::int32_t t = 0; t < 40; ++t) valid[static_cast<std::size_t>(t)] = t;
    for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
      const std::size_t most = selection == RoutingSelection::nearest ? 1 : 2;
      const RoutingPattern pattern{.selection = selection, .clusters = 6, .max_memberships = 2};
      const UnitSelection unit =
          select_members(rows, valid, {mu.data_ptr<float>(), tau.data_ptr<float>(), 6, 5}, pattern);
      std::vector<std::size_t> memberships(40, 0);
      for (const auto& members : unit.members) {
        for (const std::int32_t member : members) ++memberships[static_cast<std::size_t>(member)];
      }
      ASSERT_EQ(unit.totals.unrouted, 0);
      ASSERT_GE(*std::min_element(memberships.begin(), memberships.end()), 1U);
      ASSERT_LE(*std::max_element(memberships.begin(), memberships.end()), most);
    }
  }
}

// One cluster with a window over everything is full attention of the same normalised queries and keys.
TEST(Routing, OneClusterWithALargeWindowEqualsFullAttention) {
  for (const AttentionKind kind : {AttentionKind::causal_self, AttentionKind::bidirectional_self}) {
    for (const bool shared : {true, false}) {
      for (const RoutingSelection selection :
           {RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}) {
        const at::Tensor q = at::layer_norm(random_tensor({2, 3, 33, 6}, 1), {6}, {}, {}, 1e-6);
        const at::Tensor k = shared ? q : at::layer_norm(random_tensor({2, 3, 33, 6}, 2), {6}, {}, {}, 1e-6);
        const at::Tensor v = random_tensor({2, 3, 33, 6}, 3);
        HeadGroupConfig group{.pattern = RoutingPattern{.selection = selection, .clusters = 1, .window = 33},
                              .heads = 3,
                              .shared_query_key = shared};
        const auto pattern = make_pattern(group, {.kind = kind, .dim = 6, .options = at::TensorOptions(at::kDouble)});
        const TokenLayout layout = self_layout(2, 3, 33);
        const Plan plan = pattern->plan({.layout = layout, .queries = q, .keys = shared ? at::Tensor() : k});
        const Plan full = full_plan(layout, kind == AttentionKind::causal_self, SelfRule::allowed);
        for (const Merge merge : {Merge::lse, Merge::mean}) {
          EXPECT_TRUE(at::allclose(attend(q, k, v, plan, {.merge = merge}).output,
                                   attend(q, k, v, full, {.merge = merge}).output, 0.0, 1e-12));
        }
      }
    }
  }
}

TEST(Routing, WorksBeforeTrainingAndWithFewerTokensThanClusters) {
  for (const RoutingSelection selection :
       {RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}) {
    MultiHeadAttention layer(
        AttentionConfig{.width = 8,
                        .head_groups = {{.pattern = RoutingPattern{.selection = selection,
                                                                   .clusters = 16,
                                                                   .window = 4,
                                                                   .init = CentroidInit::first_batch_kmeans},
                                         .heads = 2,
                                         .shared_query_key = true}}},
        LayerPlace{}, at::TensorOptions(at::kFloat));
    layer->eval();
    const at::Tensor x = random_tensor({2, 3, 8}, 1, at::kFloat);
    AttentionState state;
    EXPECT_TRUE(layer->forward(x, state).isfinite().all().item<bool>());
    EXPECT_FALSE(state.auxiliary_loss.defined());
    layer->train();
    for (int step = 0; step < 3; ++step) {
      const at::Tensor output = layer->forward(x, state);
      EXPECT_TRUE(output.isfinite().all().item<bool>());
      EXPECT_TRUE(state.auxiliary_loss.isfinite().item<bool>());
      layer->centroids(0)->update();
      EXPECT_TRUE(layer->centroids(0)->centroids().isfinite().all().item<bool>());
      EXPECT_TRUE(layer->centroids(0)->tau().isfinite().all().item<bool>());
    }
  }
}

TEST(Routing, CommitmentLossMovesQueriesNotCentroidsAndLeavesPaddingOut) {
  HeadGroupConfig group{
      .pattern = RoutingPattern{.clusters = 3, .commitment = 0.5}, .heads = 1, .shared_query_key = true};
  const auto pattern = make_pattern(group, {.dim = 4, .options = at::TensorOptions(at::kDouble)});
  at::Tensor q = random_tensor({1, 1, 5, 4}, 1).set_requires_grad(true);
  at::Tensor valid = at::ones({1, 5}, at::kBool);
  valid[0][4] = false;
  const Plan planned = pattern->plan({.layout = self_layout(1, 1, 5, valid), .queries = q.detach(), .training = true});
  EXPECT_EQ(planned.query_choice[0][0][4].item<int>(), -1);
  const at::Tensor loss = pattern->auxiliary_loss(q, {}, planned);
  const at::Tensor centroids = pattern->centroids()->centroids()[0].to(at::kDouble);
  double expected = 0.0;
  for (std::int64_t t = 0; t < 4; ++t) {
    expected += (q.detach()[0][0][t] - centroids[planned.query_choice[0][0][t].item<std::int64_t>()])
                    .square()
                    .sum()
                    .item<double>();
  }
  EXPECT_NEAR(loss.item<double>(), 0.5 * expected / (4.0 * 4.0), 1e-12);
  loss.backward();
  EXPECT_EQ(q.grad()[0][0][4].abs().max().item<double>(), 0.0);
  EXPECT_GT(q.grad()[0][0][0].abs().max().item<double>(), 0.0);
  EXPECT_FALSE(pattern->centroids()->centroids().requires_grad());
}

// Plans of cross-attention with 3 clusters that take 2 keys each.
Plan cross_plan(bool balanced_source, const at::Tensor& queries, const at::Tensor& keys) {
  const HeadGroupConfig group{
      .pattern = RoutingPattern{
          .selection = RoutingSelection::threshold, .clusters = 3, .window = 2, .balanced_source = balanced_source}};
  const auto pattern =
      make_pattern(group, {.kind = AttentionKind::cross, .dim = 4, .options = at::TensorOptions(at::kFloat)});
  const TokenLayout layout =
      cross_layout({.batch = 1, .heads = 1, .num_queries = queries.size(2), .num_keys = keys.size(2)});
  return pattern->plan({.layout = layout, .queries = queries, .keys = keys});
}

TEST(RoutingAcrossSequences, EveryClusterTakesItsBestKeysOfTheSource) {
  const at::Tensor queries = random_tensor({1, 1, 7, 4}, 1).to(at::kFloat);
  const at::Tensor keys = random_tensor({1, 1, 9, 4}, 2).to(at::kFloat);
  const Plan balanced = cross_plan(true, queries, keys);
  for (std::int64_t group = 0; group < balanced.num_groups(); ++group) {
    EXPECT_EQ(group_range(balanced, group).num_keys(), 2) << group;
  }
  // So no query is without keys, as none is without a cluster.
  EXPECT_GT(balanced.to_dense_counts().sum(3).min().item<std::int64_t>(), 0);
  // Where keys choose, each is in at least one cluster, however few or many that makes.
  const at::Tensor chosen = cross_plan(false, queries, keys).key_order;
  for (std::int32_t key = 0; key < 9; ++key) EXPECT_TRUE(chosen.eq(key).any().item<bool>()) << key;
}

TEST(RoutingAcrossSequences, LaterQueriesChangeNothingForEarlierOnes) {
  const at::Tensor queries = random_tensor({1, 1, 7, 4}, 1).to(at::kFloat);
  const at::Tensor keys = random_tensor({1, 1, 9, 4}, 2).to(at::kFloat);
  const at::Tensor before = cross_plan(true, queries, keys).to_dense_counts();
  at::Tensor changed = queries.clone();
  changed.narrow(2, 4, 3).copy_(random_tensor({1, 1, 3, 4}, 3));
  const at::Tensor after = cross_plan(true, changed, keys).to_dense_counts();
  EXPECT_TRUE(after.narrow(2, 0, 4).equal(before.narrow(2, 0, 4)));
}

TEST(RoutingSelection, TokensAloneJoinTheClustersOfTheWholeSequence) {
  const at::Tensor tokens = random_tensor({200, 24}, 31, at::kFloat);
  const at::Tensor centroids = random_tensor({70, 24}, 32, at::kFloat);
  const at::Tensor tau = random_tensor({70}, 33, at::kFloat) * 2.0 + 6.0;
  const CentroidView view{
      .centroids = centroids.data_ptr<float>(), .tau = tau.data_ptr<float>(), .clusters = 70, .dim = 24};
  std::vector<std::int32_t> valid(200);
  for (std::int32_t i = 0; i < 200; ++i) valid[static_cast<std::size_t>(i)] = i;
  for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
    const RoutingPattern pattern{.selection = selection, .clusters = 70, .max_memberships = 3};
    const std::span<const float> all(tokens.data_ptr<float>(), 200 * 24);
    const UnitSelection whole = select_members(all, valid, view, pattern);
    EXPECT_EQ(whole.totals.fallback > 0, selection == RoutingSelection::threshold);
    for (const std::size_t piece : {1, 7, 64, 200}) {
      Lists members(70);
      for (std::size_t first = 0; first < 200; first += piece) {
        const std::size_t count = std::min<std::size_t>(piece, 200 - first);
        const TokenLists lists = clusters_of_tokens(all.subspan(first * 24, count * 24), view, pattern);
        ASSERT_EQ(lists.counts.size(), count);
        const std::int32_t* next = lists.lists.data();
        for (std::size_t token = 0; token < count; ++token) {
          EXPECT_TRUE(std::is_sorted(next, next + lists.counts[token]));
          for (std::int32_t n = 0; n < lists.counts[token]; ++n) {
            members[static_cast<std::size_t>(*next++)].push_back(static_cast<std::int32_t>(first + token));
          }
        }
      }
      EXPECT_EQ(members, whole.members) << to_string(selection) << " in pieces of " << piece;
    }
    // Some of them, in any order.
    std::vector<std::int32_t> rows;
    for (std::int32_t i = 0; i < 90; ++i) rows.push_back(i * 61 % 200);
    const TokenLists some = clusters_of_rows(all, rows, view, pattern);
    TokenLists expected;
    for (const std::int32_t row : rows) {
      const TokenLists alone = clusters_of_tokens(all.subspan(static_cast<std::size_t>(row) * 24, 24), view, pattern);
      expected.counts.push_back(alone.counts.at(0));
      expected.lists.insert(expected.lists.end(), alone.lists.begin(), alone.lists.end());
    }
    EXPECT_EQ(some.counts, expected.counts);
    EXPECT_EQ(some.lists, expected.lists);
  }
}

}  // namespace
}  // namespace routing::routing_selection_test
