// Steps of centroids without a model around them: tokens are given, totals applied.
#pragma once

#include "routing/attention/patterns/routing.h"
#include "support/pattern_cases.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

namespace routing {

inline constexpr std::int64_t kDim = 8;

inline std::shared_ptr<Pattern> make_routing(const RoutingPattern& routing, bool shared = true, std::int64_t heads = 1,
                                             AttentionKind kind = AttentionKind::causal_self) {
  const HeadGroupConfig group{.pattern = routing, .heads = heads, .shared_query_key = shared};
  return make_pattern(group, {.kind = kind, .dim = kDim, .options = at::TensorOptions(at::kFloat)});
}

inline at::Tensor normed(const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-6);
}

inline RoutingStatistics train_step(Pattern& pattern, const at::Tensor& q, const at::Tensor& k = {}) {
  pattern.plan({.layout = self_layout(q.size(0), q.size(1), q.size(2)), .queries = q, .keys = k, .training = true});
  return pattern.centroids()->update();
}

// Orthogonal, without a mean and of the length layer norm gives: four rows of a Hadamard matrix.
inline at::Tensor directions() {
  at::Tensor rows = at::empty({4, kDim});
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t d = 0; d < kDim; ++d) {
      rows[row][d] = std::popcount(static_cast<unsigned>((row + 1) & d)) % 2 == 0 ? 1.0 : -1.0;
    }
  }
  return rows;
}

// Four well-separated directions, `share` of a batch of 64 tokens each, with little noise: [1, 1, 64, kDim].
inline at::Tensor mixture(std::uint64_t seed, const std::vector<int>& shares) {
  std::vector<at::Tensor> tokens;
  for (std::size_t direction = 0; direction < shares.size(); ++direction) {
    tokens.push_back(directions()[static_cast<std::int64_t>(direction)].expand({shares[direction], kDim}));
  }
  const at::Tensor x = at::cat(tokens) + 0.05 * support::random_tensor({64, kDim}, seed, at::kFloat);
  return normed(x).view({1, 1, 64, kDim});
}

inline const std::vector<int> kShares{28, 20, 10, 6};

}  // namespace routing
