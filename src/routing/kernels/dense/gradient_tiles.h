// The products of a weight gradient, dY^T . X, as sums of outer products: each step takes a row (of bfloat16, a pair of
// rows) of both factors. Both are copied into panels first, so that a step reads from each factor a few numbers that
// lie side by side; nothing is ever transposed. For dense_gradient.cpp; one set of loops per instruction set.
//
// A panel holds `width` columns of up to kChunkSteps steps, step after step. One column of one step is a unit of 32
// bits: a float32, or two neighbouring rows of bfloat16, the earlier one in the lower half. Columns that a last panel
// lacks, and the second row of an odd last pair, are zeros.
#pragma once

#include <cstdint>

namespace routing::kernels {

using GradientUnit = std::uint32_t;

// Steps that a tile sums up before it adds them to the gradient: a panel of the right factor stays in the first-level
// cache meanwhile.
inline constexpr std::int64_t kChunkSteps = 256;
// Columns that one call of pack takes at most.
inline constexpr std::int64_t kPackColumns = 128;

// A block of a factor: num_rows rows of num_columns numbers, and where its panels go.
struct PackBlock {
  const float* floats = nullptr;          // the numbers, or null if they are
  const std::uint16_t* halves = nullptr;  // bfloat16
  std::int64_t stride = 0;                // from one row to the next
  std::int64_t num_rows = 0;
  std::int64_t num_columns = 0;
  std::int64_t width = 0;          // of a panel
  bool round_to_bfloat16 = false;  // of float32 units: for levels that multiply bfloat16 as float32
  GradientUnit* panels = nullptr;
  std::int64_t panel_stride = 0;  // units from one panel to the next
  float* column_sums = nullptr;   // [num_columns], or null: sums of the numbers before rounding
};

// left_width columns of dY times right_width columns of X.
struct GradientTile {
  const GradientUnit* left = nullptr;
  const GradientUnit* right = nullptr;
  std::int64_t num_steps = 0;
  float* gradient = nullptr;
  std::int64_t stride = 0;
  std::int64_t num_rows = 0;     // of the gradient that exist, up to left_width
  std::int64_t num_columns = 0;  // up to right_width
  bool accumulate = false;       // add to the gradient instead of writing it
};

struct GradientLoops {
  std::int64_t rows_per_step = 1;
  std::int64_t left_width = 0;
  std::int64_t right_width = 0;
  void (*pack)(const PackBlock& block) = nullptr;
  void (*multiply)(const GradientTile& tile) = nullptr;
};

GradientLoops gradient_loops_avx2();
GradientLoops gradient_loops_avx512();
GradientLoops gradient_loops_avx512_bf16();

}  // namespace routing::kernels
