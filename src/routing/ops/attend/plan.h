// A plan: which keys may each query read? The sets S_i of the paper's section 4, as flat tensors and five rules.
// Patterns make plans, attend() attends over them; nothing else knows about sparsity.
//
// The answer for `batch` sequences and `heads` heads is a list of groups. A unit is one
// (sequence, head); unit u = sequence * heads + head owns groups unit_offsets[u] … unit_offsets[u + 1] - 1. A group's
// queries and keys are ranges of the two order lists. Ranges may overlap: heads with the same pattern share one list,
// and the blocks of block-local attention share their keys.
//
// Inside a group, query i stands at its own place p = (keys of the group at positions <= i), counted in the group's key
// list. It sees the keys of rank r with
//
//   p - lookback <= r < p + lookahead    (either bound is absent when the value is)
//   position(r) <= i                     (when causal: true positions, never ranks)
//
// so that what a query sees is always one interval of ranks, less itself under SelfRule::only_if_alone…. Under
// RepeatRule::once a key that lies in the intervals of several groups of the query counts in the first of them only.
#pragma once

#include "routing/config/attention_rules.h"

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace routing {

// Where each token of each unit appears: row = unit * tokens + position owns entries offsets[row] … offsets[row + 1] -
// 1, ordered by group, `position` counted from the plan's query_origin. Token `row` is member number rank[e] (from the
// start of its group's range) of group[e].
struct MemberIndex {
  at::Tensor offsets = {};  // int64 [units * tokens + 1]
  at::Tensor group = {};    // int64 [entries], numbered over the whole plan
  at::Tensor rank = {};     // int32 [entries]
};

struct VisibilityRules {
  std::optional<std::int64_t> lookback = std::nullopt;
  std::optional<std::int64_t> lookahead = std::nullopt;
  bool causal = true;
  SelfRule self = SelfRule::allowed;
  RepeatRule repeats = RepeatRule::every_time;

  friend bool operator==(const VisibilityRules&, const VisibilityRules&) = default;
};

class PlanSeal;
struct PlanViews;

// All tensors live on the CPU and are contiguous. complete_plan() makes a checked plan of the lists and rules alone.
struct Plan {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t num_queries = 0;
  std::int64_t num_keys = 0;
  at::Tensor query_order = {};   // int32: token positions, ascending inside every group
  at::Tensor key_order = {};     // int32; the same tensor as query_order where both have the same members
  at::Tensor groups = {};        // int64 [groups, 4]: q_begin q_end k_begin k_end
  at::Tensor unit_offsets = {};  // int64 [batch * heads + 1]
  MemberIndex query_index = {};
  VisibilityRules rules = {};
  // Row r of q and of the output is that of position r + query_origin, row r of k and v that of position r +
  // key_origin: not 0 where the positions before have no rows here (attention/pieces).
  std::int64_t query_origin = 0;
  std::int64_t key_origin = 0;
  // Where keys stand in k and v in another order than that of their positions: row key_rows[x] of their unit is that of
  // key_order[x], int32, and key_origin is 0. Undefined means that rows follow positions.
  at::Tensor key_rows = {};
  std::shared_ptr<const PlanSeal> seal = {};  // of complete_plan; absent for plans from elsewhere
  // Where tokens choose among the groups of their unit, as routed ones do: int32 [batch, heads, tokens], the number of
  // the group that fits best, -1 for padding. attend() does not look at it.
  at::Tensor query_choice = {};
  at::Tensor key_choice = {};  // undefined where keys are the queries

  std::int64_t num_units() const { return batch * heads; }
  std::int64_t num_groups() const { return groups.size(0); }

  // For oracles and pictures of short sequences, by plain loops from the definition:
  // c_ij = in how many groups key j counts for query i; int32 [batch, heads, queries, keys].
  at::Tensor to_dense_counts() const;
  // The same, each group of one unit by itself; bool [groups of the unit, queries, keys].
  at::Tensor to_dense_masks(std::int64_t sequence, std::int64_t head) const;
};

// Equal lists, groups and rules, bit for bit.
bool operator==(const Plan& a, const Plan& b);

// One group's four numbers, as read from Plan::groups.
struct GroupRange {
  std::int64_t q_begin, q_end, k_begin, k_end;
  std::int64_t num_queries() const { return q_end - q_begin; }
  std::int64_t num_keys() const { return k_end - k_begin; }
};

inline GroupRange group_range(const Plan& plan, std::int64_t group) {
  const auto* four = plan.groups.data_ptr<std::int64_t>() + group * 4;
  return {four[0], four[1], four[2], four[3]};
}

enum class Side { queries, keys };

// The inverse index of one side, in O(entries + rows) by counting.
MemberIndex index_members(const Plan& plan, Side side);

// Throws an InputError if the tensors do not form a plan: wrong types, ranges outside the lists, positions outside the
// sequence or not strictly ascending inside a group, offsets that do not cover the groups, negative windows.
void check_plan_lists(const Plan& plan);

// The same, and the index must be that of the lists. Nothing is looked at again where the plan's seal covers it.
void check_plan(const Plan& plan);

// The plan of these lists and rules: checked, with the index of its queries, and sealed.
Plan complete_plan(Plan plan);

// The proof that tensors form a plan, which only complete_plan can give, and what is worked out once per plan. Copies
// of a plan share it. It covers nothing but the very tensors it was made for, as long as no operation writes to them.
class PlanSeal {
 public:
  bool covers(const Plan& plan) const;
  // What view_plan says of the sealed plan; computed at the first call.
  const std::shared_ptr<const PlanViews>& views() const;

 private:
  friend Plan complete_plan(Plan plan);
  explicit PlanSeal(const Plan& plan);
  static constexpr std::size_t kTensors = 8;
  static std::array<const at::Tensor*, kTensors> tensors_of(const Plan& plan);

  Plan plan_;
  std::array<std::int64_t, kTensors> versions_{};
  mutable std::once_flag viewed_;
  mutable std::shared_ptr<const PlanViews> views_;
};

}  // namespace routing
