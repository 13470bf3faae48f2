#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/kernels/attend/attend.h"
#include "routing/kernels/attend/attend_driver.h"

#include <algorithm>
#include <vector>

namespace routing::kernels {
namespace {

constexpr std::int64_t kRowsPerChunk = 512;
constexpr std::int64_t kNumbersPerChunk = 4096;
constexpr std::int64_t kQueriesPerTask = 1024;

// Some groups of a unit, for one thread.
struct Task {
  std::int64_t unit = 0;
  std::int64_t first_group = 0;
  std::int64_t last_group = 0;
  std::int64_t pairs = 0;
};

// Do no two groups of a unit touch the same row of dq, dk or dv?
bool groups_are_apart(const AttendPlan& plan) {
  if (plan.query_order != plan.key_order || !one_group_per_token(plan)) return false;
  const std::int64_t num_groups = plan.unit_offsets[plan.batch * plan.heads];
  for (std::int64_t group = 0; group < num_groups; ++group) {
    const std::int64_t* range = plan.groups + group * 4;
    if (range[0] != range[2] || range[1] != range[3]) return false;
  }
  return true;
}

std::int64_t pairs_of(const AttendPlan& plan, std::int64_t first_group, std::int64_t last_group) {
  std::int64_t pairs = 0;
  for (std::int64_t entry = plan.view_offsets[first_group]; entry < plan.view_offsets[last_group]; ++entry) {
    pairs += plan.views[entry].key_to - plan.views[entry].key_from;
  }
  return pairs;
}

// What different threads may do at once, longest first so that none is left with a long one at the end. Groups that
// share rows or a table's gradient stay together, in their order.
std::vector<Task> make_tasks(const AttendPlan& plan, bool apart) {
  std::vector<Task> tasks;
  for (std::int64_t unit = 0; unit < plan.batch * plan.heads; ++unit) {
    const std::int64_t end = plan.unit_offsets[unit + 1];
    for (std::int64_t first = plan.unit_offsets[unit]; first < end;) {
      std::int64_t last = apart ? first + 1 : end;
      while (last < end && plan.view_offsets[last] - plan.view_offsets[first] < kQueriesPerTask) ++last;
      tasks.push_back({unit, first, last, pairs_of(plan, first, last)});
      first = last;
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.pairs > b.pairs; });
  return tasks;
}

void clear_unwritten(const GradientRows& rows, std::int64_t origin, std::int64_t count, std::int64_t dim) {
  for (std::int64_t position = origin; position < origin + count; ++position) {
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

std::vector<float> mean_weights(const AttendProblem& problem) {
  const std::int64_t rows = problem.plan.batch * problem.plan.heads * problem.plan.num_queries;
  std::vector<float> weights(static_cast<std::size_t>(rows));
  parallel_for(0, rows, kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      weights[static_cast<std::size_t>(row)] = mean_weight(problem, row);
  });
  return weights;
}

// What the blocks of every unit read and write.
class Gradients {
 public:
  Gradients(const AttendProblem& problem, const AttendBackward& call)
      : problem_(problem),
        call_(call),
        key_size_(call.d_relative_key != nullptr ? table_rows() * problem.rules.dim : 0),
        value_size_(call.d_relative_value != nullptr ? table_rows() * problem.rules.value_dim : 0),
        written_(static_cast<std::size_t>(units() * flags_per_unit())),
        key_parts_(static_cast<std::size_t>(units() * key_size_)),
        value_parts_(static_cast<std::size_t>(units() * value_size_)) {
    if (problem.rules.merge != Merge::mean) return;
    weights_ = mean_weights(problem);
    own_softmax_ = !one_group_per_token(problem.plan);
  }

  bool has_tables() const { return key_size_ > 0 || value_size_ > 0; }

  BlockGradient of_unit(std::int64_t unit) {
    const AttendPlan& plan = problem_.plan;
    BlockGradient gradient;
    gradient.output = query_rows(call_.output, plan, unit);
    gradient.output_stride = call_.output.row_stride;
    gradient.d_output = query_rows(call_.d_output, plan, unit);
    gradient.d_output_stride = call_.d_output.row_stride;
    gradient.lse = query_numbers(call_.lse, plan, unit);
    gradient.d_lse = query_numbers(call_.d_lse, plan, unit);
    gradient.output_weight = weights_.empty() ? nullptr : query_numbers(weights_.data(), plan, unit);
    gradient.own_softmax = own_softmax_;
    std::uint8_t* written = written_.data() + unit * flags_per_unit();
    std::uint8_t* const keys = from_position_0(written + plan.num_queries, 1, plan.key_origin);
    gradient.dq = {query_rows(call_.dq, plan, unit), call_.dq.row_stride,
                   from_position_0(written, 1, plan.query_origin)};
    gradient.dk = {key_rows(call_.dk, plan, unit), call_.dk.row_stride, keys};
    gradient.dv = {key_rows(call_.dv, plan, unit), call_.dv.row_stride, keys + plan.num_keys};
    if (call_.dk.data == call_.dq.data) gradient.dk = gradient.dq;
    if (key_size_ > 0) gradient.d_key_table = key_parts_.data() + unit * key_size_;
    if (value_size_ > 0) gradient.d_value_table = value_parts_.data() + unit * value_size_;
    return gradient;
  }

  // After all blocks.
  void finish() {
    parallel_for(0, units(), 1, [&](std::int64_t unit, std::int64_t /*last*/) {
      const BlockGradient gradient = of_unit(unit);
      const AttendPlan& plan = problem_.plan;
      clear_unwritten(gradient.dq, plan.query_origin, plan.num_queries, problem_.rules.dim);
      clear_unwritten(gradient.dk, plan.key_origin, plan.num_keys, problem_.rules.dim);
      clear_unwritten(gradient.dv, plan.key_origin, plan.num_keys, problem_.rules.value_dim);
    });
    add_parts(key_parts_, key_size_, call_.d_relative_key);
    add_parts(value_parts_, value_size_, call_.d_relative_value);
  }

 private:
  std::int64_t units() const { return problem_.plan.batch * problem_.plan.heads; }
  std::int64_t table_rows() const { return 2 * problem_.rules.max_relative + 1; }
  std::int64_t flags_per_unit() const { return problem_.plan.num_queries + 2 * problem_.plan.num_keys; }

  // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call
  const AttendProblem& problem_;
  const AttendBackward& call_;
  // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
  std::int64_t key_size_, value_size_;
  std::vector<std::uint8_t> written_;
  std::vector<float> key_parts_, value_parts_, weights_;
  bool own_softmax_ = false;
};

}  // namespace

void attend_backward(const AttendProblem& problem, const AttendBackward& call) {
  require<InputError>(
      problem.plan.query_origins == nullptr,
      "attend_backward: queries of units begin at different positions, but only attend_forward can read "
      "them so");
  require<InputError>(problem.plan.key_rows == nullptr || call.dk.data != call.dq.data,
                      "attend_backward: keys are queries, but stand elsewhere than at their positions");
  const AttendLoops loops = attend_loops_in_force(problem.rules.bf16);
  const Blocks blocks(problem, loops);
  Gradients gradients(problem, call);
  const std::vector<Task> tasks = make_tasks(problem.plan, !gradients.has_tables() && groups_are_apart(problem.plan));
  parallel_for(0, static_cast<std::int64_t>(tasks.size()), 1, [&](std::int64_t index, std::int64_t /*last*/) {
    const Task& task = tasks[static_cast<std::size_t>(index)];
    const BlockGradient gradient = gradients.of_unit(task.unit);
    float* scratch = attend_scratch(loops, problem.rules);
    std::vector<BlockNumber> numbers;
    blocks.append(task.unit, task.first_group, task.last_group, numbers);
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      Block block = blocks.block(numbers[n]);
      block.first_of_run = numbers[n].index == 0;
      block.last_of_run = n + 1 == numbers.size() || numbers[n + 1].group != numbers[n].group;
      loops.backward(block, gradient, scratch);
    }
  });
  gradients.finish();
}

}  // namespace routing::kernels
