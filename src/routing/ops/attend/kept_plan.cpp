#include "routing/ops/attend/kept_plan.h"

namespace routing {

void KeptPlan::clear() {
  for (auto* numbers : {&query_order, &key_order, &key_rows, &query_origins, &member_rank}) numbers->clear();
  for (auto* numbers : {&groups, &unit_offsets, &member_offsets, &member_group, &views.group_offsets}) numbers->clear();
  views.views.clear();
  views.repeats.clear();
}

std::vector<std::int32_t> KeptPlan::keys_of(std::int64_t sequence, std::int64_t head, std::int64_t token) const {
  std::vector<std::int32_t> keys;
  const auto row = static_cast<std::size_t>((sequence * heads + head) * num_queries + token);
  for (auto entry = static_cast<std::size_t>(member_offsets.at(row));
       entry < static_cast<std::size_t>(member_offsets.at(row + 1)); ++entry) {
    const auto group = static_cast<std::size_t>(member_group[entry]);
    const std::int64_t number = views.group_offsets[group] + member_rank[entry];
    const QueryView& view = views.views[static_cast<std::size_t>(number)];
    for (std::int32_t rank = view.key_from; rank < view.key_to; ++rank) {
      if (views.counts(number, rank)) keys.push_back(key_order[static_cast<std::size_t>(groups[group * 4 + 2] + rank)]);
    }
  }
  return keys;
}

kernels::AttendPlan kernel_plan(const KeptPlan& plan) {
  return {.batch = plan.batch,
          .heads = plan.heads,
          .num_queries = plan.num_queries,
          .num_keys = plan.num_keys,
          .query_order = plan.query_order.data(),
          .key_order = plan.key_order.data(),
          .key_rows = plan.key_rows.data(),
          .query_origins = plan.query_origins.data(),
          .groups = plan.groups.data(),
          .unit_offsets = plan.unit_offsets.data(),
          .member_offsets = plan.member_offsets.data(),
          .member_group = plan.member_group.data(),
          .member_rank = plan.member_rank.data(),
          .view_offsets = plan.views.group_offsets.data(),
          .views = plan.views.views.data(),
          .repeats = plan.views.repeats.keys()};
}

void mark_repeats(KeptPlan& plan) {
  kernels::mark_repeats(kernel_plan(plan), plan.views.views, plan.views.repeats);
}

}  // namespace routing
