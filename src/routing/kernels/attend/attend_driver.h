// What the forward and the backward driver of fused attention share. For their sources only.
#pragma once

#include "routing/kernels/attend/attend.h"
#include "routing/kernels/attend/attend_block.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace routing::kernels {

// The loops of the level in force.
AttendLoops attend_loops_in_force(bool bf16);

// Numbers on a cache line of their own.
class AlignedFloats {
 public:
  float* at_least(std::int64_t size) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t needed = static_cast<std::size_t>(size) + kAlignment / sizeof(float);
    if (memory_.size() < needed) memory_.resize(needed);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (kAlignment - address % kAlignment) % kAlignment / sizeof(float);
  }

 private:
  std::vector<float> memory_;
};

// Memory of the calling thread, kept from block to block.
float* attend_scratch(const AttendLoops& loops, const AttendRules& rules);

// One relative table the way the level reads it.
class PackedTable {
 public:
  PackedTable(const float* rows, std::int64_t dim, std::int64_t max, const AttendLoops& loops) {
    if (rows == nullptr) return;
    float* packed = numbers_.at_least(loops.table_size(max, dim));
    loops.pack_table(rows, max, dim, packed);
    table_ = {rows, packed};
  }
  const RelativeTable& table() const { return table_; }

 private:
  AlignedFloats numbers_;
  RelativeTable table_;
};

struct PackedTables::Contents {
  Contents(const AttendRules& rules, const AttendLoops& loops)
      : key(rules.relative_key, rules.dim, rules.max_relative, loops),
        value(rules.relative_value, rules.value_dim, rules.max_relative, loops) {}
  PackedTable key, value;
};

template <class Number>
Number* unit_rows(const HeadRows<Number>& rows, const AttendPlan& plan, std::int64_t unit) {
  return rows.data + unit / plan.heads * rows.batch_stride + unit % plan.heads * rows.head_stride;
}

// What of a unit is found by position: where it would begin if there were rows from position 0 on.
template <class Number>
Number* from_position_0(Number* rows, std::int64_t stride, std::int64_t origin) {
  return rows == nullptr ? nullptr : rows - origin * stride;
}
template <class Number>
Number* query_rows(const HeadRows<Number>& rows, const AttendPlan& plan, std::int64_t unit) {
  return from_position_0(unit_rows(rows, plan, unit), rows.row_stride, plan.query_origin);
}
template <class Number>
Number* key_rows(const HeadRows<Number>& rows, const AttendPlan& plan, std::int64_t unit) {
  return from_position_0(unit_rows(rows, plan, unit), rows.row_stride, plan.key_origin);
}
// Of numbers [batch, heads, queries].
template <class Number>
Number* query_numbers(Number* numbers, const AttendPlan& plan, std::int64_t unit) {
  return from_position_0(numbers, 1, plan.query_origin) + unit * plan.num_queries;
}

struct BlockNumber {
  std::int64_t unit, group, index;
};

// Blocks of one call.
class Blocks {
 public:
  Blocks(const AttendProblem& problem, const AttendLoops& loops) : problem_(problem), lanes_(loops.lanes) {
    const PackedTables* packed = problem.rules.packed_tables;
    tables_ = packed != nullptr ? &packed->contents() : &own_tables_.emplace(problem.rules, loops);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  std::int64_t in_group(std::int64_t group) const {
    const std::int64_t* range = problem_.plan.groups + group * 4;
    return (range[1] - range[0] + lanes_ - 1) / lanes_;
  }

  // Where in the plan's views the block begins.
  std::int64_t first_entry(std::int64_t group, std::int64_t index) const {
    return problem_.plan.view_offsets[group] + index * lanes_;
  }

  // All blocks of some groups of a unit, in order.
  void append(std::int64_t unit, std::int64_t first_group, std::int64_t last_group,
              std::vector<BlockNumber>& numbers) const {
    for (std::int64_t group = first_group; group < last_group; ++group) {
      for (std::int64_t index = 0; index < in_group(group); ++index) numbers.push_back({unit, group, index});
    }
  }

  Block block(const BlockNumber& number) const;

 private:
  const AttendProblem& problem_;  // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call
  std::int64_t lanes_;
  std::optional<PackedTables::Contents> own_tables_;
  const PackedTables::Contents* tables_ = nullptr;
};

// Is no query of the plan in more than one group?
bool one_group_per_token(const AttendPlan& plan);

// Where in the plan's views a membership stands.
inline std::int64_t entry_of(const AttendPlan& plan, std::int64_t member) {
  return plan.view_offsets[plan.member_group[member]] + plan.member_rank[member];
}

// Merge::mean: 1 / (groups in which the row sees a key + eps), zero for a row that sees none.
float mean_weight(const AttendProblem& problem, std::int64_t row);

}  // namespace routing::kernels
