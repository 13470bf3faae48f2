#include "routing/attention/plan/remembered_tokens.h"

#include "routing/ops/attend/visibility.h"

#include <algorithm>
#include <utility>

namespace routing {

Plan with_queries_from(const Plan& plan, std::int64_t first) {
  Plan later = plan;
  later.groups = plan.groups.clone();
  const auto* positions = plan.query_order.data_ptr<std::int32_t>();
  auto* group = later.groups.data_ptr<std::int64_t>();
  for (std::int64_t number = 0; number < plan.num_groups(); ++number, group += 4) {
    group[0] = std::lower_bound(positions + group[0], positions + group[1], first) - positions;
  }
  return complete_plan(std::move(later));
}

Plan with_rows_from(const Plan& plan, std::int64_t first_query, std::int64_t first_key) {
  Plan later = plan;
  later.groups = plan.groups.clone();
  const auto* positions = plan.key_order.data_ptr<std::int32_t>();
  auto* group = later.groups.data_ptr<std::int64_t>();
  for (std::int64_t number = 0; number < plan.num_groups(); ++number, group += 4) {
    if (group[0] == group[1]) {
      group[2] = group[3];
      continue;
    }
    const std::int64_t before =
        std::lower_bound(positions + group[2], positions + group[3], first_key) - (positions + group[2]);
    const std::int64_t tiles = (before + kernels::kAttendTile - 1) / kernels::kAttendTile;
    group[2] = std::min(group[3], group[2] + tiles * kernels::kAttendTile);
  }
  later.num_queries = plan.num_queries - first_query;
  later.num_keys = plan.num_keys - first_key;
  later.query_origin = first_query;
  later.key_origin = first_key;
  for (at::Tensor* choice : {&later.query_choice, &later.key_choice}) {
    if (choice->defined()) *choice = choice->narrow(2, first_query, later.num_queries).contiguous();
  }
  return complete_plan(std::move(later));
}

}  // namespace routing
