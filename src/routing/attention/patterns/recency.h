// Recency (ALiBi): how much the logits of a head lose for every token between query and key; see ops/attend/attend.h.
//
//   slope of head h = 2^(-e (h + 1) / H)      h its number in the layer, modulo H = AttentionConfig::recency_heads
//
// A head's slope goes by its number in the layer, whatever pattern the heads beside it have: models that differ in the
// pattern of some heads have the same slopes in all others.
//
// e is 8 for local heads, which read the nearest tokens only: slopes from 2^(-8/H) to 2^-8. Heads of all other patterns
// may read any distance, and the window of a cluster or bucket counts its members, not the tokens between them. With 8
// the farthest-sighted of them would weigh keys by e^(-distance/256) and not see past a thousand tokens or two; e is 16
// for them, slopes go down to 2^-16.
#pragma once

#include "routing/config/attention.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace routing {

// The slope of head `head` of a layer with `heads` heads to count, under a pattern.
double recency_slope(const PatternConfig& pattern, std::int64_t head, std::int64_t heads);

// Of the heads of one head group, in order; empty without recency.
std::vector<double> recency_slopes(const AttentionConfig& layer, std::size_t group);

// The same as attend takes them; undefined if there are none.
at::Tensor slopes_for_attend(const std::vector<double>& slopes, const at::TensorOptions& options);

}  // namespace routing
