#include "routing/attention/cache/cached_plan.h"

namespace routing {

void CachedPlan::clear() {
  for (auto* numbers : {&query_order_, &key_order_, &key_rows_, &query_origins_, &member_rank_}) numbers->clear();
  for (auto* numbers : {&groups_, &unit_offsets_, &member_offsets_, &member_group_, &view_offsets_}) numbers->clear();
  views_.clear();
  repeats_.clear();
}

kernels::AttendPlan CachedPlan::plan() const {
  return {.batch = sequences_,
          .heads = heads_,
          .num_queries = tokens_,
          .num_keys = store_rows_,
          .query_order = query_order_.data(),
          .key_order = key_order_.data(),
          .key_rows = key_rows_.data(),
          .query_origins = query_origins_.data(),
          .groups = groups_.data(),
          .unit_offsets = unit_offsets_.data(),
          .member_offsets = member_offsets_.data(),
          .member_group = member_group_.data(),
          .member_rank = member_rank_.data(),
          .view_offsets = view_offsets_.data(),
          .views = views_.data(),
          .repeats = repeats_.keys()};
}

std::vector<std::int32_t> CachedPlan::keys_of(std::int64_t sequence, std::int64_t head, std::int64_t token) const {
  std::vector<std::int32_t> keys;
  const auto row = static_cast<std::size_t>((sequence * heads_ + head) * tokens_ + token);
  for (auto entry = static_cast<std::size_t>(member_offsets_.at(row));
       entry < static_cast<std::size_t>(member_offsets_.at(row + 1)); ++entry) {
    const auto group = static_cast<std::size_t>(member_group_[entry]);
    const std::int64_t number = view_offsets_[group] + member_rank_[entry];
    const kernels::QueryView& view = views_[static_cast<std::size_t>(number)];
    for (std::int32_t rank = view.key_from; rank < view.key_to; ++rank) {
      if (rank == view.self_rank || repeats_.keys().holds(number, rank)) continue;
      keys.push_back(key_order_[static_cast<std::size_t>(groups_[group * 4 + 2] + rank)]);
    }
  }
  return keys;
}

}  // namespace routing
