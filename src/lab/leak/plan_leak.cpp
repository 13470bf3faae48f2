#include "lab/leak/plan_leak.h"

#include "routing/core/error.h"
#include "routing/ops/attend/visibility.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

// How one head's plan differs between two sequences.
struct Difference {
  std::int64_t queries = 0;
  std::int64_t later_keys = 0;
};

bool reads_behind_itself(const KeyLists& lists, std::int64_t query) {
  return std::any_of(lists.begin(), lists.end(),
                     [&](const auto& keys) { return !keys.empty() && keys.back() > query; });
}

Difference difference_of(const Plan& plan, std::int64_t head, std::int64_t last) {
  const std::vector<KeyLists> before = key_lists(plan, 0, head, last);
  const std::vector<KeyLists> after = key_lists(plan, 1, head, last);
  Difference difference;
  for (std::size_t query = 0; query < before.size(); ++query) {
    if (before[query] != after[query]) ++difference.queries;
    const auto position = static_cast<std::int64_t>(query);
    if (reads_behind_itself(before[query], position) || reads_behind_itself(after[query], position)) {
      ++difference.later_keys;
    }
  }
  return difference;
}

}  // namespace

std::vector<KeyLists> key_lists(const Plan& plan, std::int64_t sequence, std::int64_t head, std::int64_t last) {
  require<InputError>(
      sequence >= 0 && sequence < plan.batch && head >= 0 && head < plan.heads && last >= 0 && last < plan.num_queries,
      "key lists: sequence ", sequence, ", head ", head, ", query ", last, " asked for, but there are ", plan.batch,
      " sequences, ", plan.heads, " heads and ", plan.num_queries, " queries");
  const auto views = shared_views(plan);
  const auto* const offsets = plan.query_index.offsets.data_ptr<std::int64_t>();
  const auto* const groups = plan.query_index.group.data_ptr<std::int64_t>();
  const auto* const ranks = plan.query_index.rank.data_ptr<std::int32_t>();
  const auto* const positions = plan.key_order.data_ptr<std::int32_t>();
  const std::int64_t first_row = (sequence * plan.heads + head) * plan.num_queries;
  std::vector<KeyLists> result(static_cast<std::size_t>(last) + 1);
  for (std::int64_t query = 0; query <= last; ++query) {
    KeyLists& lists = result[static_cast<std::size_t>(query)];
    for (std::int64_t entry = offsets[first_row + query]; entry < offsets[first_row + query + 1]; ++entry) {
      const std::int64_t first_key = group_range(plan, groups[entry]).k_begin;
      const std::int64_t number = views->group_offsets[static_cast<std::size_t>(groups[entry])] + ranks[entry];
      const QueryView& view = views->views[static_cast<std::size_t>(number)];
      std::vector<std::int32_t>& keys = lists.emplace_back();
      for (std::int32_t rank = view.key_from; rank < view.key_to; ++rank) {
        if (views->counts(number, rank)) keys.push_back(positions[first_key + rank]);
      }
    }
    std::sort(lists.begin(), lists.end());
  }
  return result;
}

std::vector<PlanLeak> first_plan_leaks(std::span<const BlockState> states, std::span<const AttentionConfig> layers,
                                       std::int64_t last) {
  require<InputError>(states.size() == layers.size(), "plan leaks: states of ", states.size(), " layers, but ",
                      layers.size(), " configurations");
  std::vector<PlanLeak> leaks;
  for (std::size_t layer = 0; layer < states.size() && leaks.empty(); ++layer) {
    std::int64_t first_head = 0;
    for (std::size_t group = 0; group < states[layer].self.plans.size(); ++group) {
      const Plan& plan = states[layer].self.plans[group];
      for (std::int64_t head = 0; head < plan.heads; ++head) {
        const Difference difference = difference_of(plan, head, last);
        if (difference.queries + difference.later_keys == 0) continue;
        leaks.push_back({.layer = static_cast<std::int64_t>(layer),
                         .head = first_head + head,
                         .pattern = pattern_name(layers[layer].head_groups.at(group).pattern),
                         .queries = difference.queries,
                         .later_keys = difference.later_keys,
                         .queries_checked = last + 1});
      }
      first_head += plan.heads;
    }
  }
  return leaks;
}

}  // namespace routing
