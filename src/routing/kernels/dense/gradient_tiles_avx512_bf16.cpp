// The loops of gradient_tiles.h in bfloat16 for AVX-512. Nothing but gradient_loops_avx512_bf16 may leave this file,
// see dense_rows_avx512.cpp.
#include "routing/kernels/dense/gradient_tiles.h"

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
#include "routing/kernels/dense/gradient_vectors.inl"
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

// Up to 16 numbers of a row, and their halves in the lower half of each lane. Numbers below the normal range become 0,
// as they do in the product itself.
[[gnu::always_inline]] inline Vector read(const float* numbers, __mmask16 mask) {
  return _mm512_maskz_loadu_ps(mask, numbers);
}
[[gnu::always_inline]] inline __m512i read_halves(const float* numbers, __mmask16 mask) {
  return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(read(numbers, mask)));
}
[[gnu::always_inline]] inline __m512i read_halves(const std::uint16_t* numbers, __mmask16 mask) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, numbers));
}
[[gnu::always_inline]] inline Vector read(const std::uint16_t* numbers, __mmask16 mask) {
  return (Vector)_mm512_slli_epi32(read_halves(numbers, mask), 16);
}

template <bool, class Number>
[[gnu::always_inline]] inline void pack_columns(const PackBlock& block, const Number* all, std::int64_t row,
                                                std::int64_t first, std::int64_t columns, GradientUnit* units) {
  const Number* earlier = all + row * block.stride + first;
  const Number* later = earlier + block.stride;
  const bool pair = row + 1 < block.num_rows;
  for (std::int64_t c = 0; c < columns; c += kWidth) {
    const auto mask = static_cast<__mmask16>(columns - c >= kWidth ? 0xffffU : (1U << unsigned(columns - c)) - 1);
    const __mmask16 later_mask = pair ? mask : 0;
    _mm512_mask_storeu_epi32(
        units + c, mask,
        _mm512_or_si512(read_halves(earlier + c, mask), _mm512_slli_epi32(read_halves(later + c, later_mask), 16)));
    if (block.column_sums == nullptr) continue;
    float* sums = block.column_sums + first + c;
    const Vector before = _mm512_maskz_loadu_ps(mask, sums);
    const Vector both = _mm512_add_ps(_mm512_add_ps(before, read(earlier + c, mask)), read(later + c, later_mask));
    _mm512_mask_storeu_ps(sums, mask, both);
  }
}

// clang-format off
#include "routing/kernels/dense/gradient_tiles.inl"
// clang-format on

}  // namespace

GradientLoops gradient_loops_avx512_bf16() {
  return loops();
}

}  // namespace routing::kernels
