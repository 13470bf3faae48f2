// The loops of dense_rows.h in float32 for AVX2. Nothing but multiply_rows_avx2 may leave this file, see
// dense_rows_avx512.cpp.
#include "routing/kernels/dense/dense_rows.h"

#include <cstdint>
#include <immintrin.h>

namespace routing::kernels {
namespace {

using Vector = __m256;
using Mask = __m256i;
constexpr std::int64_t kLanes = 8;
constexpr int kWide = 8;
constexpr int kGroupRows = 4;
constexpr int kGroupVectors = 2;

inline Vector zero() {
  return _mm256_setzero_ps();
}
inline Vector everywhere(float value) {
  return _mm256_set1_ps(value);
}
inline Vector add(Vector a, Vector b) {
  return _mm256_add_ps(a, b);
}
inline Vector multiply_add(Vector sum, Vector a, Vector b) {
  return _mm256_fmadd_ps(a, b, sum);
}
// NaN becomes 0, as in the matmuls.
inline Vector at_least_zero(Vector a) {
  return _mm256_max_ps(a, _mm256_setzero_ps());
}
inline Mask mask_of(std::int64_t count) {
  const int most = count >= kLanes ? static_cast<int>(kLanes) : static_cast<int>(count);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(most), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vector load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Vector load_some(const float* from, Mask mask) {
  return _mm256_maskload_ps(from, mask);
}
inline void store_some(float* to, Mask mask, Vector values) {
  _mm256_maskstore_ps(to, mask, values);
}

// clang-format off
#include "routing/kernels/dense/dense_rows_fp32.inl"
#include "routing/kernels/dense/dense_rows.inl"
// clang-format on

}  // namespace

void multiply_rows_avx2(const RowProduct& product, std::int64_t first, std::int64_t end) {
  multiply_rows<Floats>(product, first, end);
}

}  // namespace routing::kernels
