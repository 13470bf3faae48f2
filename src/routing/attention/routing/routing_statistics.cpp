#include "routing/attention/routing/routing_statistics.h"

#include <algorithm>
#include <cmath>

namespace routing {
namespace {

// Entropy of counts relative to that of equal ones.
double relative_entropy(const std::vector<std::int64_t>& counts) {
  if (counts.size() < 2) return 1.0;
  double total = 0.0;
  for (const std::int64_t count : counts) total += static_cast<double>(count);
  if (total == 0.0) return 0.0;
  double entropy = 0.0;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / total;
    if (share > 0.0) entropy -= share * std::log(share);
  }
  return entropy / std::log(static_cast<double>(counts.size()));
}

}  // namespace

void StepTotals::add(const StepTotals& other) {
  for (std::size_t side = 0; side < 2; ++side) {
    totals[side].resize(std::max(totals[side].size(), other.totals[side].size()));
    for (std::size_t head = 0; head < other.totals[side].size(); ++head) {
      totals[side][head].add(other.totals[side][head]);
    }
  }
  sample.resize(std::max(sample.size(), other.sample.size()));
  for (std::size_t head = 0; head < other.sample.size(); ++head) sample[head].merge(other.sample[head]);
}

ClusterTotals StepTotals::pooled(std::int64_t head) const {
  ClusterTotals all = totals[0][static_cast<std::size_t>(head)];
  if (!totals[1].empty()) all.add(totals[1][static_cast<std::size_t>(head)]);
  return all;
}

bool is_dead(std::int64_t members, std::int64_t tokens, const RoutingPattern& pattern) {
  const double fair_share = static_cast<double>(tokens) / static_cast<double>(pattern.clusters);
  return static_cast<double>(members) < pattern.dead_share * fair_share;
}

RoutingStatistics statistics_of(const StepTotals& totals, const RoutingPattern& pattern, std::int64_t dim) {
  RoutingStatistics statistics;
  double memberships = 0.0;
  double unrouted = 0.0;
  double overlapping = 0.0;
  double distance = 0.0;
  double all_tokens = 0.0;
  for (std::size_t head = 0; head < totals.totals[0].size(); ++head) {
    const ClusterTotals& queries = totals.totals[0][head];
    const ClusterTotals all = totals.pooled(static_cast<std::int64_t>(head));
    double head_memberships = 0.0;
    for (const std::int64_t members : queries.members) head_memberships += static_cast<double>(members);
    const auto [least, most] = std::minmax_element(queries.members.begin(), queries.members.end());
    const double divisor = std::max(1.0, head_memberships);
    statistics.occupancy_min.push_back(static_cast<double>(*least) / divisor);
    statistics.occupancy_max.push_back(static_cast<double>(*most) / divisor);
    statistics.occupancy.emplace_back();
    for (const std::int64_t members : queries.members) {
      statistics.occupancy.back().push_back(static_cast<double>(members) / divisor);
    }
    statistics.occupancy_entropy.push_back(relative_entropy(queries.members));
    statistics.choice_entropy.push_back(relative_entropy(queries.nearest));
    statistics.moving_entropy.push_back(relative_entropy(all.moving));
    statistics.fallback_fraction.push_back(static_cast<double>(queries.fallback) /
                                           std::max(1.0, static_cast<double>(queries.tokens)));
    statistics.dead_centroids.push_back(std::count_if(all.members.begin(), all.members.end(),
                                                      [&](std::int64_t n) { return is_dead(n, all.tokens, pattern); }));
    statistics.tokens += queries.tokens;
    memberships += head_memberships;
    unrouted += static_cast<double>(queries.unrouted);
    overlapping += static_cast<double>(queries.overlapping);
    distance += all.squared_distance;
    all_tokens += static_cast<double>(all.tokens);
  }
  const double tokens = std::max(1.0, static_cast<double>(statistics.tokens));
  statistics.unrouted_fraction = unrouted / tokens;
  statistics.mean_memberships = memberships / tokens;
  statistics.overlap_fraction = overlapping / tokens;
  statistics.commitment_loss = distance / std::max(1.0, all_tokens) / static_cast<double>(dim);
  return statistics;
}

}  // namespace routing
