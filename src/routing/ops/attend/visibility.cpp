#include "routing/ops/attend/visibility.h"

#include "routing/core/parallel.h"

#include <algorithm>
#include <bit>

namespace routing {
namespace {

constexpr std::int64_t kGroupsPerChunk = 16;
constexpr std::int64_t kRowsPerChunk = 4096;

// Both lists ascend, so one walk over each finds every query's place.
void view_group(const Plan& plan, std::int64_t group, QueryView* views) {
  const GroupRange range = group_range(plan, group);
  const auto* query_positions = plan.query_order.data_ptr<std::int32_t>() + range.q_begin;
  const auto* key_positions = plan.key_order.data_ptr<std::int32_t>() + range.k_begin;
  const std::int64_t num_keys = range.num_keys();
  const bool skip_self = plan.rules.self != SelfRule::allowed;
  const bool alone_in_group = plan.rules.self == SelfRule::only_if_alone_in_group;
  std::int64_t place = 0;
  for (std::int64_t query = 0; query < range.num_queries(); ++query) {
    const std::int32_t position = query_positions[query];
    while (place < num_keys && key_positions[place] <= position) ++place;
    const std::int64_t from = plan.rules.lookback ? std::max<std::int64_t>(0, place - *plan.rules.lookback) : 0;
    std::int64_t to = plan.rules.lookahead ? std::min(num_keys, place + *plan.rules.lookahead) : num_keys;
    if (plan.rules.causal) to = std::min(to, place);
    QueryView& view = views[query];
    view.key_from = static_cast<std::int32_t>(std::min(from, to));
    view.key_to = static_cast<std::int32_t>(to);
    view.place = static_cast<std::int32_t>(place);
    const std::int64_t own_rank = place - 1;
    const bool self_visible = own_rank >= from && own_rank < to && key_positions[own_rank] == position;
    const bool skipped = skip_self && self_visible && !(alone_in_group && to - from == 1);
    view.self_rank = skipped ? static_cast<std::int32_t>(own_rank) : -1;
  }
}

// A token that sees nothing but itself in all of its groups may see itself.
void allow_self_where_alone(const Plan& plan, PlanViews& all) {
  const auto* offsets = plan.query_index.offsets.data_ptr<std::int64_t>();
  const auto* group_of = plan.query_index.group.data_ptr<std::int64_t>();
  const auto* rank_of = plan.query_index.rank.data_ptr<std::int32_t>();
  const auto view_of = [&](std::int64_t entry) -> QueryView& {
    return all
        .views[static_cast<std::size_t>(all.group_offsets[static_cast<std::size_t>(group_of[entry])] + rank_of[entry])];
  };
  parallel_for(0, plan.num_units() * plan.num_queries, kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      bool alone = true;
      for (std::int64_t entry = offsets[row]; entry < offsets[row + 1]; ++entry) {
        alone = alone && view_of(entry).sees_nothing();
      }
      if (!alone) continue;
      for (std::int64_t entry = offsets[row]; entry < offsets[row + 1]; ++entry) view_of(entry).self_rank = -1;
    }
  });
}

}  // namespace

PlanViews view_plan(const Plan& plan) {
  PlanViews all;
  const std::int64_t num_groups = plan.num_groups();
  all.group_offsets.resize(static_cast<std::size_t>(num_groups) + 1, 0);
  for (std::int64_t group = 0; group < num_groups; ++group) {
    all.group_offsets[static_cast<std::size_t>(group) + 1] =
        all.group_offsets[static_cast<std::size_t>(group)] + group_range(plan, group).num_queries();
  }
  all.views.resize(static_cast<std::size_t>(all.group_offsets.back()));
  parallel_for(0, num_groups, kGroupsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t group = first; group < last; ++group) {
      view_group(plan, group, all.views.data() + all.group_offsets[static_cast<std::size_t>(group)]);
    }
  });
  if (plan.rules.self == SelfRule::only_if_alone) allow_self_where_alone(plan, all);
  if (plan.rules.repeats == RepeatRule::once) kernels::mark_repeats(kernel_plan(plan, all), all.views, all.repeats);
  return all;
}

kernels::AttendPlan kernel_plan(const Plan& plan, const PlanViews& views) {
  return {.batch = plan.batch,
          .heads = plan.heads,
          .num_queries = plan.num_queries,
          .num_keys = plan.num_keys,
          .query_origin = plan.query_origin,
          .key_origin = plan.key_origin,
          .query_order = plan.query_order.data_ptr<std::int32_t>(),
          .key_order = plan.key_order.data_ptr<std::int32_t>(),
          .key_rows = plan.key_rows.defined() ? plan.key_rows.data_ptr<std::int32_t>() : nullptr,
          .groups = plan.groups.data_ptr<std::int64_t>(),
          .unit_offsets = plan.unit_offsets.data_ptr<std::int64_t>(),
          .member_offsets = plan.query_index.offsets.data_ptr<std::int64_t>(),
          .member_group = plan.query_index.group.data_ptr<std::int64_t>(),
          .member_rank = plan.query_index.rank.data_ptr<std::int32_t>(),
          .view_offsets = views.group_offsets.data(),
          .views = views.views.data(),
          .repeats = views.repeats.keys()};
}

std::shared_ptr<const PlanViews> shared_views(const Plan& plan) {
  if (plan.seal && plan.seal->covers(plan)) return plan.seal->views();
  return std::make_shared<const PlanViews>(view_plan(plan));
}

std::int64_t attended_pairs(const Plan& plan) {
  std::int64_t pairs = 0;
  const auto all = shared_views(plan);
  for (const QueryView& view : all->views) {
    pairs += view.key_to - view.key_from - (view.self_rank >= 0 ? 1 : 0);
  }
  const kernels::RepeatedKeys repeats = all->repeats.keys();
  for (std::size_t entry = 0; repeats.any() && entry < all->views.size(); ++entry) {
    const QueryView& view = all->views[entry];
    constexpr std::int64_t kTile = kernels::kAttendTile;
    for (std::int64_t tile = view.key_from / kTile; tile * kTile < view.key_to; ++tile) {
      pairs -= std::popcount(repeats.in_tile(static_cast<std::int64_t>(entry), tile));
    }
  }
  return pairs;
}

}  // namespace routing
