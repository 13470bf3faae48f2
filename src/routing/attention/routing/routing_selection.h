// Which tokens are members of which cluster? The three selections, for one sequence and head, in one pass over scores
// that are never all in memory.
#pragma once

#include "routing/attention/plan/token_lists.h"
#include "routing/config/routing_pattern.h"

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// One head's centroids and thresholds.
struct CentroidView {
  const float* centroids = nullptr;  // [clusters, dim]
  const float* tau = nullptr;        // [clusters]
  std::int64_t clusters = 0;
  std::int64_t dim = 0;
};

// Sums over tokens, one number per cluster: what the update and the statistics need. Adding two gives that of all
// tokens.
struct ClusterTotals {
  ClusterTotals() = default;
  ClusterTotals(std::int64_t clusters, std::int64_t dim);
  void add(const ClusterTotals& other);

  std::int64_t tokens = 0;
  std::int64_t unrouted = 0;          // tokens in no cluster
  std::int64_t overlapping = 0;       // tokens in several
  std::int64_t fallback = 0;          // tokens of `threshold` that passed none and joined a cluster all the same
  double squared_distance = 0.0;      // of tokens to the centroid they commit to, summed
  std::vector<std::int64_t> argmax;   // tokens whose best s is this cluster's
  std::vector<std::int64_t> nearest;  // tokens whose best s - tau is
  std::vector<std::int64_t> passing;  // tokens with s >= tau
  std::vector<std::int64_t> members;
  std::vector<double> score_sum, score_square_sum;
  std::vector<std::int64_t> moving;  // tokens that move the centroid (routing.update_from)
  std::vector<double> moving_sum;    // [clusters, dim]: their sum
};

struct UnitSelection {
  std::vector<std::vector<std::int32_t>> members;  // of each cluster, ascending positions
  std::vector<std::int32_t> committed;             // cluster each position commits to, -1 for padding
  ClusterTotals totals;
};

// vectors [tokens, dim], normalised; `valid` lists the real positions, ascending. Ties go to the lower cluster number;
// in `balanced`, of tokens with equal scores the earlier one is taken.
UnitSelection select_members(std::span<const float> vectors, std::span<const std::int32_t> valid,
                             const CentroidView& view, const RoutingPattern& pattern);

// The clusters that each token joins by `nearest` or `threshold`, and nothing else: for tokens that come a few at a
// time.
TokenLists clusters_of_tokens(std::span<const float> vectors, const CentroidView& view, const RoutingPattern& pattern);
// Likewise of some rows of the vectors, in this order: a token costs least among many of its head, whoever they are of.
TokenLists clusters_of_rows(std::span<const float> vectors, std::span<const std::int32_t> rows,
                            const CentroidView& view, const RoutingPattern& pattern);

}  // namespace routing
