#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dense/dense_contents.h"
#include "routing/kernels/dense/dense_sum_order.h"
#include "routing/kernels/pointwise/bfloat16.h"

#include <vector>

namespace routing::kernels {
namespace {

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
  matrix.row_weights.resize(static_cast<std::size_t>(panels));
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
    matrix.row_weights[static_cast<std::size_t>(panel)] = row_weights(packed);
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

}  // namespace

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

}  // namespace routing::kernels
