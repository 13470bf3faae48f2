#include "routing/ops/attend/plan.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/ops/attend/visibility.h"

#include <string>
#include <vector>

namespace routing {
namespace {

constexpr std::int64_t kGroupsPerChunk = 64;
constexpr std::int64_t kRowsPerChunk = 4096;

void check_tensor(const at::Tensor& tensor, const char* name, at::ScalarType type, std::int64_t dims) {
  require<InputError>(tensor.defined(), "plan: ", name, " is missing");
  require<InputError>(tensor.device().is_cpu(), "plan: ", name, " is on ", tensor.device().str(),
                      ", but plans live on the CPU");
  require<InputError>(tensor.scalar_type() == type, "plan: ", name, " holds ", tensor.scalar_type(), ", but must hold ",
                      type);
  require<InputError>(tensor.dim() == dims, "plan: ", name, " has ", tensor.dim(), " dimensions, but must have ", dims);
  require<InputError>(tensor.is_contiguous(), "plan: ", name, " is not contiguous");
}

// Positions that members may have.
struct RowRange {
  std::int64_t origin, tokens;
};

// Keys that stand elsewhere than at their positions: those must not be later than the sequence, and rows must be there.
void check_key_rows(const Plan& plan) {
  if (!plan.key_rows.defined()) return;
  check_tensor(plan.key_rows, "key_rows", at::kInt, 1);
  require<InputError>(plan.key_origin == 0 && plan.key_rows.size(0) == plan.key_order.size(0), "plan: key_rows names ",
                      plan.key_rows.size(0), " rows for ", plan.key_order.size(0),
                      " keys, and rows of keys begin at position ", plan.key_origin,
                      "; name one for each key, and let key_origin be 0");
  const auto* rows = plan.key_rows.data_ptr<std::int32_t>();
  for (std::int64_t place = 0; place < plan.key_rows.size(0); ++place) {
    require<InputError>(rows[place] >= 0 && rows[place] < plan.num_keys, "plan: key ", place, " stands in row ",
                        rows[place], ", but there are ", plan.num_keys, " rows of keys");
  }
}

// Members of one group: inside the list, inside the sequence, sorted by time, none twice.
void check_members(const at::Tensor& order, std::int64_t begin, std::int64_t end, RowRange rows, std::int64_t group) {
  const auto [origin, tokens] = rows;
  require<InputError>(begin >= 0 && begin <= end && end <= order.size(0), "plan: group ", group, " covers ", begin,
                      " to ", end, " of a list of ", order.size(0), " members");
  const auto* positions = order.data_ptr<std::int32_t>();
  if (begin == end) return;
  // Ascending lists are inside the sequence if their ends are. The loop below only finds out what is wrong.
  bool ascending = true;
  for (std::int64_t place = begin + 1; place < end; ++place) ascending &= positions[place - 1] < positions[place];
  if (ascending && positions[begin] >= origin && positions[end - 1] < origin + tokens) return;
  for (std::int64_t place = begin; place < end; ++place) {
    require<InputError>(positions[place] >= origin && positions[place] < origin + tokens, "plan: group ", group,
                        " holds position ", positions[place], ", but the sequence has ", tokens, " tokens",
                        origin == 0 ? "" : " from position " + std::to_string(origin) + " on");
    require<InputError>(place == begin || positions[place - 1] < positions[place], "plan: group ", group,
                        " holds position ", positions[place == begin ? place : place - 1], " before ", positions[place],
                        "; members must be sorted by time, each once");
  }
}

// The index must be the one index_members would make; it comes from outside when the operator is called by name, and
// wrong numbers would read past the lists.
void check_index(const Plan& plan) {
  const MemberIndex& index = plan.query_index;
  check_tensor(index.offsets, "member_offsets", at::kLong, 1);
  check_tensor(index.group, "member_group", at::kLong, 1);
  check_tensor(index.rank, "member_rank", at::kInt, 1);
  const std::int64_t rows = plan.num_units() * plan.num_queries;
  std::int64_t entries = 0;
  for (std::int64_t group = 0; group < plan.num_groups(); ++group) entries += group_range(plan, group).num_queries();
  require<InputError>(
      index.offsets.size(0) == rows + 1 && index.group.size(0) == entries && index.rank.size(0) == entries,
      "plan: the index has ", index.offsets.size(0), " offsets, ", index.group.size(0), " groups and ",
      index.rank.size(0), " ranks, but ", rows, " rows with ", entries, " memberships need ", rows + 1, ", ", entries,
      " and ", entries);
  const auto* offsets = index.offsets.data_ptr<std::int64_t>();
  const auto* group_of = index.group.data_ptr<std::int64_t>();
  const auto* rank_of = index.rank.data_ptr<std::int32_t>();
  const auto* unit_offsets = plan.unit_offsets.data_ptr<std::int64_t>();
  const auto* positions = plan.query_order.data_ptr<std::int32_t>();
  require<InputError>(offsets[0] == 0 && offsets[rows] == entries, "plan: member_offsets covers ", offsets[0], " to ",
                      offsets[rows], ", but there are ", entries, " memberships");
  parallel_for(0, rows, kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t unit = row / plan.num_queries;
      require<InputError>(offsets[row] >= 0 && offsets[row] <= offsets[row + 1] && offsets[row + 1] <= entries,
                          "plan: member_offsets goes from ", offsets[row], " to ", offsets[row + 1], " at row ", row);
      for (std::int64_t entry = offsets[row]; entry < offsets[row + 1]; ++entry) {
        const std::int64_t group = group_of[entry];
        const bool of_unit = group >= unit_offsets[unit] && group < unit_offsets[unit + 1];
        require<InputError>(entry == offsets[row] || group_of[entry - 1] < group, "plan: the index names group ", group,
                            " of row ", row, " after group ", group_of[entry > 0 ? entry - 1 : 0],
                            "; a token's groups must ascend, each once");
        const bool of_group = of_unit && rank_of[entry] >= 0 && rank_of[entry] < group_range(plan, group).num_queries();
        require<InputError>(of_group && positions[group_range(plan, group).q_begin + rank_of[entry]] ==
                                            row % plan.num_queries + plan.query_origin,
                            "plan: the index says that row ", row, " is member ", rank_of[entry], " of group ", group,
                            ", but it is not; make the index with index_members");
      }
    }
  });
}

// Tensors of inference mode count no versions.
std::int64_t version_of(const at::Tensor& tensor) {
  return !tensor.defined() || tensor.is_inference() ? 0 : static_cast<std::int64_t>(tensor._version());
}

}  // namespace

MemberIndex index_members(const Plan& plan, Side side) {
  const bool queries = side == Side::queries;
  const std::int64_t tokens = queries ? plan.num_queries : plan.num_keys;
  const std::int64_t origin = queries ? plan.query_origin : plan.key_origin;
  const at::Tensor& named = queries ? plan.query_order : plan.key_rows.defined() ? plan.key_rows : plan.key_order;
  const auto* positions = named.data_ptr<std::int32_t>();
  const auto* unit_offsets = plan.unit_offsets.data_ptr<std::int64_t>();
  const std::int64_t units = plan.num_units();
  const auto for_each_member = [&](std::int64_t unit, const auto& visit) {
    for (std::int64_t group = unit_offsets[unit]; group < unit_offsets[unit + 1]; ++group) {
      const GroupRange range = group_range(plan, group);
      const std::int64_t begin = queries ? range.q_begin : range.k_begin;
      const std::int64_t end = queries ? range.q_end : range.k_end;
      for (std::int64_t place = begin; place < end; ++place) {
        visit(unit * tokens + positions[place] - origin, group, static_cast<std::int32_t>(place - begin));
      }
    }
  };

  MemberIndex index;
  index.offsets = at::zeros({units * tokens + 1}, at::kLong);
  auto* offsets = index.offsets.data_ptr<std::int64_t>();
  parallel_for(0, units, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      for_each_member(unit, [&](std::int64_t row, std::int64_t, std::int32_t) { ++offsets[row + 1]; });
    }
  });
  for (std::int64_t row = 0; row < units * tokens; ++row) offsets[row + 1] += offsets[row];

  const std::int64_t entries = offsets[units * tokens];
  index.group = at::empty({entries}, at::kLong);
  index.rank = at::empty({entries}, at::kInt);
  auto* group_of = index.group.data_ptr<std::int64_t>();
  auto* rank_of = index.rank.data_ptr<std::int32_t>();
  std::vector<std::int64_t> next(offsets, offsets + units * tokens);
  parallel_for(0, units, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      for_each_member(unit, [&](std::int64_t row, std::int64_t group, std::int32_t rank) {
        const std::int64_t entry = next[static_cast<std::size_t>(row)]++;
        group_of[entry] = group;
        rank_of[entry] = rank;
      });
    }
  });
  return index;
}

void check_plan_lists(const Plan& plan) {
  require<InputError>(plan.batch >= 0 && plan.heads >= 0 && plan.num_queries >= 0 && plan.num_keys >= 0,
                      "plan: negative size in batch ", plan.batch, ", heads ", plan.heads, ", queries ",
                      plan.num_queries, ", keys ", plan.num_keys);
  require<InputError>(plan.query_origin >= 0 && plan.key_origin >= 0, "plan: rows begin at position ",
                      plan.query_origin, " of queries and ", plan.key_origin, " of keys, but no position is below 0");
  check_tensor(plan.query_order, "query_order", at::kInt, 1);
  check_tensor(plan.key_order, "key_order", at::kInt, 1);
  check_key_rows(plan);
  check_tensor(plan.groups, "groups", at::kLong, 2);
  check_tensor(plan.unit_offsets, "unit_offsets", at::kLong, 1);
  require<InputError>(plan.groups.size(1) == 4, "plan: groups has ", plan.groups.size(1),
                      " numbers per group, but must have 4");
  require<InputError>(plan.unit_offsets.size(0) == plan.num_units() + 1, "plan: unit_offsets has ",
                      plan.unit_offsets.size(0), " entries, but ", plan.batch, " sequences of ", plan.heads,
                      " heads need ", plan.num_units() + 1);
  const auto* offsets = plan.unit_offsets.data_ptr<std::int64_t>();
  for (std::int64_t unit = 0; unit < plan.num_units(); ++unit) {
    require<InputError>(offsets[unit] <= offsets[unit + 1], "plan: unit_offsets falls from ", offsets[unit], " to ",
                        offsets[unit + 1]);
  }
  require<InputError>(offsets[0] == 0 && offsets[plan.num_units()] == plan.num_groups(), "plan: unit_offsets covers ",
                      offsets[0], " to ", offsets[plan.num_units()], ", but there are ", plan.num_groups(), " groups");
  require<InputError>(plan.rules.lookback.value_or(0) >= 0 && plan.rules.lookahead.value_or(0) >= 0, "plan: lookback ",
                      plan.rules.lookback.value_or(0), " and lookahead ", plan.rules.lookahead.value_or(0),
                      " must not be below 0");
  parallel_for(0, plan.num_groups(), kGroupsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t group = first; group < last; ++group) {
      const GroupRange range = group_range(plan, group);
      check_members(plan.query_order, range.q_begin, range.q_end, {plan.query_origin, plan.num_queries}, group);
      const RowRange keys = plan.key_rows.defined() ? RowRange{0, plan.query_origin + plan.num_queries}
                                                    : RowRange{plan.key_origin, plan.num_keys};
      const bool same_members = !plan.key_rows.defined() && plan.key_order.is_same(plan.query_order) &&
                                range.q_begin == range.k_begin && range.q_end == range.k_end &&
                                plan.num_queries == plan.num_keys && plan.query_origin == plan.key_origin;
      if (!same_members) {
        check_members(plan.key_order, range.k_begin, range.k_end, keys, group);
      }
    }
  });
}

void check_plan(const Plan& plan) {
  if (plan.seal && plan.seal->covers(plan)) return;
  check_plan_lists(plan);
  check_index(plan);
}

Plan complete_plan(Plan plan) {
  check_plan_lists(plan);
  plan.query_index = index_members(plan, Side::queries);
  plan.seal.reset();
  plan.seal = std::shared_ptr<const PlanSeal>(new PlanSeal(plan));
  return plan;
}

std::array<const at::Tensor*, PlanSeal::kTensors> PlanSeal::tensors_of(const Plan& plan) {
  return {&plan.query_order,         &plan.key_order,         &plan.groups,           &plan.unit_offsets,
          &plan.query_index.offsets, &plan.query_index.group, &plan.query_index.rank, &plan.key_rows};
}

PlanSeal::PlanSeal(const Plan& plan) : plan_(plan) {
  const auto tensors = tensors_of(plan_);
  for (std::size_t i = 0; i < kTensors; ++i) versions_.at(i) = version_of(*tensors.at(i));
}

bool PlanSeal::covers(const Plan& plan) const {
  const auto own = tensors_of(plan_);
  const auto given = tensors_of(plan);
  for (std::size_t i = 0; i < kTensors; ++i) {
    if (!given.at(i)->is_same(*own.at(i)) || version_of(*own.at(i)) != versions_.at(i)) return false;
  }
  return plan.batch == plan_.batch && plan.heads == plan_.heads && plan.num_queries == plan_.num_queries &&
         plan.num_keys == plan_.num_keys && plan.rules == plan_.rules && plan.query_origin == plan_.query_origin &&
         plan.key_origin == plan_.key_origin;
}

const std::shared_ptr<const PlanViews>& PlanSeal::views() const {
  std::call_once(viewed_, [this] { views_ = std::make_shared<const PlanViews>(view_plan(plan_)); });
  return views_;
}

}  // namespace routing
