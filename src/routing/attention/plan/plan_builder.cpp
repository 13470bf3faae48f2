#include "routing/attention/plan/plan_builder.h"

#include <algorithm>

namespace routing {
namespace {

template <class Value>
at::Tensor copied(const std::vector<Value>& values, at::ScalarType type) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, type);
  std::copy(values.begin(), values.end(), tensor.data_ptr<Value>());
  return tensor;
}

ListRange append(std::vector<std::int32_t>& list, std::span<const std::int32_t> positions) {
  const auto begin = static_cast<std::int64_t>(list.size());
  list.insert(list.end(), positions.begin(), positions.end());
  return {begin, static_cast<std::int64_t>(list.size())};
}

}  // namespace

PlanBuilder::PlanBuilder(const TokenLayout& layout, const VisibilityRules& rules, Lists lists)
    : plan_{.batch = layout.batch,
            .heads = layout.heads,
            .num_queries = layout.num_queries,
            .num_keys = layout.num_keys,
            .rules = rules},
      lists_(lists),
      unit_offsets_{0} {}

ListRange PlanBuilder::add_queries(std::span<const std::int32_t> positions) {
  return append(query_order_, positions);
}

ListRange PlanBuilder::add_keys(std::span<const std::int32_t> positions) {
  return append(lists_ == Lists::one ? query_order_ : key_order_, positions);
}

void PlanBuilder::add_group(ListRange queries, ListRange keys) {
  groups_.insert(groups_.end(), {queries.begin, queries.end, keys.begin, keys.end});
}

void PlanBuilder::end_unit() {
  unit_offsets_.push_back(static_cast<std::int64_t>(groups_.size() / 4));
}

Plan PlanBuilder::build() {
  plan_.query_order = copied(query_order_, at::kInt);
  plan_.key_order = lists_ == Lists::one ? plan_.query_order : copied(key_order_, at::kInt);
  plan_.groups = copied(groups_, at::kLong).view({-1, 4});
  plan_.unit_offsets = copied(unit_offsets_, at::kLong);
  return complete_plan(plan_);
}

}  // namespace routing
