// The one attention operation: softmax attention over any plan, differentiable.
//
//   s_ij    = scale * q_i . (k_j + a_ij) - slope (i - j)    for every key j that query i sees, group by group
//   output  = sum over j of A_ij (v_j + b_ij)
//   lse_i   = log of the sum of exp(s_ij) over all keys of all groups of i; -inf for a query that sees no key
//
// A is one softmax over all keys of all groups (Merge::lse), or each group has its own softmax and the results are
// averaged over the groups in which the query sees a key, divided by (their number + merge_eps) (Merge::mean). a and b
// are rows of the relative tables; the slope is that of the head (recency), i and j are true positions. A query that
// sees no key gets zero.
#pragma once

#include "routing/config/attention_rules.h"
#include "routing/ops/attend/plan.h"
#include "routing/ops/precision.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

// Which attention probabilities are dropped is a function of (key, sample, head, group in its unit, query position, key
// position): the same for any number of threads and any order of work and, given sample_ids, any place in the batch.
struct AttentionDropout {
  double probability = 0.0;    // in [0, 1); 0 switches dropout off
  std::uint64_t key = 0;       // from stream_key(seed, …, layer, step)
  at::Tensor sample_ids = {};  // int64 [batch]: the identity of each sequence; absent means 0, 1, 2 …
};

struct AttendOptions {
  double scale = 1.0;
  Merge merge = Merge::lse;
  double merge_eps = 0.0;
  RelativePosition relative = RelativePosition::none;
  at::Tensor relative_key = {};    // [2 * max + 1, dim]: row max + clip(offset, -max, max); absent means zero
  at::Tensor relative_value = {};  // [2 * max + 1, value_dim]; absent means zero
  // [heads], finite and not below 0, of the type and device of q: how much a logit loses for every token between query
  // and key (ALiBi). Computed from the whole number i - j, so that it is the same at any position. A given, not
  // differentiable; absent means zero.
  at::Tensor recency = {};
  AttentionDropout dropout = {};
  // bf16: q, k, v, probabilities and their gradients may be rounded to bfloat16 as factors of products, where the
  // processor gains by it; softmax, sums and results stay float32. See kernels/attend/attend.h.
  MatmulPrecision precision = MatmulPrecision::fp32;
};

struct AttendInputs {
  at::Tensor q;  // [batch, heads, queries, dim]
  at::Tensor k;  // [batch, heads, keys, dim]
  at::Tensor v;  // [batch, heads, keys, value_dim]
};

struct AttendResult {
  at::Tensor output;  // [batch, heads, queries, value_dim]
  at::Tensor lse;     // [batch, heads, queries]
};

// q, k, v as in AttendInputs; float or double, any device. Differentiable once in q, k, v, relative_key and
// relative_value, through output and through lse; the plan is taken as given. Throws an InputError if shapes, types or
// devices do not fit the plan and each other, or on a second derivative.
//
// Goes through the registered operator routing::attend, so profilers and other languages see it under that name.
AttendResult attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Plan& plan,
                    const AttendOptions& options);

// Whether float32 rows on the CPU are kept for the backward pass as the kernels read them, in two bytes per number.
bool attend_keeps_halves(MatmulPrecision precision);

}  // namespace routing
