// The loops of fused attention in bfloat16 for AVX-512. Nothing but attend_loops_avx512_bf16 may leave this file, see
// attend_avx512.cpp.
#include "routing/core/random.h"
#include "routing/kernels/attend/attend_block.h"

#include <cstdint>
#include <immintrin.h>

namespace routing::kernels {
namespace {

// clang-format off
#include "routing/kernels/attend/attend_bf16_product.inl"
// clang-format on

constexpr std::int64_t kDepthUnit = 2;
constexpr bool kChainsPairs = true;

// Nothing to prepare before the first product.
struct Session {};

// Sixteen sums stay in registers: every pair of A is used for two vectors of B, every vector of B for eight rows; or
// one vector of B for sixteen rows.
template <int kRows, int kVectors, bool kAdd>
inline void multiply_block(const Product& product, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t kLanes = 16;
  float* c = product.c + row * product.c_stride + column;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = kAdd ? _mm512_loadu_ps(c + r * product.c_stride + v * kLanes) : _mm512_setzero_ps();
    }
  }
  const Half* a = product.a + row * product.a_stride;
  const Pair* b = product.b + column;
  for (std::int64_t t = 0; t < product.depth; t += 2) {
    __m512bh right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = (__m512bh)_mm512_loadu_si512(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      int pair;
      __builtin_memcpy(&pair, a + r * product.a_stride + t, sizeof(pair));
      const __m512bh left = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], left, right[v]);
    }
    b += product.b_stride;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(c + r * product.c_stride + v * kLanes, sums[r][v]);
  }
}

template <bool kAdd>
inline void multiply(const Product& product) {
  if (product.rows == 1) {
    std::int64_t column = 0;
    for (; column + 64 <= product.columns; column += 64) multiply_block<1, 4, kAdd>(product, 0, column);
    for (; column < product.columns; column += 16) multiply_block<1, 1, kAdd>(product, 0, column);
    return;
  }
  const std::int64_t wide = product.columns / 32 * 32;
  for (std::int64_t row = 0; wide > 0 && row < product.rows; row += 8) {
    for (std::int64_t column = 0; column < wide; column += 32) multiply_block<8, 2, kAdd>(product, row, column);
  }
  for (std::int64_t row = 0; wide < product.columns && row < product.rows; row += 16) {
    multiply_block<16, 1, kAdd>(product, row, wide);
  }
}

// clang-format off
#include "routing/kernels/attend/attend_bf16_pack.inl"
#include "routing/kernels/attend/attend_bf16_block.inl"
#include "routing/kernels/attend/attend_bf16_one.inl"
#include "routing/kernels/attend/attend_bf16_forward.inl"
#include "routing/kernels/attend/attend_bf16_backward.inl"
// clang-format on

}  // namespace

AttendLoops attend_loops_avx512_bf16() {
  return {kQueries, scratch_size, table_size, pack_table, forward, backward};
}

}  // namespace routing::kernels
