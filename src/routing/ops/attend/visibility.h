// What does each query see in each of its groups? Worked out once per plan, for every implementation of attend.
#pragma once

#include "routing/kernels/attend/attend.h"
#include "routing/kernels/attend/query_view.h"
#include "routing/kernels/attend/repeated_keys.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace routing {

using kernels::QueryView;

// Views of all memberships, group after group: query number r of group g is entry group_offsets[g] + r.
struct PlanViews {
  std::vector<std::int64_t> group_offsets;
  std::vector<QueryView> views;
  kernels::RepeatWords repeats;  // of the same entries

  // Does the key at this rank, which lies in the interval of view number `entry`, count for the query there?
  bool counts(std::int64_t entry, std::int32_t rank) const {
    return rank != views[static_cast<std::size_t>(entry)].self_rank && !repeats.keys().holds(entry, rank);
  }
};

PlanViews view_plan(const Plan& plan);

// Both as the kernels take them; they must outlive what is returned.
kernels::AttendPlan kernel_plan(const Plan& plan, const PlanViews& views);

// The same, shared by all users of a sealed plan.
std::shared_ptr<const PlanViews> shared_views(const Plan& plan);

// Pairs (query, key, group) that count in attention; what benchmarks go by.
std::int64_t attended_pairs(const Plan& plan);

}  // namespace routing
