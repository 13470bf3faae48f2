// How centroids and thresholds learn: fixed points, plain loops, accumulation, serialisation, statistics.
#include "routing/attention/routing/centroids.h"

#include "routing/attention/multi_head.h"
#include "routing/attention/patterns/routing.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "support/centroid_steps.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace routing::centroids_test {
namespace {

using support::random_tensor;

// The fixed point of count <- d count + (1-d) n and sum <- d sum + (1-d) S is n and S: the centroid is the mean S / n.
TEST(Centroids, MeanConvergesToTheMeanOfItsTokens) {
  const auto pattern = make_routing({.selection = RoutingSelection::balanced,
                                     .clusters = 4,
                                     .window = 16,
                                     .balance = RoutingBalance::none,
                                     .decay = 0.9,
                                     .revive = false});
  pattern->centroids()->set_centroids((directions() + 0.3 * random_tensor({4, kDim}, 5, at::kFloat)).unsqueeze(0));
  at::Tensor mean = at::zeros({4, kDim});
  for (std::uint64_t step = 0; step < 300; ++step) {
    const at::Tensor x = mixture(step, kShares);
    if (step >= 200)
      mean += at::stack({x[0][0].narrow(0, 0, 28).mean(0), x[0][0].narrow(0, 28, 20).mean(0),
                         x[0][0].narrow(0, 48, 10).mean(0), x[0][0].narrow(0, 58, 6).mean(0)}) /
              100.0;
    train_step(*pattern, x);
  }
  EXPECT_LT((pattern->centroids()->centroids()[0] - mean).abs().max().item<double>(), 0.05);
  // And the counts are those of the mixture.
  EXPECT_LT((pattern->centroids()->counts()[0] - at::tensor({28.0, 20.0, 10.0, 6.0})).abs().max().item<double>(), 0.1);
}

// The fixed point of mu <- d mu + (1-d) S is S, the sum of a batch's tokens: its length grows with the cluster.
TEST(Centroids, SumConvergesToTheSumOfItsTokens) {
  const auto pattern = make_routing({.selection = RoutingSelection::balanced,
                                     .clusters = 4,
                                     .window = 16,
                                     .balance = RoutingBalance::none,
                                     .update = CentroidUpdate::sum,
                                     .decay = 0.9,
                                     .revive = false});
  // A longer centroid wins more tokens: equal shares keep them apart.
  const std::vector<int> equal{16, 16, 16, 16};
  pattern->centroids()->set_centroids((16.0 * directions()).unsqueeze(0));
  for (std::uint64_t step = 0; step < 200; ++step) train_step(*pattern, mixture(step, equal));
  const at::Tensor lengths = pattern->centroids()->centroids()[0].norm(2, 1);
  const double expected = 16.0 * std::sqrt(static_cast<double>(kDim));
  EXPECT_LT((lengths - expected).abs().max().item<double>(), 0.02 * expected);
  const at::Tensor cosines = (pattern->centroids()->centroids()[0] / lengths.unsqueeze(1) * directions()).sum(1) /
                             std::sqrt(static_cast<double>(kDim));
  EXPECT_GT(cosines.min().item<double>(), 0.99);
}

// All the state of `ours` after many steps, against loops written from DESIGN section 2.
TEST(Centroids, StateAfterManyStepsEqualsPlainLoops) {
  const std::int64_t k = 5;
  const auto pattern = make_routing({.clusters = k, .window = 8, .decay = 0.95, .revive = false});
  std::vector<std::vector<double>> mu;
  std::vector<std::vector<double>> sums;
  std::vector<double> counts(k, 1.0);
  std::vector<double> tau(k, 0.0);
  const at::Tensor start = pattern->centroids()->centroids()[0].to(at::kDouble);
  for (std::int64_t c = 0; c < k; ++c) mu.emplace_back(start[c].data_ptr<double>(), start[c].data_ptr<double>() + kDim);
  sums = mu;
  for (std::uint64_t step = 0; step < 30; ++step) {
    const at::Tensor q = normed(random_tensor({3, 1, 21, kDim}, 50 + step, at::kFloat) + 0.5);
    train_step(*pattern, q);
    const at::Tensor rows = q.to(at::kDouble).reshape({63, kDim}).contiguous();
    std::vector<std::vector<double>> scores(k, std::vector<double>(63));
    const auto score_all = [&] {
      for (std::size_t c = 0; c < k; ++c) {
        for (std::size_t t = 0; t < 63; ++t) {
          scores[c][t] = 0.0;
          for (std::size_t d = 0; d < kDim; ++d) scores[c][t] += mu[c][d] * rows.data_ptr<double>()[t * kDim + d];
        }
      }
    };
    score_all();
    const auto old_scores = scores;
    std::vector<double> n(k, 0.0);
    std::vector<std::vector<double>> s(k, std::vector<double>(kDim, 0.0));
    for (std::size_t t = 0; t < 63; ++t) {
      std::size_t best = 0;
      for (std::size_t c = 1; c < k; ++c) best = scores[c][t] > scores[best][t] ? c : best;
      n[best] += 1.0;
      for (std::size_t d = 0; d < kDim; ++d) s[best][d] += rows.data_ptr<double>()[t * kDim + d];
    }
    double total = 0.0;
    for (std::size_t c = 0; c < k; ++c) total += counts[c] = n[c] == 0.0 ? counts[c] : 0.95 * counts[c] + 0.05 * n[c];
    for (std::size_t c = 0; c < k; ++c) {
      // A centroid that no token moves stays.
      for (std::size_t d = 0; d < kDim && n[c] > 0.0; ++d) {
        sums[c][d] = 0.95 * sums[c][d] + 0.05 * s[c][d];
        mu[c][d] = sums[c][d] / ((counts[c] + 1e-5) / (total + k * 1e-5) * total);
      }
    }
    score_all();
    for (std::size_t c = 0; c < k; ++c) {
      if (step == 0) {
        // The 0.8 quantile of 63 scores against the moved centroids: the one of rank 50.
        std::vector<double> sorted = scores[c];
        std::sort(sorted.begin(), sorted.end());
        tau[c] = sorted[50];
        continue;
      }
      double mean = 0.0;
      double square = 0.0;
      double passing = 0.0;
      for (const double score : old_scores[c]) {
        mean += score / 63.0;
        square += score * score / 63.0;
        passing += score >= tau[c] ? 1.0 / 63.0 : 0.0;
      }
      tau[c] += std::sqrt(square - mean * mean) * (passing - 1.0 / k);
    }
    for (std::size_t c = 0; c < k; ++c) {
      ASSERT_NEAR(pattern->centroids()->tau()[0][static_cast<std::int64_t>(c)].item<double>(), tau[c], 2e-4)
          << "step " << step;
      ASSERT_NEAR(pattern->centroids()->counts()[0][static_cast<std::int64_t>(c)].item<double>(), counts[c], 1e-4);
      for (std::size_t d = 0; d < kDim; ++d) {
        ASSERT_NEAR(pattern->centroids()
                        ->centroids()[0][static_cast<std::int64_t>(c)][static_cast<std::int64_t>(d)]
                        .item<double>(),
                    mu[c][d], 1e-4);
      }
    }
  }
}

TEST(Centroids, HalvesOfABatchWithOneUpdateGiveTheWholeBatch) {
  for (const bool shared : {true, false}) {
    const RoutingPattern routing{.clusters = 4,
                                 .window = 8,
                                 .decay = 0.9,
                                 .init = CentroidInit::first_batch_kmeans,
                                 .dead_share = 0.9,
                                 .dead_patience = 1};
    const auto whole = make_routing(routing, shared, 2);
    const auto halves = make_routing(routing, shared, 2);
    std::int64_t revived = 0;
    for (std::uint64_t step = 0; step < 6; ++step) {
      const at::Tensor q = normed(random_tensor({4, 2, 30, kDim}, step, at::kFloat) + 0.3);
      const at::Tensor k = shared ? at::Tensor() : normed(random_tensor({4, 2, 30, kDim}, step + 50, at::kFloat));
      const at::Tensor valid = support::ragged_mask(4, 30, step);
      const at::Tensor ids = at::arange(4, at::kLong) + 4 * static_cast<std::int64_t>(step);
      const auto part = [&](Pattern& pattern, std::int64_t first, std::int64_t count) {
        pattern.plan({.layout = self_layout(count, 2, 30, valid.narrow(0, first, count)),
                      .queries = q.narrow(0, first, count),
                      .keys = shared ? k : k.narrow(0, first, count),
                      .training = true,
                      .sample_ids = ids.narrow(0, first, count)});
      };
      part(*whole, 0, 4);
      part(*halves, 0, 2);
      part(*halves, 2, 2);
      revived += whole->centroids()->update().revived;
      halves->centroids()->update();
      EXPECT_TRUE(at::allclose(whole->centroids()->centroids(), halves->centroids()->centroids(), 1e-6, 1e-6));
      EXPECT_TRUE(at::allclose(whole->centroids()->tau(), halves->centroids()->tau(), 1e-6, 1e-6));
      EXPECT_TRUE(at::allclose(whole->centroids()->counts(), halves->centroids()->counts(), 1e-6, 1e-6));
    }
    EXPECT_GT(revived, 0);  // the samples were really used
    EXPECT_EQ(halves->centroids()->updates(), 6);
  }
}

TEST(Centroids, PaddingMovesNothing) {
  const auto padded = make_routing({.clusters = 3, .decay = 0.5});
  const auto plain = make_routing({.clusters = 3, .decay = 0.5});
  at::Tensor q = normed(random_tensor({1, 1, 20, kDim}, 1, at::kFloat));
  at::Tensor valid = at::ones({1, 20}, at::kBool);
  valid[0].narrow(0, 12, 8).fill_(false);
  padded->plan({.layout = self_layout(1, 1, 20, valid), .queries = q, .training = true});
  padded->centroids()->update();
  train_step(*plain, q.narrow(2, 0, 12));
  EXPECT_TRUE(padded->centroids()->centroids().equal(plain->centroids()->centroids()));
  EXPECT_TRUE(padded->centroids()->tau().equal(plain->centroids()->tau()));
}

TEST(Centroids, EvaluationAndReusedPlansMoveNothing) {
  MultiHeadAttention layer(
      AttentionConfig{
          .width = 16,
          .head_groups = {{.pattern = RoutingPattern{.clusters = 3}, .heads = 2, .shared_query_key = true}}},
      LayerPlace{}, at::TensorOptions(at::kFloat));
  const at::Tensor before = layer->centroids(0)->centroids().clone();
  const at::Tensor x = random_tensor({1, 20, 16}, 1, at::kFloat);
  AttentionState state;
  layer->eval();
  layer->forward(x, state);
  layer->centroids(0)->update();
  EXPECT_TRUE(layer->centroids(0)->centroids().equal(before));
  EXPECT_EQ(layer->centroids(0)->updates(), 0);
  ASSERT_NE(layer->centroids(0), nullptr);
  EXPECT_EQ(layer->centroids(0)->take_evaluation_statistics().tokens, 40);
  EXPECT_EQ(layer->centroids(0)->take_evaluation_statistics().tokens, 0);
  // A recomputed forward counts once.
  layer->train();
  layer->forward(x, state);
  const std::int64_t collected = layer->centroids(0)->pending().totals[0][0].tokens;
  state.reuse_plans = true;
  layer->forward(x, state);
  EXPECT_EQ(layer->centroids(0)->pending().totals[0][0].tokens, collected);
  EXPECT_EQ(collected, 20);
  EXPECT_TRUE(state.auxiliary_loss.defined());
  layer->centroids(0)->update();
  EXPECT_EQ(layer->centroids(0)->updates(), 1);
  EXPECT_FALSE(layer->centroids(0)->centroids().equal(before));
}

TEST(Centroids, AreBuffersThatAreSavedAndResumedExactly) {
  const auto first = make_routing({.clusters = 4, .decay = 0.9, .dead_share = 0.9, .dead_patience = 2}, true, 2);
  EXPECT_TRUE(first->parameters().empty());
  const auto batch = [](std::uint64_t step) { return normed(random_tensor({2, 2, 25, kDim}, step, at::kFloat) + 0.4); };
  for (std::uint64_t step = 0; step < 5; ++step) train_step(*first, batch(step));
  const auto second = make_routing({.clusters = 4, .decay = 0.9, .dead_share = 0.9, .dead_patience = 2}, true, 2);
  {
    const at::NoGradGuard no_gradient;
    auto from = first->named_buffers();
    auto to = second->named_buffers();
    EXPECT_EQ(from.size(), 6U);
    for (auto& item : from) to[item.key()].copy_(item.value());
  }
  for (std::uint64_t step = 5; step < 12; ++step) {
    train_step(*first, batch(step));
    train_step(*second, batch(step));
  }
  for (auto& item : first->named_buffers()) {
    EXPECT_TRUE(item.value().equal(second->named_buffers()[item.key()])) << item.key();
  }
}

TEST(Centroids, AreEqualBitForBitWithOneAndTwoThreads) {
  const auto run = [](int threads) {
    set_num_threads(threads);
    const auto pattern = make_routing({.clusters = 4, .decay = 0.9}, true, 3);
    for (std::uint64_t step = 0; step < 4; ++step)
      train_step(*pattern, normed(random_tensor({3, 3, 50, kDim}, step, at::kFloat)));
    set_num_threads(available_cores());
    return pattern;
  };
  const auto one = run(1);
  const auto two = run(2);
  EXPECT_TRUE(one->centroids()->centroids().equal(two->centroids()->centroids()));
  EXPECT_TRUE(one->centroids()->tau().equal(two->centroids()->tau()));
}

TEST(Centroids, StartNormalisedAndDifferentForEachHead) {
  const auto pattern = make_routing({.clusters = 6}, true, 2);
  const at::Tensor mu = pattern->centroids()->centroids();
  EXPECT_EQ(mu.scalar_type(), at::kFloat);
  EXPECT_LT((mu.norm(2, 2) - std::sqrt(8.0)).abs().max().item<double>(), 1e-3);
  EXPECT_LT(mu.mean(2).abs().max().item<double>(), 1e-5);
  EXPECT_FALSE(mu[0].equal(mu[1]));
  EXPECT_TRUE(mu[0].equal(make_routing({.clusters = 6}, true, 1)->centroids()->centroids()[0]));
}

TEST(Centroids, KmeansOnTheFirstBatchFindsTheMixture) {
  const auto pattern = make_routing({.clusters = 4, .init = CentroidInit::first_batch_kmeans, .kmeans_iterations = 20});
  train_step(*pattern, mixture(3, kShares));
  // Every direction has a centroid close to it.
  const at::Tensor cosines = at::matmul(normed(pattern->centroids()->centroids()[0]), directions().t()) / 8.0;
  EXPECT_GT(cosines.amax(0).min().item<double>(), 0.97);
  const std::vector<std::vector<float>> two{{1, 0}, {0, 1}};
  EXPECT_EQ(kmeans(two, 3, 5, RandomStream(1)).size(), 3U);
  EXPECT_THROW(kmeans({}, 3, 5, RandomStream(1)), InputError);
}

// Nearest by distance, not by product: 10 is nearer to the long mean however the lengths differ.
TEST(Kmeans, MeansOfDifferentLengthsPartTheVectorsByDistance) {
  const Vectors vectors{{1}, {2}, {10}, {11}};
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    Vectors means = kmeans(vectors, 2, 10, RandomStream(seed));
    std::sort(means.begin(), means.end());
    EXPECT_EQ(means, (Vectors{{1.5F}, {10.5F}})) << seed;
  }
}

// Counted by hand: tokens 0, 1, 2 choose axis 0, token 3 axis 1, nobody axis 2.
TEST(RoutingStatistics, AreCountedValues) {
  const HeadGroupConfig group{
      .pattern = RoutingPattern{.selection = RoutingSelection::nearest, .clusters = 3, .balance = RoutingBalance::none},
      .heads = 1,
      .shared_query_key = true};
  const auto pattern = make_pattern(group, {.dim = 3, .options = at::TensorOptions(at::kFloat)});
  pattern->centroids()->set_centroids(at::eye(3).unsqueeze(0));
  const at::Tensor q =
      at::tensor({2.0F, 0.0F, 0.0F, 2.0F, 1.0F, 0.0F, 3.0F, 0.0F, 1.0F, 0.0F, 2.0F, 0.0F}).view({1, 1, 4, 3});
  pattern->plan({.layout = self_layout(1, 1, 4), .queries = q, .training = true});
  const RoutingStatistics statistics = pattern->centroids()->update();
  EXPECT_EQ(statistics.tokens, 4);
  EXPECT_DOUBLE_EQ(statistics.occupancy_min[0], 0.0);
  EXPECT_DOUBLE_EQ(statistics.occupancy_max[0], 0.75);
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25)) / std::log(3.0);
  EXPECT_NEAR(statistics.occupancy_entropy[0], entropy, 1e-12);
  EXPECT_NEAR(statistics.choice_entropy[0], entropy, 1e-12);
  EXPECT_EQ(statistics.dead_centroids[0], 1);
  EXPECT_DOUBLE_EQ(statistics.unrouted_fraction, 0.0);
  EXPECT_DOUBLE_EQ(statistics.mean_memberships, 1.0);
  EXPECT_DOUBLE_EQ(statistics.overlap_fraction, 0.0);
  EXPECT_DOUBLE_EQ(statistics.tau_drift, 0.0);
  // Squares: 1, 1 + 1, 4 + 1, 1 over 4 tokens and 3 dimensions.
  EXPECT_NEAR(statistics.commitment_loss, 9.0 / 12.0, 1e-6);
}

// The authors' averages of a centroid without tokens decay until Laplace smoothing pulls it to zero; ours stays. Under
// `sum` every centroid decays, whoever moves it.
TEST(Centroids, ACentroidThatNoTokenMovesStaysWhereItIs) {
  for (const bool decay_empty : {false, true}) {
    const auto pattern = make_routing({.selection = RoutingSelection::nearest,
                                       .clusters = 4,
                                       .balance = RoutingBalance::none,
                                       .decay = 0.9,
                                       .decay_empty = decay_empty,
                                       .revive = false});
    at::Tensor start = directions().clone();
    start[3] = -directions().sum(0);
    pattern->centroids()->set_centroids(start.unsqueeze(0));
    for (std::uint64_t step = 0; step < 300; ++step) train_step(*pattern, mixture(step, kShares));
    const double length = pattern->centroids()->centroids()[0][3].norm().item<double>();
    EXPECT_NEAR(length, decay_empty ? 0.0 : start[3].norm().item<double>(), 1e-3);
  }
  const auto sums = make_routing({.selection = RoutingSelection::nearest,
                                  .clusters = 4,
                                  .balance = RoutingBalance::none,
                                  .update = CentroidUpdate::sum,
                                  .decay = 0.9,
                                  .revive = false});
  at::Tensor start = directions().clone();
  start[3] = -directions().sum(0);
  sums->centroids()->set_centroids(start.unsqueeze(0));
  train_step(*sums, mixture(1, kShares));
  EXPECT_TRUE(at::allclose(sums->centroids()->centroids()[0][3], 0.9 * start[3]));
}

TEST(Centroids, TokensThatAreNotFiniteAreRefusedAndChangeNothing) {
  const auto pattern = make_routing({.clusters = 4});
  const at::Tensor before = pattern->centroids()->centroids().clone();
  at::Tensor q = normed(random_tensor({1, 1, 20, kDim}, 1, at::kFloat));
  q[0][0][7].fill_(std::nan(""));
  EXPECT_THROW(train_step(*pattern, q), InputError);
  EXPECT_TRUE(pattern->centroids()->centroids().equal(before));
  EXPECT_FALSE(pattern->centroids()->pending_is_finite());
  pattern->centroids()->set_pending({});
  EXPECT_TRUE(pattern->centroids()->pending_is_finite());
  train_step(*pattern, normed(random_tensor({1, 1, 20, kDim}, 1, at::kFloat)));
  EXPECT_EQ(pattern->centroids()->updates(), 1);
}

// A model moved to another type takes its centroids along; plans and updates go on in float32.
TEST(Centroids, BuffersOfAnotherTypeGiveTheSamePlansAndUpdates) {
  const auto floats = make_routing({.clusters = 4, .decay = 0.9});
  const auto doubles = make_routing({.clusters = 4, .decay = 0.9});
  doubles->to(at::kDouble);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const at::Tensor q = normed(random_tensor({1, 1, 30, kDim}, step, at::kFloat));
    train_step(*floats, q);
    train_step(*doubles, q);
  }
  EXPECT_EQ(doubles->centroids()->centroids().scalar_type(), at::kDouble);
  EXPECT_TRUE(floats->centroids()->centroids().equal(doubles->centroids()->centroids().to(at::kFloat)));
}

TEST(Routing, QueriesOfAnotherSizeAreRefused) {
  const auto pattern = make_routing({.clusters = 4});
  EXPECT_THROW(pattern->plan({.layout = self_layout(1, 1, 5), .queries = at::zeros({1, 1, 5, kDim + 1})}), InputError);
  EXPECT_THROW(pattern->plan({.layout = self_layout(1, 1, 5)}), InputError);
}

TEST(Centroids, UpdateWithoutTokensChangesNothing) {
  const auto pattern = make_routing({.clusters = 4});
  const at::Tensor before = pattern->centroids()->centroids().clone();
  pattern->centroids()->update();
  pattern->plan({.layout = self_layout(1, 1, 3, at::zeros({1, 3}, at::kBool)),
                 .queries = at::zeros({1, 1, 3, kDim}),
                 .training = true});
  pattern->centroids()->update();
  EXPECT_TRUE(pattern->centroids()->centroids().equal(before));
  EXPECT_EQ(pattern->centroids()->updates(), 0);
}

}  // namespace
}  // namespace routing::centroids_test
