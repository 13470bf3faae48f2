// Collects lists and groups unit by unit and makes a plan of them.
#pragma once

#include "routing/attention/plan/token_layout.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// A range of one of the two order lists.
struct ListRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class PlanBuilder {
 public:
  // One list for queries and keys, or one each.
  enum class Lists { one, two };

  PlanBuilder(const TokenLayout& layout, const VisibilityRules& rules, Lists lists);

  // Appends positions, ascending, and says where they went. With one list both append to it.
  ListRange add_queries(std::span<const std::int32_t> positions);
  ListRange add_keys(std::span<const std::int32_t> positions);

  // Units are visited in order, sequence after sequence and head after head; groups go to the current one.
  void add_group(ListRange queries, ListRange keys);
  void end_unit();

  Plan build();

 private:
  Plan plan_;
  Lists lists_;
  std::vector<std::int32_t> query_order_;
  std::vector<std::int32_t> key_order_;
  std::vector<std::int64_t> groups_;
  std::vector<std::int64_t> unit_offsets_;
};

}  // namespace routing
