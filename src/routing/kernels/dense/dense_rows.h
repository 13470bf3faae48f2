// Between dense.cpp and its loops for few rows, which are compiled once per instruction set.
//
//   outputs[r][c] = sum over k of rows[r][k] * weights[k][c]  (+ bias[c], then ReLU)
//
// A block of 64 rows costs the same whether one row or all of them are wanted. These loops compute single rows, reading
// the weights once, with the bits of the block. For that they add up in the order of the block: see SumOrder.
//
// Precision  one fused multiply-add per term in float32, or one VDPBF16PS per pair of terms in bfloat16
// Threads    single-threaded; callers split over columns
#pragma once

#include <cstdint>

namespace routing::kernels {

// The order in which an output is summed up: depth is cut at each multiple of `block` and at `last`; every part is one
// chain that starts at 0; then the parts are added from the first to the last. dense_sum_order.h finds it.
struct SumOrder {
  std::int64_t block = 0;  // 0: not a sum of chains, so that no loop here can follow it
  std::int64_t last = 0;

  bool known() const { return block > 0; }
  bool operator==(const SumOrder&) const = default;
};

// A panel of weights as it lies in the memory of oneDNN: strips of columns, each one row of weights after the other.
// In strips of pairs, a number is followed by its neighbour in depth, so that two rows of weights lie in one.
struct RowWeights {
  const void* values = nullptr;  // null: a layout that no loop can read
  std::int64_t columns = 0;
  std::int64_t strip_columns = 0;
  std::int64_t strip_stride = 0;  // numbers from one strip to the next
  std::int64_t depth_stride =
      0;  // numbers from one row of weights to the next; of pairs, half of that from pair to pair
  bool paired = false;
};

struct RowProduct {
  const void* rows = nullptr;  // [num_rows, depth] of the type of the weights
  std::int64_t num_rows = 0;
  std::int64_t depth = 0;
  RowWeights weights = {};
  SumOrder order = {};
  const float* bias = nullptr;  // of the panel's first column, or null
  bool relu = false;
  float* outputs = nullptr;  // of the panel's first column
  std::int64_t output_stride = 0;
};

// Columns are handed out in steps of this many.
inline constexpr std::int64_t kRowStep = 64;

// Computes columns [first, end); first is a multiple of kRowStep, end too unless it is the last column.
using RowLoop = void (*)(const RowProduct& product, std::int64_t first, std::int64_t end);

// Of float32 with AVX2 or AVX-512, of bfloat16 with AVX-512.
void multiply_rows_avx2(const RowProduct& product, std::int64_t first, std::int64_t end);
void multiply_rows_avx512(const RowProduct& product, std::int64_t first, std::int64_t end);
void multiply_rows_avx512_bf16(const RowProduct& product, std::int64_t first, std::int64_t end);

}  // namespace routing::kernels
