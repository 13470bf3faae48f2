// The loops of dense_rows.h in float32 for AVX-512. Nothing but multiply_rows_avx512 may leave this file: a function
// shared with other files could be taken from here by the linker and meet a processor that cannot run it.
#include "routing/kernels/dense/dense_rows.h"

#include <cstdint>
#include <immintrin.h>

namespace routing::kernels {
namespace {

using Vector = __m512;
using Mask = __mmask16;
constexpr std::int64_t kLanes = 16;
constexpr int kWide = 16;
constexpr int kGroupRows = 6;
constexpr int kGroupVectors = 4;

inline Vector zero() {
  return _mm512_setzero_ps();
}
inline Vector everywhere(float value) {
  return _mm512_set1_ps(value);
}
inline Vector add(Vector a, Vector b) {
  return _mm512_add_ps(a, b);
}
inline Vector multiply_add(Vector sum, Vector a, Vector b) {
  return _mm512_fmadd_ps(a, b, sum);
}
// NaN becomes 0, as in the matmuls.
inline Vector at_least_zero(Vector a) {
  return _mm512_max_ps(a, _mm512_setzero_ps());
}
inline Mask mask_of(std::int64_t count) {
  return count >= kLanes ? Mask{0xffff} : static_cast<Mask>(count <= 0 ? 0U : (1U << static_cast<unsigned>(count)) - 1);
}
inline Vector load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Vector load_some(const float* from, Mask mask) {
  return _mm512_maskz_loadu_ps(mask, from);
}
inline void store_some(float* to, Mask mask, Vector values) {
  _mm512_mask_storeu_ps(to, mask, values);
}

// clang-format off
#include "routing/kernels/dense/dense_rows_fp32.inl"
#include "routing/kernels/dense/dense_rows.inl"
// clang-format on

}  // namespace

void multiply_rows_avx512(const RowProduct& product, std::int64_t first, std::int64_t end) {
  multiply_rows<Floats>(product, first, end);
}

}  // namespace routing::kernels
