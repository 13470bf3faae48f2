// What the heads of a layer attended with, kept by a forward so that analysis can ask for single rows of attention.
//
//   A_ij   as in ops/attend/attend.h, at the true positions j of the keys: what multiplies v_j in the output of query i
//
// Rows are computed in double from the vectors of the forward, each in time proportional to the keys it reads; there is
// never an n x n matrix. A forward in bfloat16 rounds inside its products; rows do not.
#pragma once

#include "routing/attention/patterns/pattern.h"
#include "routing/config/attention_rules.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace routing {

// What one head group of a layer attended with. The options are those of AttendOptions.
struct GroupProbe {
  std::string pattern_name = {};  // "local", "routing" …
  std::int64_t first_head = 0;    // number of the group's first head in its layer
  at::Tensor queries = {};        // [batch, heads, queries, dim], contiguous, float or double, on the CPU;
  at::Tensor keys = {};           // [batch, heads, keys, dim]: normalised as attended with, set also where shared
  Plan plan = {};                 // what was attended over
  double scale = 1.0;
  Merge merge = Merge::lse;
  double merge_eps = 0.0;
  RelativePosition relative = RelativePosition::none;
  at::Tensor relative_key = {};  // [2 * max + 1, dim], of the type of the queries; undefined means zero
  at::Tensor recency = {};       // [heads] of the group, of the type of the queries; undefined means zero

  std::int64_t heads() const { return plan.heads; }
  std::int64_t num_queries() const { return plan.num_queries; }
  std::int64_t num_keys() const { return plan.num_keys; }
};

// The vectors of a probe as it keeps them: without a graph, contiguous and on the CPU. Undefined stays so.
at::Tensor probe_vectors(const at::Tensor& vectors);

// One row of attention. A key that a query reads in several groups stands here once, with the sum of its weights.
// Weights sum to 1, or to groups / (groups + merge_eps) under Merge::mean; a query that reads nothing has an empty row.
struct AttentionRow {
  std::vector<std::int32_t> keys;  // distinct, ascending
  std::vector<double> weights;     // as they multiply values, one per key
};

// `head` counts inside the group. Throws an InputError where there is no such row.
AttentionRow attention_row(const GroupProbe& probe, std::int64_t sequence, std::int64_t head, std::int64_t query);

// A query of a probe.
struct ProbedQuery {
  std::int64_t sequence = 0;
  std::int64_t head = 0;  // inside the group
  std::int64_t query = 0;
};

// q_i . k_j for any keys, whether the plan holds them or not.
std::vector<double> inner_products(const GroupProbe& probe, const ProbedQuery& at, std::span<const std::int32_t> keys);

// The logits that dense attention with the head's own vectors has for any keys, whether the plan holds them or not:
//
//   scale * q_i . (k_j + a_{j-i}) - slope (i - j)      a with RelativePosition::true_offset, the slope with recency
//
// Both are functions of two positions, so they are there for every key. Ranks are not: a key outside a query's
// groups has none. With RelativePosition::rank the table is left out for all keys alike.
std::vector<double> dense_logits(const GroupProbe& probe, const ProbedQuery& at, std::span<const std::int32_t> keys);

}  // namespace routing
