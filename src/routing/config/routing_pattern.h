// Routing attention (the paper's section 4.1) as plain data: how tokens choose clusters and how centroids learn.
#pragma once

#include "routing/config/words.h"

#include <array>
#include <cstdint>
#include <optional>

namespace routing {

// Which tokens are members of a cluster. s_tc is the score of token t's normalised vector against centroid c.
enum class RoutingSelection {
  balanced,   // the `window` best tokens of the whole sequence, as in the paper: reads the future
  nearest,    // each token joins the best s_tc - tau_c
  threshold,  // each token joins every c with s_tc >= tau_c; argmax_c s_tc if there is none, the best m if more
};

// What keeps clusters equally large: thresholds that follow the share of tokens above them, or nothing.
enum class RoutingBalance { threshold, none };

enum class CentroidUpdate {
  mean,  // moving averages of counts and sums, then divided (the authors' code)
  sum,   // mu <- decay mu + (1 - decay) / 2 * (sum of queries + sum of keys), as printed in the paper: grows with the
         // batch, so that the first centroid to win many tokens soon wins all
};

// Which tokens move a centroid: those whose s_tc, or s_tc - tau_c, is best for it; all its members; or none.
enum class UpdateFrom { argmax, nearest, members, none };

enum class CentroidInit { gaussian, first_batch_kmeans };

// With separate queries and keys: one update from both together, or one after the other as the authors' code does.
enum class SeparateUpdate { pooled, sequential };

// What tokens choose clusters by, and what their heads attend with.
enum class RoutingNorm {
  layer,  // queries and keys after a layer norm without gain, for both
  unit,   // keys of unit length, queries as they are; clusters by queries of unit length. Shared queries and keys only
};

struct RoutingPattern {
  RoutingSelection selection = RoutingSelection::threshold;
  std::int64_t clusters = 16;
  // balanced: members of a cluster. nearest, threshold: lookback inside a cluster's list.
  std::int64_t window = 256;
  std::optional<std::int64_t> lookahead = std::nullopt;  // bidirectional nearest and threshold; absent means window - 1
  std::int64_t max_memberships = 4;                      // of threshold
  // Cross-attention of nearest and threshold: each centroid takes its best `window` keys, as in balanced, instead of
  // keys choosing centroids. The source is known as a whole, so this reads no future, and no query is left without
  // keys.
  bool balanced_source = true;
  RoutingNorm norm = RoutingNorm::layer;
  bool scale_before_norm = false;  // the authors scale queries by 1/sqrt(dim) first, which only weighs the norm's eps

  RoutingBalance balance = RoutingBalance::threshold;
  double balance_rate = 1.0;  // eta: tau_c += eta * sigma_c * (f_c - target_share / clusters)
  double target_share = 1.0;  // thresholds aim at this many times 1 / clusters of all tokens

  CentroidUpdate update = CentroidUpdate::mean;
  double decay = 0.999;
  // Do the averages of a centroid that no token moves decay as well? In the authors' code yes, and below a count of
  // `laplace` it then shrinks to nothing; ours stays where it is.
  bool decay_empty = false;
  double laplace = 1e-5;       // smoothing of the counts of CentroidUpdate::mean
  double initial_count = 1.0;  // 0 in the authors' code, which throws empty clusters far away at the first step
  UpdateFrom update_from = UpdateFrom::argmax;
  SeparateUpdate separate_update = SeparateUpdate::pooled;
  CentroidInit init = CentroidInit::gaussian;
  std::int64_t kmeans_iterations = 10;

  double commitment = 1e-4;                 // weight of the mean squared distance to the centroid of the best s_tc
  bool commitment_twice_if_shared = false;  // the authors' code adds the term for queries and for keys, even if equal

  bool revive = true;               // give a centroid without members a new place
  double dead_share = 0.01;         // dead: fewer members than this share of tokens / clusters …
  std::int64_t dead_patience = 50;  // … for so many updates in a row

  friend bool operator==(const RoutingPattern&, const RoutingPattern&) = default;
};

constexpr auto words_of(RoutingSelection) {
  using enum RoutingSelection;
  return std::to_array<Word<RoutingSelection>>(
      {{balanced, "balanced"}, {nearest, "nearest"}, {threshold, "threshold"}});
}
constexpr auto words_of(RoutingNorm) {
  using enum RoutingNorm;
  return std::to_array<Word<RoutingNorm>>({{layer, "layer"}, {unit, "unit"}});
}
constexpr auto words_of(RoutingBalance) {
  using enum RoutingBalance;
  return std::to_array<Word<RoutingBalance>>({{threshold, "threshold"}, {none, "none"}});
}
constexpr auto words_of(CentroidUpdate) {
  using enum CentroidUpdate;
  return std::to_array<Word<CentroidUpdate>>({{mean, "mean"}, {sum, "sum"}});
}
constexpr auto words_of(UpdateFrom) {
  using enum UpdateFrom;
  return std::to_array<Word<UpdateFrom>>(
      {{argmax, "argmax"}, {nearest, "nearest"}, {members, "members"}, {none, "none"}});
}
constexpr auto words_of(CentroidInit) {
  using enum CentroidInit;
  return std::to_array<Word<CentroidInit>>({{gaussian, "gaussian"}, {first_batch_kmeans, "first_batch_kmeans"}});
}
constexpr auto words_of(SeparateUpdate) {
  using enum SeparateUpdate;
  return std::to_array<Word<SeparateUpdate>>({{pooled, "pooled"}, {sequential, "sequential"}});
}

}  // namespace routing
