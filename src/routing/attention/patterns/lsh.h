// LSH attention (Reformer, Kitaev et al. 2020) as a plan: tokens whose vectors fall into the same bucket of a random
// rotation read each other.
//
//   bucket(x) = argmax of [x R; -x R]        R [dim, buckets / 2], fixed Gaussian numbers, one per head and round
//
// Reformer sorts by bucket and cuts the sorted list into chunks, so that which keys a token sees depends on later
// tokens. Here every bucket is its own list sorted by time and a query sees the last `window` members up to itself:
// the same budget, and strictly causal. In cross-attention, where positions have no common time, a query sees all keys
// of its bucket. In one softmax over several rounds a key counts once, however many of them have found it: Reformer's
// - log N_ij, here RepeatRule::once.
#pragma once

#include "routing/attention/plan/token_layout.h"
#include "routing/config/attention.h"
#include "routing/ops/attend/plan.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

// Rotations [heads, rounds, dim, buckets / 2] from the stream (key, head): a head keeps its own whatever the others
// are.
at::Tensor lsh_rotations(const LshPattern& pattern, std::int64_t heads, std::int64_t dim, std::uint64_t key,
                         const at::TensorOptions& options);

// The bucket of each vector in each round: vectors [batch, heads, tokens, dim] -> int32 [batch, heads, rounds, tokens].
// The first of equal maxima wins. A vector's bucket depends on nothing but the vector.
at::Tensor lsh_buckets(const at::Tensor& vectors, const at::Tensor& rotations);

// One group per round and bucket. Undefined keys mean that queries and keys are the same vectors.
Plan lsh_plan(const TokenLayout& layout, const LshPattern& pattern, const VisibilityRules& rules,
              const at::Tensor& query_buckets, const at::Tensor& key_buckets = {});

}  // namespace routing
