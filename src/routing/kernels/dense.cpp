#include "routing/kernels/dense.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/kernels/bfloat16.h"
#include "routing/kernels/dense_primitives.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace routing::kernels {

struct PackedMatrix::Contents {
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  DenseType type = DenseType::fp32;
  std::vector<dnnl::memory> panels;
};

namespace {

// On an EPYC with AVX-512, blocks of 64 rows reach the rate of larger ones, and a panel of 256 columns stays in the
// second-level cache up to a depth of 1024 in float32.
constexpr std::int64_t kBlockRows = 64;
constexpr std::int64_t kPanelColumns = 256;
// Blocks that one task takes together if there are enough: the panel is loaded once for all of them.
constexpr std::int64_t kGroupBlocks = 8;

std::int64_t panel_width(std::int64_t columns, std::int64_t panel) {
  return std::min(kPanelColumns, columns - panel * kPanelColumns);
}

std::int64_t parts_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

MatmulKey block_key(const PackedMatrix::Contents& matrix, std::int64_t panel, const DenseOptions& options) {
  return {.rows = kBlockRows,
          .depth = matrix.depth,
          .columns = panel_width(matrix.columns, panel),
          .type = matrix.type,
          .left_stride = matrix.depth,
          .right_stride = 0,
          .output_stride = matrix.columns,
          .bias = options.bias != nullptr,
          .relu = options.relu,
          .accumulate = options.accumulate};
}

// A matrix in memory: how far apart neighbours in a column and in a row are.
struct Strides {
  std::int64_t row = 0;
  std::int64_t column = 0;
};

void pack_panels(const float* source, Strides strides, PackedMatrix::Contents& matrix) {
  require<InputError>(matrix.depth >= 1 && matrix.columns >= 1, "dense: a weight of ", matrix.depth, " by ",
                      matrix.columns, " has nothing to multiply with; both sizes must be at least 1");
  const std::int64_t panels = parts_of(matrix.columns, kPanelColumns);
  matrix.panels.resize(static_cast<std::size_t>(panels));
  const auto first_of = [&](std::int64_t panel) { return source + panel * kPanelColumns * strides.column; };
  parallel_for(0, panels, 1, [&](std::int64_t panel, std::int64_t) {
    const OneThread one_thread;
    const dnnl::memory::desc plain({matrix.depth, panel_width(matrix.columns, panel)}, dnnl::memory::data_type::f32,
                                   dnnl::memory::dims{strides.row, strides.column});
    const dnnl::memory from(plain, cpu_engine(), const_cast<float*>(first_of(panel)));
    dnnl::memory packed(matmul_for(block_key(matrix, panel, {}))->description.weights_desc(), cpu_engine());
    dnnl::stream stream(cpu_engine());
    dnnl::reorder(from, packed).execute(stream, const_cast<dnnl::memory&>(from), packed);
    matrix.panels[static_cast<std::size_t>(panel)] = packed;
  });
}

std::shared_ptr<const PackedMatrix::Contents> pack(const float* weight, WeightShape shape, DenseType type,
                                                   bool transposed) {
  auto matrix = std::make_shared<PackedMatrix::Contents>();
  matrix->depth = transposed ? shape.in : shape.out;
  matrix->columns = transposed ? shape.out : shape.in;
  matrix->type = type;
  std::vector<float> rounded;
  if (type == DenseType::bf16 && !multiplies_bfloat16()) {
    rounded.resize(static_cast<std::size_t>(shape.out * shape.in));
    round_to_bfloat16(weight, shape.out * shape.in, rounded.data());
    weight = rounded.data();
  }
  pack_panels(weight, transposed ? Strides{1, shape.in} : Strides{shape.in, 1}, *matrix);
  return matrix;
}

// What one thread needs to run tasks, kept from one call to the next.
struct TaskMemory {
  Scratch left, outputs, workspace;
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

struct Product {
  const float* rows = nullptr;
  const PackedMatrix::Contents& matrix;
  const DenseOptions& options;
  float* outputs = nullptr;

  void run(const Task& task) const;
  void run_tail(MatmulRun& matmul, const char* left, const Task& tail) const;
};

// A block with fewer than 64 rows: the same matmul, into scratch of the same layout.
void Product::run_tail(MatmulRun& matmul, const char* left, const Task& tail) const {
  float* filled = task_memory().outputs.get<float>(kBlockRows * matrix.columns);
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

void Product::run(const Task& task) const {
  const OneThread one_thread;
  const std::int64_t blocks = parts_of(task.num_rows, kBlockRows);
  const float* relu_rows =
      options.relu_outputs == nullptr ? nullptr : options.relu_outputs + task.first_row * matrix.depth;
  const auto* left = static_cast<const char*>(convert_rows({.rows = rows + task.first_row * matrix.depth,
                                                            .num_rows = task.num_rows,
                                                            .width = matrix.depth,
                                                            .filled_rows = blocks * kBlockRows,
                                                            .relu_outputs = relu_rows},
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
      const std::int64_t rows_here = std::min(kBlockRows, task.first_row + task.num_rows - row);
      if (rows_here == kBlockRows) {
        matmul(left + block * block_bytes, right, outputs + row * matrix.columns + panel * kPanelColumns);
      } else {
        run_tail(matmul, left + block * block_bytes,
                 {.first_row = row, .num_rows = rows_here, .first_panel = panel, .end_panel = panel + 1});
      }
    }
  }
}

}  // namespace

PackedMatrix PackedMatrix::for_forward(const float* weight, WeightShape shape, DenseType type) {
  PackedMatrix matrix;
  matrix.contents_ = pack(weight, shape, type, /*transposed=*/true);
  return matrix;
}

PackedMatrix PackedMatrix::for_data_gradient(const float* weight, WeightShape shape, DenseType type) {
  PackedMatrix matrix;
  matrix.contents_ = pack(weight, shape, type, /*transposed=*/false);
  return matrix;
}

std::int64_t PackedMatrix::depth() const {
  return contents_->depth;
}
std::int64_t PackedMatrix::columns() const {
  return contents_->columns;
}
std::size_t PackedMatrix::bytes() const {
  std::size_t total = 0;
  for (const dnnl::memory& panel : contents_->panels) total += panel.get_desc().get_size();
  return total;
}

void dense_product(const float* rows, std::int64_t num_rows, const PackedMatrix& matrix, const DenseOptions& options,
                   float* outputs) {
  require<InputError>(!options.accumulate || (options.bias == nullptr && !options.relu),
                      "dense_product: accumulate together with bias or relu; add the bias in another call");
  if (num_rows == 0) return;
  const PackedMatrix::Contents& contents = matrix.contents();
  const std::int64_t blocks = parts_of(num_rows, kBlockRows);
  const auto panels = static_cast<std::int64_t>(contents.panels.size());
  // How the work is cut into tasks changes no bit: every block of every panel is computed alike.
  const std::int64_t enough_tasks = 4 * static_cast<std::int64_t>(num_threads());
  const std::int64_t group_blocks = std::clamp<std::int64_t>(blocks / enough_tasks, 1, kGroupBlocks);
  const std::int64_t groups = parts_of(blocks, group_blocks);
  const std::int64_t panel_parts = groups >= enough_tasks ? 1 : panels;
  const Product product{.rows = rows, .matrix = contents, .options = options, .outputs = outputs};
  parallel_for(0, groups * panel_parts, 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t first_row = task / panel_parts * group_blocks * kBlockRows;
    const std::int64_t part = task % panel_parts;
    product.run({.first_row = first_row,
                 .num_rows = std::min(group_blocks * kBlockRows, num_rows - first_row),
                 .first_panel = panel_parts == 1 ? 0 : part,
                 .end_panel = panel_parts == 1 ? panels : part + 1});
  });
}

}  // namespace routing::kernels
