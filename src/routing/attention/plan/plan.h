// A plan: which keys may each query read? The sets S_i of the paper's section 4, for B sequences and H heads of one
// pattern. Patterns make plans, attend() attends over them; nothing else knows about sparsity.
//
// The layout and the rules of visibility are described in routing/ops/attend/plan_tensors.h.
#pragma once

#include "routing/ops/attend/plan_tensors.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

class Plan {
 public:
  // Checks the lists, groups and rules, builds the inverse index of the queries and seals the plan (complete_plan); the
  // index of the tensors handed over is not looked at.
  explicit Plan(PlanTensors tensors);

  const PlanTensors& tensors() const { return tensors_; }
  const VisibilityRules& rules() const { return tensors_.rules; }
  std::int64_t batch() const { return tensors_.batch; }
  std::int64_t heads() const { return tensors_.heads; }
  std::int64_t num_queries() const { return tensors_.num_queries; }
  std::int64_t num_keys() const { return tensors_.num_keys; }
  std::int64_t num_groups() const { return tensors_.num_groups(); }
  // True where queries and keys are ranges of the same list.
  bool one_list() const { return tensors_.query_order.is_same(tensors_.key_order); }

  // Token -> (group, rank), for queries and for keys.
  const MemberIndex& query_index() const { return tensors_.query_index; }
  MemberIndex key_index() const;

  // Pairs (query, key, group) that count in attention.
  std::int64_t attended_pairs() const;

  // For oracles and pictures of short sequences, by plain loops from the definition:
  // c_ij = in how many groups key j counts for query i; int32 [batch, heads, queries, keys].
  at::Tensor to_dense_counts() const;
  // The same, each group of one unit by itself; bool [groups of the unit, queries, keys].
  at::Tensor to_dense_masks(std::int64_t sequence, std::int64_t head) const;

 private:
  PlanTensors tensors_;
};

// Equal lists, groups and rules, bit for bit.
bool operator==(const Plan& first, const Plan& second);

}  // namespace routing
