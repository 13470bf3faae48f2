#include "routing/kernels/attend/attend.h"

#include "routing/core/block_pool.h"
#include "routing/core/parallel.h"
#include "routing/kernels/attend/attend_driver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace routing::kernels {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kMostBlocksPerChunk = 8;
constexpr std::int64_t kChunksPerThread = 4;
constexpr std::int64_t kRowsPerChunk = 512;

// Results of the memberships of tokens in several groups, in order of PlanViews. Other places are never touched.
class Parts {
 public:
  Parts(std::int64_t entries, std::int64_t dim)
      : dim_(dim),
        memory_(block_pool().take(static_cast<std::size_t>(entries * (dim + 1)) * sizeof(float))),
        lse_(static_cast<float*>(memory_) + entries * dim) {}
  ~Parts() { block_pool().give_back(memory_); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  float* output(std::int64_t entry) const { return static_cast<float*>(memory_) + entry * dim_; }
  float* lse(std::int64_t entry) const { return lse_ + entry; }

 private:
  std::int64_t dim_;
  void* memory_;
  float* lse_;
};

void merge_row(const AttendProblem& problem, const Parts& parts, std::int64_t row, float* output, float* lse) {
  const AttendPlan& plan = problem.plan;
  const std::int64_t first = plan.member_offsets[row];
  const std::int64_t last = plan.member_offsets[row + 1];
  const auto lse_of = [&](std::int64_t member) { return *parts.lse(entry_of(plan, member)); };
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
    const float* from = parts.output(entry_of(plan, member));
    for (std::int64_t e = 0; e < dim; ++e) output[e] += weight * from[e];
  }
}

// For every row, is its token in several groups?
std::vector<std::uint8_t> rows_in_parts(const AttendPlan& plan) {
  const std::int64_t rows = plan.batch * plan.heads * plan.num_queries;
  std::vector<std::uint8_t> several(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    several[static_cast<std::size_t>(row)] = plan.member_offsets[row + 1] - plan.member_offsets[row] > 1 ? 1 : 0;
  }
  return several;
}

}  // namespace

void attend_forward(const AttendProblem& problem, const HeadRows<float>& output, float* lse) {
  const AttendPlan& plan = problem.plan;
  const AttendRules& rules = problem.rules;
  const AttendLoops loops = attend_loops_in_force(rules.bf16);
  const Blocks blocks(problem, loops);
  const std::int64_t units = plan.batch * plan.heads;
  std::vector<BlockNumber> numbers;
  for (std::int64_t unit = 0; unit < units; ++unit) {
    blocks.append(unit, plan.unit_offsets[unit], plan.unit_offsets[unit + 1], numbers);
  }
  std::vector<std::uint8_t> in_parts;
  std::unique_ptr<Parts> parts;
  if (!one_group_per_token(plan)) {
    in_parts = rows_in_parts(plan);
    parts = std::make_unique<Parts>(plan.view_offsets[plan.unit_offsets[units]], rules.value_dim);
  }
  const double one_group_weight = rules.merge == Merge::mean ? 1.0 / (1.0 + rules.merge_eps) : 1.0;
  const auto is_shared = [](const auto& rows) { return rows.batch_stride == 0 && rows.head_stride == 0; };
  const bool units_share_rows = plan.key_rows != nullptr &&
                                (problem.k_halves.data != nullptr ? is_shared(problem.k_halves) : is_shared(problem.k));
  // Neighbouring blocks share keys, but every thread needs something to do.
  const auto num_blocks = static_cast<std::int64_t>(numbers.size());
  const std::int64_t grain =
      std::clamp<std::int64_t>(num_blocks / (kChunksPerThread * num_threads()), 1, kMostBlocksPerChunk);
  parallel_for(0, num_blocks, grain, [&](std::int64_t first, std::int64_t last) {
    float* scratch = attend_scratch(loops, rules);
    std::int64_t previous_group = -1;
    for (std::int64_t n = first; n < last; ++n) {
      const BlockNumber& number = numbers[static_cast<std::size_t>(n)];
      Block block = blocks.block(number);
      if (units_share_rows && n + 1 < last) {
        const std::int64_t* next = plan.groups + numbers[static_cast<std::size_t>(n + 1)].group * 4;
        block.next_key_rows = plan.key_rows + next[2];
        block.num_next_keys = next[3] - next[2];
      }
      block.first_of_run = number.group != previous_group;
      previous_group = number.group;
      BlockResult result{.output = query_rows(output, plan, number.unit),
                         .lse = query_numbers(lse, plan, number.unit),
                         .output_stride = output.row_stride,
                         .output_factor = static_cast<float>(one_group_weight)};
      if (parts != nullptr) {
        const std::int64_t entry = blocks.first_entry(number.group, number.index);
        result.in_parts = query_numbers(in_parts.data(), plan, number.unit);
        result.part_output = parts->output(entry);
        result.part_lse = parts->lse(entry);
      }
      loops.forward(block, result, scratch);
    }
  });
  parallel_for(0, units * plan.num_queries, kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t memberships = plan.member_offsets[row + 1] - plan.member_offsets[row];
      if (memberships == 1) continue;
      float* to = unit_rows(output, plan, row / plan.num_queries) + row % plan.num_queries * output.row_stride;
      if (memberships > 1) {
        merge_row(problem, *parts, row, to, lse + row);
      } else {
        std::fill(to, to + rules.value_dim, 0.0F);
        lse[row] = kMinusInfinity;
      }
    }
  });
}

}  // namespace routing::kernels
