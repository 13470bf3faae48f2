// Runs several times in ctest, each time with another DNNL_MAX_CPU_ISA.
#include "routing/kernels/dense/dense_primitives.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace routing::kernels::dense_primitives_test {
namespace {

using Floats = std::vector<float>;

// Small whole numbers: every sum is exact, and every factor is a bfloat16.
Floats small_numbers(std::int64_t count, std::int64_t step) {
  Floats values(static_cast<std::size_t>(count));
  std::int64_t next = 0;
  for (float& value : values) value = static_cast<float>((next += step) % 11 - 5);
  return values;
}

struct Sizes {
  std::int64_t rows, depth, columns;
};

// Gaps between rows in all three matrices: matmuls neither read nor write them, also where a matrix has a single row or
// column, which oneDNN 3 takes for a vector without gaps.
class MatmulStrides : public ::testing::TestWithParam<std::tuple<DenseType, bool, bool>> {
 protected:
  static void check(const Sizes& sizes, std::int64_t gap) {
    const auto [type, left_transposed, accumulate] = GetParam();
    const auto [rows, depth, columns] = sizes;
    const MatmulKey key{.rows = rows,
                        .depth = depth,
                        .columns = columns,
                        .type = type,
                        .left_stride = (left_transposed ? rows : depth) + gap,
                        .right_stride = columns + gap,
                        .output_stride = columns + gap,
                        .left_transposed = left_transposed,
                        .accumulate = accumulate};
    const std::int64_t left_lines = left_transposed ? depth : rows;
    const Floats left = small_numbers(left_lines * key.left_stride, 3);
    const Floats right = small_numbers(depth * key.right_stride, 7);
    Floats outputs = small_numbers(rows * key.output_stride, 5);
    Floats expected = outputs;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        float& sum = expected[static_cast<std::size_t>(r * key.output_stride + c)];
        if (!accumulate) sum = 0.0F;
        for (std::int64_t k = 0; k < depth; ++k) {
          const std::int64_t at = left_transposed ? k * key.left_stride + r : r * key.left_stride + k;
          sum += left[static_cast<std::size_t>(at)] * right[static_cast<std::size_t>(k * key.right_stride + c)];
        }
      }
    }
    Scratch left_scratch, right_scratch, workspace;
    const OneThread one_thread;
    MatmulRun run(matmul_for(key), workspace);
    const auto converted = [type = type](const Floats& values, std::int64_t lines, Scratch& scratch) {
      const auto width = static_cast<std::int64_t>(values.size()) / lines;
      return convert_rows({.rows = values.data(), .num_rows = lines, .width = width, .filled_rows = lines}, type,
                          scratch);
    };
    run(converted(left, left_lines, left_scratch), converted(right, depth, right_scratch), outputs.data());
    EXPECT_EQ(outputs, expected) << rows << "x" << depth << "x" << columns << " with gaps of " << gap;
  }
};

TEST_P(MatmulStrides, AreKeptInEveryShape) {
  for (const std::int64_t rows : {1, 2, 64}) {
    for (const std::int64_t depth : {1, 2, 65, 300}) {
      for (const std::int64_t columns : {1, 2, 65, 256}) {
        for (const std::int64_t gap : {0, 1, 256}) check({rows, depth, columns}, gap);
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<DenseType, bool, bool>>& info) {
  const auto [type, left_transposed, accumulate] = info.param;
  return std::string(type == DenseType::bf16 ? "bf16" : "fp32") + (left_transposed ? "_left_transposed" : "") +
         (accumulate ? "_accumulated" : "");
}
INSTANTIATE_TEST_SUITE_P(BothTypes, MatmulStrides,
                         ::testing::Combine(::testing::Values(DenseType::fp32, DenseType::bf16), ::testing::Bool(),
                                            ::testing::Bool()),
                         name_of);

}  // namespace
}  // namespace routing::kernels::dense_primitives_test
