#include "routing/kernels/attend/attend_driver.h"

#include "routing/kernels/dispatch/isa.h"

#include <algorithm>

namespace routing::kernels {

// Below the levels with bfloat16 instructions there is nothing to gain by rounding.
bool attend_rounds_to_bfloat16() {
  return includes(active_isa(), Isa::avx512_bf16);
}

AttendLoops attend_loops_in_force(bool bf16) {
#if defined(__x86_64__)
  switch (active_isa()) {
    case Isa::amx:
      if (bf16) return attend_loops_amx();
      return attend_loops_avx512();
    case Isa::avx512_bf16:
      if (bf16) return attend_loops_avx512_bf16();
      return attend_loops_avx512();
    case Isa::avx512:
      return attend_loops_avx512();
    case Isa::avx2:
      return attend_loops_avx2();
    case Isa::generic:
      break;
  }
#endif
  return attend_loops_generic();
}

float* attend_scratch(const AttendLoops& loops, const AttendRules& rules) {
  const bool tables = rules.relative_key != nullptr || rules.relative_value != nullptr;
  thread_local AlignedFloats memory;
  return memory.at_least(loops.scratch_size(rules.dim, rules.value_dim, tables ? rules.max_relative : -1));
}

PackedTables::PackedTables(const AttendRules& rules)
    : contents_(std::make_shared<const Contents>(rules, attend_loops_in_force(rules.bf16))) {}

Block Blocks::block(const BlockNumber& number) const {
  const auto [unit, group, index] = number;
  const AttendPlan& plan = problem_.plan;
  const AttendRules& rules = problem_.rules;
  const std::int64_t* range = plan.groups + group * 4;
  Block block;
  block.dim = rules.dim;
  block.value_dim = rules.value_dim;
  block.scale = static_cast<float>(rules.scale);
  if (problem_.q_halves.data != nullptr) {
    block.q_halves = query_rows(problem_.q_halves, plan, unit);
    block.q_stride = problem_.q_halves.row_stride;
  } else {
    block.q = query_rows(problem_.q, plan, unit);
    block.q_stride = problem_.q.row_stride;
  }
  if (problem_.k_halves.data != nullptr) {
    block.k_halves = key_rows(problem_.k_halves, plan, unit);
    block.v_halves = key_rows(problem_.v_halves, plan, unit);
    block.k_stride = problem_.k_halves.row_stride;
    block.v_stride = problem_.v_halves.row_stride;
  } else {
    block.k = key_rows(problem_.k, plan, unit);
    block.v = key_rows(problem_.v, plan, unit);
    block.k_stride = problem_.k.row_stride;
    block.v_stride = problem_.v.row_stride;
  }
  block.num_queries = std::min(lanes_, range[1] - range[0] - index * lanes_);
  block.query_positions = plan.query_order + range[0] + index * lanes_;
  block.key_positions = plan.key_order + range[2];
  block.key_rows = plan.key_rows == nullptr ? block.key_positions : plan.key_rows + range[2];
  if (plan.query_origins != nullptr) block.query_origin = plan.query_origins[unit];
  block.num_keys = range[3] - range[2];
  block.views = plan.views + first_entry(group, index);
  block.repeats = plan.repeats;
  if (block.repeats.any()) block.repeats.first_word += first_entry(group, index);
  block.relative_by_rank = rules.relative == RelativePosition::rank;
  block.max_relative = rules.max_relative;
  block.key_table = tables_->key.table();
  block.value_table = tables_->value.table();
  if (rules.recency_slopes != nullptr) block.slope = rules.recency_slopes[unit % plan.heads];
  if (rules.dropout > 0.0) {
    block.dropout = true;
    block.dropout_key = rules.dropout_unit_keys[unit];
    block.group_in_unit = static_cast<std::uint32_t>(group - plan.unit_offsets[unit]);
    block.drop_below = static_cast<std::uint32_t>(rules.dropout * 0x1.0p32);
    block.keep_factor = static_cast<float>(1.0 / (1.0 - rules.dropout));
  }
  return block;
}

bool one_group_per_token(const AttendPlan& plan) {
  const std::int64_t rows = plan.batch * plan.heads * plan.num_queries;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (plan.member_offsets[row + 1] - plan.member_offsets[row] > 1) return false;
  }
  return true;
}

float mean_weight(const AttendProblem& problem, std::int64_t row) {
  const AttendPlan& plan = problem.plan;
  std::int64_t groups = 0;
  for (std::int64_t member = plan.member_offsets[row]; member < plan.member_offsets[row + 1]; ++member) {
    if (!plan.views[entry_of(plan, member)].sees_nothing()) ++groups;
  }
  return groups == 0 ? 0.0F : static_cast<float>(1.0 / (static_cast<double>(groups) + problem.rules.merge_eps));
}

}  // namespace routing::kernels
