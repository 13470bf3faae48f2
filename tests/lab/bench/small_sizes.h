// Sizes and counts that several tests of the benchmarks share.
#pragma once

#include "lab/bench/attention_work.h"
#include "routing/config/experiment.h"

#include <algorithm>
#include <cstdint>

namespace routing::bench {

inline constexpr AttentionSizes kSmall{.batch = 2, .n = 96, .heads = 2, .dim = 8, .window = 16, .clusters = 4};

// Query i of a sliding window sees min(i + 1, window) keys.
inline std::int64_t sliding_pairs(const AttentionSizes& sizes) {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < sizes.n; ++i) pairs += std::min(i + 1, sizes.window);
  return pairs * sizes.heads * sizes.batch;
}

// Two layers of width 32, half of the heads routed.
inline ExperimentConfig small_model() {
  ExperimentConfig config;
  config.model.layers = 2;
  config.model.width = 32;
  config.model.feedforward_width = 48;
  config.attention.heads = 4;
  config.attention.content_heads = 2;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 16;
  config.routing.routing().window = 16;
  config.routing.routing().clusters = 4;
  config.train.sequence_length = 64;
  return config;
}

}  // namespace routing::bench
