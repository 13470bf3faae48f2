// What does each query see in each of its groups? Worked out once per plan, for every implementation of attend.
#pragma once

#include "routing/kernels/query_view.h"
#include "routing/ops/plan_tensors.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace routing {

using kernels::QueryView;

// Views of all memberships, group after group: query number r of group g is entry group_offsets[g] + r.
struct PlanViews {
  std::vector<std::int64_t> group_offsets;
  std::vector<QueryView> views;
};

PlanViews view_plan(const PlanTensors& plan);

// The same, shared by all users of a sealed plan.
std::shared_ptr<const PlanViews> shared_views(const PlanTensors& plan);

// Pairs (query, key, group) that attention has to compute; what benchmarks count.
std::int64_t attended_pairs(const PlanTensors& plan);

}  // namespace routing
