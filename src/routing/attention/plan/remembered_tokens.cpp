#include "routing/attention/plan/remembered_tokens.h"

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

}  // namespace routing
