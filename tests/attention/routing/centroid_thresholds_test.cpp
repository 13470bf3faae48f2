// Where thresholds and their deviations go after a step, where dead centroids go, and what is counted of both.
#include "routing/attention/routing/centroids.h"
#include "support/centroid_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace routing::centroid_thresholds_test {
namespace {

using support::random_tensor;

TEST(Centroids, ADeadCentroidIsRevived) {
  RoutingPattern routing{.selection = RoutingSelection::nearest,
                         .clusters = 4,
                         .window = 16,
                         .balance = RoutingBalance::none,
                         .dead_patience = 5};
  const auto pattern = make_routing(routing);
  // The last centroid points away from everything and is never chosen.
  at::Tensor start = directions().clone();
  start[3] = -directions().sum(0);
  pattern->centroids()->set_centroids(start.unsqueeze(0));
  std::int64_t revived = 0;
  for (std::uint64_t step = 0; step < 5; ++step) {
    const RoutingStatistics statistics = train_step(*pattern, mixture(step, kShares));
    EXPECT_EQ(statistics.dead_centroids[0], 1) << "step " << step;
    EXPECT_EQ(statistics.revived, step == 4 ? 1 : 0) << "step " << step;
    revived += statistics.revived;
  }
  EXPECT_EQ(revived, 1);
  // Its moving average starts anew from the token it was put on.
  EXPECT_EQ(pattern->centroids()->counts()[0][3].item<float>(), 1.0F);
  EXPECT_TRUE(pattern->centroids()->sums()[0][3].equal(pattern->centroids()->centroids()[0][3]));
  EXPECT_NEAR(pattern->centroids()->centroids()[0][3].norm().item<double>(), std::sqrt(8.0), 1e-3);
  // It stands where the others were farthest away: on the direction they left out.
  EXPECT_GT((pattern->centroids()->centroids()[0][3] * directions()[3]).sum().item<double>(), 7.5);
  const RoutingStatistics after = train_step(*pattern, mixture(77, kShares));
  EXPECT_EQ(after.dead_centroids[0], 0);
  routing.revive = false;
  const auto left_alone = make_routing(routing);
  left_alone->centroids()->set_centroids(start.unsqueeze(0));
  for (std::uint64_t step = 0; step < 20; ++step) EXPECT_EQ(train_step(*left_alone, mixture(step, kShares)).revived, 0);
}

// Equal tokens have equal vectors in the lowest layer. Two centroids revived on one of them would be one for good.
TEST(Centroids, CentroidsRevivedTogetherStandInDifferentPlaces) {
  const auto pattern = make_routing({.selection = RoutingSelection::nearest,
                                     .clusters = 8,
                                     .window = 16,
                                     .balance = RoutingBalance::none,
                                     .dead_patience = 1});
  // One centroid takes everything, the other seven are dead.
  at::Tensor start = -directions().sum(0).expand({8, kDim}).clone();
  start[0] = directions().sum(0);
  pattern->centroids()->set_centroids(start.unsqueeze(0));
  // Many tokens, but only four different vectors.
  std::vector<at::Tensor> tokens;
  for (std::int64_t t = 0; t < 64; ++t) tokens.push_back(directions()[t % 4]);
  const at::Tensor q = at::stack(tokens).view({1, 1, 64, kDim});
  EXPECT_EQ(train_step(*pattern, q).revived, 4) << "as many as there are places";
  const at::Tensor mu = pattern->centroids()->centroids()[0];
  for (std::int64_t c = 1; c < 5; ++c) {
    for (std::int64_t other = 0; other < c; ++other) EXPECT_FALSE(mu[c].equal(mu[other])) << c << " " << other;
    EXPECT_TRUE(mu[c].eq(directions()).all(1).any().item<bool>()) << c << " stands on a token";
  }
  for (std::int64_t c = 5; c < 8; ++c) EXPECT_TRUE(mu[c].equal(start[c])) << c << " stays dead";
  // All places are taken now: those that are left wait for tokens of another kind, and are then revived at once.
  EXPECT_EQ(train_step(*pattern, q).revived, 0);
  EXPECT_GE(train_step(*pattern, mixture(3, kShares)).revived, 3);
  const at::Tensor all = pattern->centroids()->centroids()[0];
  for (std::int64_t c = 1; c < 8; ++c) {
    for (std::int64_t other = 0; other < c; ++other) EXPECT_FALSE(all[c].equal(all[other])) << c << " " << other;
  }
}

// With routing.target_share.
TEST(Centroids, SharesOfThresholdsEqualPlainLoops) {
  const std::int64_t k = 5;
  const double share = 2.0 / k;
  const auto pattern = make_routing({.clusters = k, .window = 8, .target_share = 2.0, .decay = 0.95, .revive = false});
  EXPECT_EQ(pattern->named_buffers().size(), 6U);
  std::vector<double> tau(k, 0.0);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const at::Tensor q = normed(random_tensor({3, 1, 21, kDim}, 50 + step, at::kFloat) + 0.5);
    const at::Tensor rows = q.to(at::kDouble).reshape({63, kDim});
    const at::Tensor before = at::matmul(rows, pattern->centroids()->centroids()[0].to(at::kDouble).t()).contiguous();
    train_step(*pattern, q);
    const at::Tensor after = at::matmul(rows, pattern->centroids()->centroids()[0].to(at::kDouble).t()).contiguous();
    for (std::size_t c = 0; c < k; ++c) {
      std::vector<double> scores;
      for (std::int64_t t = 0; t < 63; ++t) {
        scores.push_back((step == 0 ? after : before)[t][static_cast<std::int64_t>(c)].item<double>());
      }
      double mean = 0.0;
      double square = 0.0;
      double passing = 0.0;
      for (const double score : scores) {
        mean += score / 63.0;
        square += score * score / 63.0;
        passing += score >= tau[c] ? 1.0 / 63.0 : 0.0;
      }
      const double deviation = std::sqrt(square - mean * mean);
      if (step == 0) {
        // The 0.6 quantile of 63 scores against the moved centroids: the one of rank 37.
        std::sort(scores.begin(), scores.end());
        tau[c] = scores[37];
      } else {
        tau[c] += deviation * (passing - share);
      }
      const auto cluster = static_cast<std::int64_t>(c);
      ASSERT_NEAR(pattern->centroids()->tau()[0][cluster].item<double>(), tau[c], 2e-4) << "step " << step;
    }
  }
}

// Tokens (3, 0, 0), (2, 1, 0), (0, 0, 5) and (1, 1, 1) with thresholds (2.5, 4, 4): the first and the third pass one,
// the other two fall back to axis 0. The best scores are axis 0's for three of them and axis 2's for one.
TEST(RoutingStatistics, FallbackAndWhatMovesCentroidsAreCounted) {
  const auto of = [](UpdateFrom from, RoutingSelection selection) {
    const HeadGroupConfig group{.pattern = RoutingPattern{.selection = selection, .clusters = 3, .update_from = from},
                                .heads = 1,
                                .shared_query_key = true};
    const auto pattern = make_pattern(group, {.dim = 3, .options = at::TensorOptions(at::kFloat)});
    pattern->centroids()->set_centroids(at::eye(3).unsqueeze(0));
    pattern->named_buffers()["centroids.tau"].copy_(at::tensor({2.5F, 4.0F, 4.0F}).unsqueeze(0));
    const at::Tensor q =
        at::tensor({3.0F, 0.0F, 0.0F, 2.0F, 1.0F, 0.0F, 0.0F, 0.0F, 5.0F, 1.0F, 1.0F, 1.0F}).view({1, 1, 4, 3});
    pattern->plan({.layout = self_layout(1, 1, 4), .queries = q, .training = true});
    return pattern->centroids()->update();
  };
  const double three_and_one = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25)) / std::log(3.0);
  const RoutingStatistics threshold = of(UpdateFrom::argmax, RoutingSelection::threshold);
  EXPECT_EQ(threshold.fallback_fraction, (std::vector<double>{0.5}));
  EXPECT_NEAR(threshold.moving_entropy[0], three_and_one, 1e-12);
  EXPECT_EQ(of(UpdateFrom::argmax, RoutingSelection::nearest).fallback_fraction, (std::vector<double>{0.0}));
  EXPECT_EQ(of(UpdateFrom::none, RoutingSelection::threshold).moving_entropy, (std::vector<double>{0.0}));
  EXPECT_EQ(statistics_of({}, {}, 3).fallback_fraction.size(), 0U);
}

}  // namespace
}  // namespace routing::centroid_thresholds_test
