// What does each query see in each of its groups? Worked out once per plan, for every implementation of attend.
#pragma once

#include "routing/ops/plan_tensors.h"

#include <cstdint>
#include <vector>

namespace routing {

// One query in one group. Ranks count from the start of the group's key list.
struct QueryView {
  std::int32_t key_from = 0;  // sees ranks key_from … key_to - 1
  std::int32_t key_to = 0;
  std::int32_t place = 0;       // keys of the group at positions up to the query's own
  std::int32_t self_rank = -1;  // its own rank among the visible keys that it must skip; -1 if there is none
  bool sees_nothing() const { return key_to - key_from - (self_rank >= 0 ? 1 : 0) == 0; }
};

// Views of all memberships, group after group: query number r of group g is entry group_offsets[g] + r.
struct PlanViews {
  std::vector<std::int64_t> group_offsets;
  std::vector<QueryView> views;
};

PlanViews view_plan(const PlanTensors& plan);

// Pairs (query, key, group) that attention has to compute; what benchmarks count.
std::int64_t attended_pairs(const PlanTensors& plan);

}  // namespace routing
