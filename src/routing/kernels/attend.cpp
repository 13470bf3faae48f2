#include "routing/kernels/attend.h"

#include "routing/core/parallel.h"
#include "routing/kernels/attend_block.h"
#include "routing/kernels/isa.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace routing::kernels {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kMostBlocksPerChunk = 8;
constexpr std::int64_t kChunksPerThread = 4;
constexpr std::int64_t kRowsPerChunk = 512;
constexpr std::int64_t kNumbersPerChunk = 4096;

// Below the levels with bfloat16 instructions there is nothing to gain by rounding.
AttendLoops loops_in_force(bool bf16) {
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
float* thread_scratch(std::int64_t size) {
  thread_local AlignedFloats memory;
  return memory.at_least(size);
}

// A relative table the way the level reads it.
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

template <class Number>
Number* unit_rows(const HeadRows<Number>& rows, const AttendPlan& plan, std::int64_t unit) {
  return rows.data + unit / plan.heads * rows.batch_stride + unit % plan.heads * rows.head_stride;
}

// Blocks of one call.
class Blocks {
 public:
  Blocks(const AttendProblem& problem, const AttendLoops& loops)
      : problem_(problem),
        lanes_(loops.lanes),
        key_table_(problem.rules.relative_key, problem.rules.dim, problem.rules.max_relative, loops),
        value_table_(problem.rules.relative_value, problem.rules.value_dim, problem.rules.max_relative, loops) {}

  std::int64_t in_group(std::int64_t group) const {
    const std::int64_t* range = problem_.plan.groups + group * 4;
    return (range[1] - range[0] + lanes_ - 1) / lanes_;
  }

  // Where in the plan's views the block begins.
  std::int64_t first_entry(std::int64_t group, std::int64_t index) const {
    return problem_.plan.view_offsets[group] + index * lanes_;
  }

  Block block(std::int64_t unit, std::int64_t group, std::int64_t index) const {
    const AttendPlan& plan = problem_.plan;
    const AttendRules& rules = problem_.rules;
    const std::int64_t* range = plan.groups + group * 4;
    Block block;
    block.dim = rules.dim;
    block.value_dim = rules.value_dim;
    block.scale = static_cast<float>(rules.scale);
    block.q = unit_rows(problem_.q, plan, unit);
    block.k = unit_rows(problem_.k, plan, unit);
    block.v = unit_rows(problem_.v, plan, unit);
    block.q_stride = problem_.q.row_stride;
    block.k_stride = problem_.k.row_stride;
    block.v_stride = problem_.v.row_stride;
    block.num_queries = std::min(lanes_, range[1] - range[0] - index * lanes_);
    block.query_positions = plan.query_order + range[0] + index * lanes_;
    block.key_positions = plan.key_order + range[2];
    block.num_keys = range[3] - range[2];
    block.views = plan.views + first_entry(group, index);
    block.relative_by_rank = rules.relative == RelativePosition::rank;
    block.max_relative = rules.max_relative;
    block.key_table = key_table_.table();
    block.value_table = value_table_.table();
    if (rules.dropout > 0.0) {
      block.dropout = true;
      block.dropout_key = rules.dropout_unit_keys[unit];
      block.group_in_unit = static_cast<std::uint32_t>(group - plan.unit_offsets[unit]);
      block.drop_below = static_cast<std::uint32_t>(rules.dropout * 0x1.0p32);
      block.keep_factor = static_cast<float>(1.0 / (1.0 - rules.dropout));
    }
    return block;
  }

 private:
  const AttendProblem& problem_;  // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call
  std::int64_t lanes_;
  PackedTable key_table_, value_table_;
};

bool one_group_per_token(const AttendPlan& plan) {
  const std::int64_t rows = plan.batch * plan.heads * plan.num_queries;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (plan.member_offsets[row + 1] - plan.member_offsets[row] > 1) return false;
  }
  return true;
}

std::int64_t entry_of(const AttendPlan& plan, std::int64_t member) {
  return plan.view_offsets[plan.member_group[member]] + plan.member_rank[member];
}

// Merge::mean: 1 / (groups in which the row sees a key + eps), zero for a row that sees none.
float mean_weight(const AttendProblem& problem, std::int64_t row) {
  const AttendPlan& plan = problem.plan;
  std::int64_t groups = 0;
  for (std::int64_t member = plan.member_offsets[row]; member < plan.member_offsets[row + 1]; ++member) {
    if (!plan.views[entry_of(plan, member)].sees_nothing()) ++groups;
  }
  return groups == 0 ? 0.0F : static_cast<float>(1.0 / (static_cast<double>(groups) + problem.rules.merge_eps));
}

std::int64_t table_limit(const AttendRules& rules) {
  return rules.relative_key == nullptr && rules.relative_value == nullptr ? -1 : rules.max_relative;
}

struct BlockNumber {
  std::int64_t unit, group, index;
};

// One result per membership, in order of PlanViews.
struct Partial {
  std::vector<float> output, lse;
};

void merge_row(const AttendProblem& problem, const Partial& partial, std::int64_t row, float* output, float* lse) {
  const AttendPlan& plan = problem.plan;
  const std::int64_t first = plan.member_offsets[row];
  const std::int64_t last = plan.member_offsets[row + 1];
  const auto lse_of = [&](std::int64_t member) {
    return partial.lse[static_cast<std::size_t>(entry_of(plan, member))];
  };
  float largest = kMinusInfinity;
  for (std::int64_t member = first; member < last; ++member) largest = std::max(largest, lse_of(member));
  const float shift = largest == kMinusInfinity ? 0.0F : largest;
  float total = 0.0F;
  for (std::int64_t member = first; member < last; ++member) total += std::exp(lse_of(member) - shift);
  *lse = total == 0.0F ? kMinusInfinity : shift + std::log(total);

  const std::int64_t dim = problem.rules.value_dim;
  const float mean = problem.rules.merge == Merge::mean ? mean_weight(problem, row) : 0.0F;
  std::fill(output, output + dim, 0.0F);
  if (total == 0.0F) return;
  for (std::int64_t member = first; member < last; ++member) {
    const float weight = problem.rules.merge == Merge::mean ? mean : std::exp(lse_of(member) - shift) / total;
    const float* from = partial.output.data() + entry_of(plan, member) * dim;
    for (std::int64_t e = 0; e < dim; ++e) output[e] += weight * from[e];
  }
}

template <class Visit>
void for_each_row(const AttendProblem& problem, const HeadRows<float>& output, const Visit& visit) {
  const AttendPlan& plan = problem.plan;
  const std::int64_t rows = plan.batch * plan.heads * plan.num_queries;
  parallel_for(0, rows, kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      visit(row, unit_rows(output, plan, row / plan.num_queries) + row % plan.num_queries * output.row_stride);
    }
  });
}

void clear_unwritten(const GradientRows& rows, std::int64_t count, std::int64_t dim) {
  for (std::int64_t position = 0; position < count; ++position) {
    if (rows.written[position] == 0) std::fill_n(rows.base + position * rows.stride, dim, 0.0F);
  }
}

// Parts of a sum that different threads made, added in their order.
void add_parts(const std::vector<float>& parts, std::int64_t size, float* total) {
  if (size == 0) return;
  const std::int64_t num_parts = static_cast<std::int64_t>(parts.size()) / size;
  parallel_for(0, size, kNumbersPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = 0; part < num_parts; ++part) {
      const float* from = parts.data() + part * size;
      for (std::int64_t n = first; n < last; ++n) total[n] += from[n];
    }
  });
}

}  // namespace

void attend_forward(const AttendProblem& problem, const HeadRows<float>& output, float* lse) {
  const AttendPlan& plan = problem.plan;
  const AttendRules& rules = problem.rules;
  const AttendLoops loops = loops_in_force(rules.bf16);
  const Blocks blocks(problem, loops);
  const std::int64_t units = plan.batch * plan.heads;
  std::vector<BlockNumber> numbers;
  for (std::int64_t unit = 0; unit < units; ++unit) {
    for (std::int64_t group = plan.unit_offsets[unit]; group < plan.unit_offsets[unit + 1]; ++group) {
      for (std::int64_t index = 0; index < blocks.in_group(group); ++index) numbers.push_back({unit, group, index});
    }
  }
  const bool merged_in_place = one_group_per_token(plan);
  Partial partial;
  if (!merged_in_place) {
    const std::int64_t entries = plan.view_offsets[plan.unit_offsets[units]];
    partial.output.resize(static_cast<std::size_t>(entries * rules.value_dim));
    partial.lse.resize(static_cast<std::size_t>(entries));
  }
  const double one_group_weight = rules.merge == Merge::mean ? 1.0 / (1.0 + rules.merge_eps) : 1.0;
  const std::int64_t scratch_size = loops.scratch_size(rules.dim, rules.value_dim, table_limit(rules));
  // Neighbouring blocks share keys, but every thread needs something to do.
  const auto num_blocks = static_cast<std::int64_t>(numbers.size());
  const std::int64_t grain =
      std::clamp<std::int64_t>(num_blocks / (kChunksPerThread * num_threads()), 1, kMostBlocksPerChunk);
  parallel_for(0, num_blocks, grain, [&](std::int64_t first, std::int64_t last) {
    float* scratch = thread_scratch(scratch_size);
    std::int64_t previous_group = -1;
    for (std::int64_t n = first; n < last; ++n) {
      const auto [unit, group, index] = numbers[static_cast<std::size_t>(n)];
      BlockResult result;
      if (merged_in_place) {
        result = {unit_rows(output, plan, unit), lse + unit * plan.num_queries, output.row_stride, true,
                  static_cast<float>(one_group_weight)};
      } else {
        const std::int64_t entry = blocks.first_entry(group, index);
        result = {partial.output.data() + entry * rules.value_dim, partial.lse.data() + entry, rules.value_dim, false,
                  1.0F};
      }
      Block block = blocks.block(unit, group, index);
      block.first_of_run = group != previous_group;
      previous_group = group;
      loops.forward(block, result, scratch);
    }
  });
  for_each_row(problem, output, [&](std::int64_t row, float* to) {
    if (!merged_in_place) {
      merge_row(problem, partial, row, to, lse + row);
    } else if (plan.member_offsets[row] == plan.member_offsets[row + 1]) {
      std::fill(to, to + rules.value_dim, 0.0F);
      lse[row] = kMinusInfinity;
    }
  });
}

void attend_backward(const AttendProblem& problem, const AttendBackward& call) {
  const AttendPlan& plan = problem.plan;
  const AttendRules& rules = problem.rules;
  const AttendLoops loops = loops_in_force(rules.bf16);
  const Blocks blocks(problem, loops);
  const std::int64_t units = plan.batch * plan.heads;
  const std::int64_t table_rows = 2 * rules.max_relative + 1;
  const std::int64_t key_size = call.d_relative_key != nullptr ? table_rows * rules.dim : 0;
  const std::int64_t value_size = call.d_relative_value != nullptr ? table_rows * rules.value_dim : 0;
  std::vector<float> key_parts(static_cast<std::size_t>(units * key_size));
  std::vector<float> value_parts(static_cast<std::size_t>(units * value_size));
  std::vector<float> weights;
  if (rules.merge == Merge::mean) {
    weights.resize(static_cast<std::size_t>(units * plan.num_queries));
    parallel_for(0, units * plan.num_queries, kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        weights[static_cast<std::size_t>(row)] = mean_weight(problem, row);
      }
    });
  }
  const bool own_softmax = rules.merge == Merge::mean && !one_group_per_token(plan);
  const std::int64_t scratch_size = loops.scratch_size(rules.dim, rules.value_dim, table_limit(rules));
  parallel_for(0, units, 1, [&](std::int64_t unit, std::int64_t /*last*/) {
    float* scratch = thread_scratch(scratch_size);
    BlockGradient gradient;
    gradient.output = unit_rows(call.output, plan, unit);
    gradient.output_stride = call.output.row_stride;
    gradient.d_output = unit_rows(call.d_output, plan, unit);
    gradient.d_output_stride = call.d_output.row_stride;
    gradient.lse = call.lse + unit * plan.num_queries;
    gradient.d_lse = call.d_lse + unit * plan.num_queries;
    gradient.output_weight = weights.empty() ? nullptr : weights.data() + unit * plan.num_queries;
    gradient.own_softmax = own_softmax;
    std::vector<std::uint8_t> written(static_cast<std::size_t>(plan.num_queries + 2 * plan.num_keys));
    gradient.dq = {unit_rows(call.dq, plan, unit), call.dq.row_stride, written.data()};
    gradient.dk = {unit_rows(call.dk, plan, unit), call.dk.row_stride, written.data() + plan.num_queries};
    gradient.dv = {unit_rows(call.dv, plan, unit), call.dv.row_stride, gradient.dk.written + plan.num_keys};
    if (call.dk.data == call.dq.data) gradient.dk = gradient.dq;
    if (key_size > 0) gradient.d_key_table = key_parts.data() + unit * key_size;
    if (value_size > 0) gradient.d_value_table = value_parts.data() + unit * value_size;
    for (std::int64_t group = plan.unit_offsets[unit]; group < plan.unit_offsets[unit + 1]; ++group) {
      for (std::int64_t index = 0; index < blocks.in_group(group); ++index) {
        Block block = blocks.block(unit, group, index);
        block.first_of_run = index == 0;
        block.last_of_run = index == blocks.in_group(group) - 1;
        loops.backward(block, gradient, scratch);
      }
    }
    clear_unwritten(gradient.dq, plan.num_queries, rules.dim);
    clear_unwritten(gradient.dk, plan.num_keys, rules.dim);
    clear_unwritten(gradient.dv, plan.num_keys, rules.value_dim);
  });
  add_parts(key_parts, key_size, call.d_relative_key);
  add_parts(value_parts, value_size, call.d_relative_value);
}

}  // namespace routing::kernels
