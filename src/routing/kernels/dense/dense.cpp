#include "routing/kernels/dense/dense.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dense/dense_contents.h"
#include "routing/kernels/dense/dense_primitives.h"
#include "routing/kernels/dense/dense_sum_order.h"
#include "routing/kernels/dispatch/simd_level.h"
#include "routing/kernels/pointwise/bfloat16_bits.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

namespace routing::kernels {
namespace {

// Blocks that one task takes together if there are enough: the panel is loaded once for all of them.
constexpr std::int64_t kGroupBlocks = 8;
// The loops for single rows beat a block up to about 60 rows with AVX-512 and 45 with AVX2 (depth 2048). On an EPYC
// with one thread, 1 row took 0.01 to 0.05 of the time of a block, 8 rows 0.15, 36 rows 0.5 to 0.6 (AVX2: up to 0.85).
constexpr std::int64_t kMostSingleRows = 40;
// A call of parallel_for costs the caller half a microsecond, as long as reading 50 KB of weights from the second-level
// cache; sharing pays when a few times that is saved.
constexpr std::int64_t kBytesForThreads = std::int64_t{256} * 1024;

// What one thread needs to run tasks, kept from one call to the next.
struct TaskMemory {
  Scratch left, outputs, workspace;
  Scratch single_rows;  // of the thread that calls, read by all
};
TaskMemory& task_memory() {
  thread_local TaskMemory memory;
  return memory;
}

struct Task {
  std::int64_t first_row = 0;
  std::int64_t num_rows = 0;
  std::int64_t first_panel = 0;
  std::int64_t end_panel = 0;
};

// Numbers of a block, a row every `stride`.
template <class Number>
void pass_where_positive(const Number* relu_outputs, float factor, std::int64_t num_rows, std::int64_t num_columns,
                         std::int64_t stride, float* numbers) {
  at_best_level([&]() __attribute__((always_inline)) {
    for (std::int64_t row = 0; row < num_rows; ++row) {
      const Number* outputs_of_row = relu_outputs + row * stride;
      float* row_numbers = numbers + row * stride;
      for (std::int64_t column = 0; column < num_columns; ++column) {
        const float product = factor * row_numbers[column];
        row_numbers[column] = widened(outputs_of_row[column]) > 0.0F ? product : 0.0F;
      }
    }
  });
}

struct Product {
  const DenseRows& rows;
  const PackedMatrix::Contents& matrix;
  const DenseOptions& options;
  float* outputs = nullptr;

  void run(const Task& task) const;
  void pass_through_relu(const Task& block) const;
  void run_tail(MatmulRun& matmul, const char* left, const Task& tail) const;
  void run_blocks(std::int64_t num_rows) const;
  void run_rows(std::int64_t first_row, std::int64_t num_rows, const RowPlan& plan) const;
};

// A block with fewer than 64 rows: the same matmul, into scratch of the same layout.
void Product::run_tail(MatmulRun& matmul, const char* left, const Task& tail) const {
  auto* filled = task_memory().outputs.get<float>(kBlockRows * matrix.columns);
  const std::int64_t offset = tail.first_panel * kPanelColumns;
  const auto bytes = static_cast<std::size_t>(panel_width(matrix.columns, tail.first_panel)) * sizeof(float);
  const auto scratch_row = [&](std::int64_t row) { return filled + row * matrix.columns + offset; };
  const auto output_row = [&](std::int64_t row) { return outputs + (tail.first_row + row) * matrix.columns + offset; };
  if (options.accumulate) {
    for (std::int64_t row = 0; row < kBlockRows; ++row) {
      if (row < tail.num_rows) {
        std::memcpy(scratch_row(row), output_row(row), bytes);
      } else {
        std::memset(scratch_row(row), 0, bytes);
      }
    }
  }
  matmul(left, matrix.panels[static_cast<std::size_t>(tail.first_panel)], scratch_row(0));
  for (std::int64_t row = 0; row < tail.num_rows; ++row) std::memcpy(output_row(row), scratch_row(row), bytes);
}

// While the block is in the cache nearest to the processor.
void Product::pass_through_relu(const Task& block) const {
  if (!options.relu_outputs.given()) return;
  const std::int64_t offset = block.first_row * matrix.columns + block.first_panel * kPanelColumns;
  const std::int64_t width = panel_width(matrix.columns, block.first_panel);
  const DenseRows relu = options.relu_outputs.from(offset);
  const auto pass = [&](const auto* relu_outputs) {
    pass_where_positive(relu_outputs, options.passed_factor, block.num_rows, width, matrix.columns, outputs + offset);
  };
  if (relu.halves != nullptr) {
    pass(relu.halves);
  } else {
    pass(relu.floats);
  }
}

void Product::run(const Task& task) const {
  const OneThread one_thread;
  const std::int64_t blocks = parts_of(task.num_rows, kBlockRows);
  const auto* left = static_cast<const char*>(convert_rows({.rows = rows.from(task.first_row * matrix.depth),
                                                            .num_rows = task.num_rows,
                                                            .width = matrix.depth,
                                                            .filled_rows = blocks * kBlockRows},
                                                           matrix.type, task_memory().left));
  const std::int64_t block_bytes = kBlockRows * matrix.depth * element_bytes(matrix.type);
  for (std::int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
    const dnnl::memory& right = matrix.panels[static_cast<std::size_t>(panel)];
    const auto matmul_of_panel = matmul_for(block_key(matrix, panel, options));
    require<Error>(matmul_of_panel->description.weights_desc() == right.get_desc(),
                   "dense: oneDNN wants another layout of the packed weight with these post-operations");
    MatmulRun matmul(matmul_of_panel, task_memory().workspace);
    if (options.bias != nullptr) matmul.set_bias(options.bias + panel * kPanelColumns);
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t row = task.first_row + block * kBlockRows;
      const Task one_block{.first_row = row,
                           .num_rows = std::min(kBlockRows, task.first_row + task.num_rows - row),
                           .first_panel = panel,
                           .end_panel = panel + 1};
      if (one_block.num_rows == kBlockRows) {
        matmul(left + block * block_bytes, right, outputs + row * matrix.columns + panel * kPanelColumns);
      } else {
        run_tail(matmul, left + block * block_bytes, one_block);
      }
      pass_through_relu(one_block);
    }
  }
}

// All rows from the first one on.
void Product::run_blocks(std::int64_t num_rows) const {
  const std::int64_t blocks = parts_of(num_rows, kBlockRows);
  const auto panels = static_cast<std::int64_t>(matrix.panels.size());
  // How the work is cut into tasks changes no bit: every block of every panel is computed alike.
  const std::int64_t enough_tasks = 4 * static_cast<std::int64_t>(num_threads());
  const std::int64_t group_blocks = std::clamp<std::int64_t>(blocks / enough_tasks, 1, kGroupBlocks);
  const std::int64_t groups = parts_of(blocks, group_blocks);
  const std::int64_t panel_parts = groups >= enough_tasks ? 1 : panels;
  parallel_for(0, groups * panel_parts, 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t first_row = task / panel_parts * group_blocks * kBlockRows;
    const std::int64_t part = task % panel_parts;
    run({.first_row = first_row,
         .num_rows = std::min(group_blocks * kBlockRows, num_rows - first_row),
         .first_panel = panel_parts == 1 ? 0 : part,
         .end_panel = panel_parts == 1 ? panels : part + 1});
  });
}

// A step is kRowStep columns. Panels that no loop repeats run as a block, with their first step.
void Product::run_rows(std::int64_t first_row, std::int64_t num_rows, const RowPlan& plan) const {
  static_assert(kPanelColumns % kRowStep == 0);
  constexpr std::int64_t kPanelSteps = kPanelColumns / kRowStep;
  const RowProduct product{.rows = convert_rows({.rows = rows.from(first_row * matrix.depth),
                                                 .num_rows = num_rows,
                                                 .width = matrix.depth,
                                                 .filled_rows = num_rows},
                                                matrix.type, task_memory().single_rows),
                           .num_rows = num_rows,
                           .depth = matrix.depth,
                           .relu = options.relu,
                           .output_stride = matrix.columns};
  const std::int64_t last_panel = static_cast<std::int64_t>(matrix.panels.size()) - 1;
  const auto run_steps = [&](std::int64_t panel, std::int64_t first_step, std::int64_t end_step) {
    const SumOrder& order = panel == last_panel ? plan.last : plan.inner;
    if (!order.known()) {
      if (first_step == 0) {
        run({.first_row = first_row, .num_rows = num_rows, .first_panel = panel, .end_panel = panel + 1});
      }
      return;
    }
    RowProduct part = product;
    part.weights = matrix.row_weights[static_cast<std::size_t>(panel)];
    part.order = order;
    part.bias = options.bias == nullptr ? nullptr : options.bias + panel * kPanelColumns;
    part.outputs = outputs + first_row * matrix.columns + panel * kPanelColumns;
    plan.loop(part, first_step * kRowStep, std::min(end_step * kRowStep, part.weights.columns));
  };
  const std::int64_t steps = parts_of(matrix.columns, kRowStep);
  const auto run_range = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t step = first; step < end;) {
      const std::int64_t panel = step / kPanelSteps;
      const std::int64_t panel_end = std::min(end, (panel + 1) * kPanelSteps);
      run_steps(panel, step - panel * kPanelSteps, panel_end - panel * kPanelSteps);
      step = panel_end;
    }
  };
  const std::int64_t threads = num_threads();
  // One row waits for the weights. More rows are held up by arithmetic: 8 take four times as long.
  const std::int64_t work = matrix.depth * matrix.columns * element_bytes(matrix.type) * parts_of(num_rows, 2);
  if (threads == 1 || work < kBytesForThreads) {
    run_range(0, steps);
    return;
  }
  // A whole panel at a time if there are enough: it is one stretch of memory.
  const std::int64_t grain = std::clamp<std::int64_t>(parts_of(steps, threads), 1, kPanelSteps);
  parallel_for(0, steps, grain, run_range);
}

RowPlan row_plan(const PackedMatrix::Contents& matrix, const DenseOptions& options) {
  RowPlan plan{.loop = row_loop(matrix.type), .bias = options.bias != nullptr, .relu = options.relu};
  if (plan.loop == nullptr || options.accumulate || options.relu_outputs.given()) return plan;
  const std::lock_guard lock(matrix.mutex);
  for (const RowPlan& known : matrix.row_plans) {
    if (known.is_for(plan)) return known;
  }
  const auto last = static_cast<std::int64_t>(matrix.panels.size()) - 1;
  plan.last = sum_order_for(block_key(matrix, last, options), plan.loop);
  plan.inner = last == 0 ? plan.last : sum_order_for(block_key(matrix, 0, options), plan.loop);
  matrix.row_plans.push_back(plan);
  return plan;
}

}  // namespace

void dense_product(const DenseRows& rows, std::int64_t num_rows, const PackedMatrix& matrix,
                   // NOLINTNEXTLINE(readability-non-const-parameter): tasks write through outputs
                   const DenseOptions& options, float* outputs) {
  require<InputError>(!options.accumulate || (options.bias == nullptr && !options.relu),
                      "dense_product: accumulate together with bias or relu; add the bias in another call");
  require<InputError>(!options.accumulate || !options.relu_outputs.given(),
                      "dense_product: accumulate together with relu_outputs would pass what was there before through "
                      "the ReLU as well; add in another call");
  require<InputError>(rows.halves == nullptr || matrix.contents().type == DenseType::bf16,
                      "dense_product: rows are bfloat16, but the matrix is packed for float32; pack it for bf16");
  if (num_rows == 0) return;
  const PackedMatrix::Contents& contents = matrix.contents();
  const Product product{.rows = rows, .matrix = contents, .options = options, .outputs = outputs};
  const std::int64_t single_rows = num_rows % kBlockRows;
  if (single_rows == 0 || single_rows > kMostSingleRows) return product.run_blocks(num_rows);
  const RowPlan plan = row_plan(contents, options);
  if (!plan.inner.known() && !plan.last.known()) return product.run_blocks(num_rows);
  product.run_blocks(num_rows - single_rows);
  product.run_rows(num_rows - single_rows, single_rows, plan);
}

bool rows_match_blocks(const PackedMatrix& matrix, const DenseOptions& options) {
  const RowPlan plan = row_plan(matrix.contents(), options);
  return plan.inner.known() && plan.last.known();
}

}  // namespace routing::kernels
