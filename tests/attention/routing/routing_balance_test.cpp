// Thresholds on strongly anisotropic vectors, and the bound behind routing by clusters.
#include "routing/attention/patterns/pattern.h"
#include "routing/attention/routing/centroids.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <cmath>

namespace routing::routing_balance_test {
namespace {

using support::random_tensor;

constexpr std::int64_t kDim = 32;
constexpr std::int64_t kClusters = 32;

at::Tensor normed(const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-6);
}

// A large common component, as trained queries have.
at::Tensor anisotropic(std::uint64_t seed) {
  const at::Tensor common = 3.0 * random_tensor({kDim}, 4242, at::kFloat);
  return normed(random_tensor({2, 1, 512, kDim}, seed, at::kFloat) + common);
}

std::shared_ptr<Pattern> make_routing(RoutingSelection selection, RoutingBalance balance) {
  const HeadGroupConfig group{
      .pattern =
          RoutingPattern{
              .selection = selection, .clusters = kClusters, .window = 32, .balance = balance, .revive = false},
      .heads = 1,
      .shared_query_key = true};
  return make_pattern(group, {.dim = kDim, .options = at::TensorOptions(at::kFloat)});
}

RoutingStatistics train(Pattern& pattern, std::uint64_t steps) {
  RoutingStatistics last;
  for (std::uint64_t step = 0; step < steps; ++step) {
    pattern.plan({.layout = self_layout(2, 1, 512), .queries = anisotropic(step), .training = true});
    last = pattern.centroids()->update();
  }
  return last;
}

TEST(Balance, ThresholdsSpreadAnAnisotropicStream) {
  for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
    const auto balanced = make_routing(selection, RoutingBalance::threshold);
    const RoutingStatistics with_tau = train(*balanced, 300);
    EXPECT_GT(with_tau.choice_entropy[0], 0.9) << to_string(selection);
    const auto plain = make_routing(selection, RoutingBalance::none);
    const RoutingStatistics without = train(*plain, 300);
    EXPECT_LT(without.choice_entropy[0], 0.5) << to_string(selection);
  }
}

TEST(Balance, SharesAboveTheThresholdsComeWithinAFifthOfTheTarget) {
  const auto pattern = make_routing(RoutingSelection::threshold, RoutingBalance::threshold);
  train(*pattern, 400);
  // Measured on fresh tokens with the thresholds at rest.
  std::vector<double> passing(kClusters, 0.0);
  double tokens = 0.0;
  for (std::uint64_t step = 0; step < 20; ++step) {
    pattern->plan({.layout = self_layout(2, 1, 512), .queries = anisotropic(10000 + step), .training = true});
  }
  const ClusterTotals& totals = pattern->centroids()->pending().totals[0][0];
  tokens = static_cast<double>(totals.tokens);
  for (std::size_t c = 0; c < kClusters; ++c) {
    const double share = static_cast<double>(totals.passing[c]) / tokens;
    EXPECT_NEAR(share * kClusters, 1.0, 0.2) << "cluster " << c;
  }
}

// The paper's equations after MIPS, at the radius layer norm gives: |x|^2 = R^2 with R^2 = dim. If query and key both
// lie within eps of a centroid then |q - k| < 2 eps, so q.k = R^2 - |q - k|^2 / 2 > R^2 - 2 eps^2.
TEST(Bound, MembersNearACentroidHaveALargeDotProduct) {
  const double radius_squared = static_cast<double>(kDim);
  int pairs = 0;
  double tightest = 1e9;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const at::Tensor centroid = normed(random_tensor({1, kDim}, seed));
    const at::Tensor x = normed(centroid + 0.2 * random_tensor({40, kDim}, seed + 100));
    EXPECT_LT((x.square().sum(1) - radius_squared).abs().max().item<double>(), 1e-3);
    const at::Tensor distance = (x - centroid).norm(2, 1);
    const at::Tensor products = at::matmul(x, x.t());
    const at::Tensor between = at::cdist(x, x);
    for (const double eps : {0.8, 1.0, 1.2, 1.5}) {
      const at::Tensor near = distance < eps;
      const at::Tensor both = near.unsqueeze(0) & near.unsqueeze(1);
      if (!both.any().item<bool>()) continue;
      pairs += both.sum().item<int>();
      const double least = products.masked_select(both).min().item<double>();
      EXPECT_GT(least, radius_squared - 2.0 * eps * eps - 1e-3);
      EXPECT_LT(between.masked_select(both).max().item<double>(), 2.0 * eps);
      tightest = std::min(tightest, least - (radius_squared - 2.0 * eps * eps));
    }
    // The identity it rests on.
    EXPECT_LT((between.square() - (2.0 * radius_squared - 2.0 * products)).abs().max().item<double>(), 2e-3);
  }
  EXPECT_GT(pairs, 1000);
  EXPECT_LT(tightest, 2.0);  // the bound is not idle: some pairs come close to it
}

}  // namespace
}  // namespace routing::routing_balance_test
