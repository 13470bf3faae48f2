// What one step of routing saw, and how healthy its clusters are.
#pragma once

#include "routing/attention/routing/routing_selection.h"
#include "routing/attention/routing/token_sample.h"
#include "routing/config/routing_pattern.h"

#include <array>
#include <cstdint>
#include <vector>

namespace routing {

// Totals of forward passes, summed over their sequences: [side][head], side 0 queries, side 1 keys (empty when shared).
struct StepTotals {
  std::array<std::vector<ClusterTotals>, 2> totals;
  std::vector<TokenSample> sample;  // [head]; empty where nobody needs one

  void add(const StepTotals& other);
  bool empty() const { return totals[0].empty(); }
  // Queries and keys of one head together.
  ClusterTotals pooled(std::int64_t head) const;
};

// Health of one group of routed heads over the tokens of one step (or of an evaluation). Shares of 0 to 1. Occupancy,
// entropies and memberships are those of the queries; what moves centroids, dead ones and the commitment count queries
// and keys.
struct RoutingStatistics {
  std::int64_t tokens = 0;  // queries, times heads
  // For each head, over its clusters; occupancy is a cluster's share of all memberships.
  std::vector<double> occupancy_min, occupancy_max;
  std::vector<std::vector<double>> occupancy;  // of every cluster; zeros of no memberships
  std::vector<double> occupancy_entropy;       // relative to log(clusters): 1 is perfectly even
  std::vector<double> choice_entropy;          // the same of c*(t) = argmax of s - tau
  std::vector<double> moving_entropy;          // the same of the tokens that move each centroid; 0 where none moves any
  std::vector<double> fallback_fraction;       // tokens that pass no threshold; 0 where selection is not `threshold`
  std::vector<std::int64_t> dead_centroids;
  double unrouted_fraction = 0.0;
  double mean_memberships = 0.0;
  double overlap_fraction = 0.0;
  double tau_drift = 0.0;        // mean |change of tau| in standard deviations of the scores; 0 in evaluation
  double commitment_loss = 0.0;  // mean squared distance per dimension, before its weight
  std::int64_t revived = 0;
};

// Does a cluster with so many members of so many tokens count as dead?
bool is_dead(std::int64_t members, std::int64_t tokens, const RoutingPattern& pattern);

// All but tau_drift and revived, which are the update's to say.
RoutingStatistics statistics_of(const StepTotals& totals, const RoutingPattern& pattern, std::int64_t dim);

}  // namespace routing
