// The loops of gradient_tiles.h in float32 for AVX2. Nothing but gradient_loops_avx2 may leave this file, see
// dense_rows_avx512.cpp.
#include "routing/kernels/gradient_tiles.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <immintrin.h>

namespace routing::kernels {
namespace {

using Vector = __m256;
using Factor = __m256;
constexpr std::int64_t kWidth = 8;
constexpr std::int64_t kLeft = 6;
constexpr int kVectors = 2;
constexpr std::int64_t kRowsPerStep = 1;

inline Vector zero() {
  return _mm256_setzero_ps();
}
inline Vector load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline void store(float* to, Vector values) {
  _mm256_storeu_ps(to, values);
}
inline Vector add(Vector a, Vector b) {
  return _mm256_add_ps(a, b);
}
inline Factor load_factor(const GradientUnit* from) {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
}
inline Factor splat(GradientUnit unit) {
  return _mm256_set1_ps(std::bit_cast<float>(unit));
}
inline Vector multiply_add(Vector sum, Factor a, Factor b) {
  return _mm256_fmadd_ps(a, b, sum);
}

// clang-format off
#include "routing/kernels/gradient_floats.inl"
#include "routing/kernels/gradient_tiles.inl"
// clang-format on

}  // namespace

GradientLoops gradient_loops_avx2() {
  return {
      .rows_per_step = kRowsPerStep, .left_width = kLeft, .right_width = kRight, .pack = pack, .multiply = multiply};
}

}  // namespace routing::kernels
