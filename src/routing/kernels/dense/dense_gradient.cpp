#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dense/dense.h"
#include "routing/kernels/dense/dense_primitives.h"
#include "routing/kernels/dense/gradient_panels.h"
#include "routing/kernels/dispatch/simd_level.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace routing::kernels {
namespace {

// Rows that one matmul sums over; their sums are added chunk after chunk.
constexpr std::int64_t kChunkRows = 512;
// A last chunk is filled up with zero rows to a multiple of this, so that few different matmuls are ever made.
constexpr std::int64_t kRowStep = 64;
// Chunks that are converted together: what bounds the copies.
constexpr std::int64_t kRoundChunks = 4;
constexpr std::int64_t kTileColumns = 256;

std::int64_t parts_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

// Tall tiles are a little faster, but a small weight must still give every thread something to do.
std::int64_t tile_rows(WeightShape shape) {
  return shape.out >= 512 ? 128 : 64;
}

// One chunk of rows as the matmuls take it.
struct Chunk {
  const void* outputs_gradient = nullptr;
  const void* inputs = nullptr;
  std::int64_t first_row = 0;
  std::int64_t num_rows = 0;
  std::int64_t filled_rows = 0;
  std::vector<float> bias_partial;
  Scratch left, right;
};

// By oneDNN, which takes the left factor transposed.
class MatmulGradient {
 public:
  MatmulGradient(const GradientInputs& inputs, WeightShape shape, const GradientOptions& options,
                 const WeightGradients& gradients)
      : inputs_(inputs), shape_(shape), options_(options), gradients_(gradients) {}

  void run() {
    clear();
    std::vector<Chunk> chunks(kRoundChunks);
    const std::int64_t num_chunks = parts_of(inputs_.num_rows, kChunkRows);
    for (std::int64_t first = 0; first < num_chunks; first += kRoundChunks) {
      const std::int64_t here = std::min(kRoundChunks, num_chunks - first);
      parallel_for(0, here, 1, [&](std::int64_t index, std::int64_t) {
        Chunk& chunk = chunks[static_cast<std::size_t>(index)];
        chunk.first_row = (first + index) * kChunkRows;
        chunk.num_rows = std::min(kChunkRows, inputs_.num_rows - chunk.first_row);
        chunk.filled_rows = parts_of(chunk.num_rows, kRowStep) * kRowStep;
        prepare(chunk);
      });
      if (gradients_.weight != nullptr) add_products(chunks, here);
      if (gradients_.bias != nullptr) add_bias(chunks, here);
    }
  }

 private:
  void clear() {
    if (options_.accumulate) return;
    if (gradients_.weight != nullptr && inputs_.num_rows == 0) {
      std::fill_n(gradients_.weight, shape_.out * shape_.in, 0.0F);
    }
    if (gradients_.bias != nullptr) std::fill_n(gradients_.bias, shape_.out, 0.0F);
  }

  void prepare(Chunk& chunk) const {
    const float* outputs_gradient = inputs_.outputs_gradient + chunk.first_row * shape_.out;
    if (gradients_.weight != nullptr) {
      chunk.outputs_gradient = convert_rows(
          {.rows = outputs_gradient, .num_rows = chunk.num_rows, .width = shape_.out, .filled_rows = chunk.filled_rows},
          options_.type, chunk.left);
      chunk.inputs = convert_rows({.rows = inputs_.inputs.from(chunk.first_row * shape_.in),
                                   .num_rows = chunk.num_rows,
                                   .width = shape_.in,
                                   .filled_rows = chunk.filled_rows},
                                  options_.type, chunk.right);
    }
    if (gradients_.bias == nullptr) return;
    chunk.bias_partial.assign(static_cast<std::size_t>(shape_.out), 0.0F);
    float* sums = chunk.bias_partial.data();
    const std::int64_t rows = chunk.num_rows;
    const std::int64_t width = shape_.out;
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const float* values = outputs_gradient + row * width;
        for (std::int64_t column = 0; column < width; ++column) sums[column] += values[column];
      }
    });
  }

  void add_products(const std::vector<Chunk>& chunks, std::int64_t count) const {
    const std::int64_t height = tile_rows(shape_);
    const std::int64_t tile_columns = parts_of(shape_.in, kTileColumns);
    parallel_for(0, parts_of(shape_.out, height) * tile_columns, 1, [&](std::int64_t tile, std::int64_t) {
      const OneThread one_thread;
      thread_local Scratch workspace;
      const std::int64_t row = tile / tile_columns * height;
      const std::int64_t column = tile % tile_columns * kTileColumns;
      for (std::int64_t index = 0; index < count; ++index) {
        const Chunk& chunk = chunks[static_cast<std::size_t>(index)];
        MatmulRun matmul(matmul_for({.rows = std::min(height, shape_.out - row),
                                     .depth = chunk.filled_rows,
                                     .columns = std::min(kTileColumns, shape_.in - column),
                                     .type = options_.type,
                                     .left_stride = shape_.out,
                                     .right_stride = shape_.in,
                                     .output_stride = shape_.in,
                                     .left_transposed = true,
                                     .accumulate = options_.accumulate || chunk.first_row > 0}),
                         workspace);
        const std::int64_t bytes = element_bytes(options_.type);
        matmul(static_cast<const char*>(chunk.outputs_gradient) + row * bytes,
               static_cast<const void*>(static_cast<const char*>(chunk.inputs) + column * bytes),
               gradients_.weight + row * shape_.in + column);
      }
    });
  }

  void add_bias(const std::vector<Chunk>& chunks, std::int64_t count) const {
    for (std::int64_t index = 0; index < count; ++index) {
      const float* partial = chunks[static_cast<std::size_t>(index)].bias_partial.data();
      for (std::int64_t column = 0; column < shape_.out; ++column) gradients_.bias[column] += partial[column];
    }
  }

  const GradientInputs& inputs_;
  WeightShape shape_;
  const GradientOptions& options_;
  const WeightGradients& gradients_;
};

}  // namespace

void weight_gradient(const GradientInputs& inputs, WeightShape shape, const GradientOptions& options,
                     const WeightGradients& gradients) {
  require<InputError>(inputs.inputs.halves == nullptr || options.type == DenseType::bf16,
                      "weight_gradient: inputs are bfloat16, but products are asked for in float32");
  if (const auto loops = gradient_loops(options.type)) {
    weight_gradient_by_panels(inputs, shape, options, gradients, *loops);
  } else {
    MatmulGradient(inputs, shape, options, gradients).run();
  }
}

}  // namespace routing::kernels
