// The loops of gradient_tiles.h in bfloat16 for AVX-512. Nothing but gradient_loops_avx512_bf16 may leave this file,
// see dense_rows_avx512.cpp.
#include "routing/kernels/gradient_tiles.h"

#include <algorithm>
#include <cstdint>
#include <immintrin.h>

#define ROUTING_VECTOR_BYTES 64

namespace routing::kernels {
namespace {

constexpr std::int64_t kLeft = 8;
constexpr int kVectors = 2;
constexpr std::int64_t kRowsPerStep = 2;

// clang-format off
#include "routing/kernels/gradient_vectors.inl"
// clang-format on

using Factor = __m512i;  // sixteen pairs of neighbouring rows

inline Factor load_factor(const GradientUnit* from) {
  return _mm512_loadu_si512(from);
}
inline Factor splat(GradientUnit unit) {
  return _mm512_set1_epi32(static_cast<int>(unit));
}
inline Vector multiply_add(Vector sum, Factor a, Factor b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

// Up to 16 numbers of a row.
template <bool kRelu>
[[gnu::always_inline]] inline Vector read(const PackBlock& block, std::int64_t row, std::int64_t column,
                                          __mmask16 mask) {
  const std::int64_t offset = row * block.stride + column;
  if constexpr (kRelu) {
    const Vector outputs = _mm512_maskz_loadu_ps(mask, block.relu_outputs + offset);
    mask = _mm512_mask_cmp_ps_mask(mask, outputs, _mm512_setzero_ps(), _CMP_GT_OQ);
  }
  return _mm512_maskz_loadu_ps(mask, block.numbers + offset);
}
// Numbers below the normal range become 0, as they do in the product itself.
inline __m512i halves(Vector values) {
  return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(values));
}

template <bool kRelu, bool>
[[gnu::always_inline]] inline void pack_columns(const PackBlock& block, std::int64_t row, std::int64_t first,
                                                std::int64_t columns, GradientUnit* units) {
  const bool pair = row + 1 < block.num_rows;
  for (std::int64_t c = 0; c < columns; c += kWidth) {
    const auto mask = static_cast<__mmask16>(columns - c >= kWidth ? 0xffffU : (1U << unsigned(columns - c)) - 1);
    const Vector earlier = read<kRelu>(block, row, first + c, mask);
    const Vector later = pair ? read<kRelu>(block, row + 1, first + c, mask) : Vector{};
    _mm512_mask_storeu_epi32(units + c, mask, _mm512_or_si512(halves(earlier), _mm512_slli_epi32(halves(later), 16)));
    if (block.column_sums == nullptr) continue;
    float* sums = block.column_sums + first + c;
    const Vector before = _mm512_maskz_loadu_ps(mask, sums);
    _mm512_mask_storeu_ps(sums, mask, _mm512_add_ps(_mm512_add_ps(before, earlier), later));
  }
}

// clang-format off
#include "routing/kernels/gradient_tiles.inl"
// clang-format on

}  // namespace

GradientLoops gradient_loops_avx512_bf16() {
  return loops();
}

}  // namespace routing::kernels
