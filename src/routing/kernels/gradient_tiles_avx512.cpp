// The loops of gradient_tiles.h in float32 for AVX-512. Nothing but gradient_loops_avx512 may leave this file, see
// dense_rows_avx512.cpp.
#include "routing/kernels/gradient_tiles.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <immintrin.h>

namespace routing::kernels {
namespace {

using Vector = __m512;
using Factor = __m512;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kLeft = 8;
constexpr int kVectors = 2;
constexpr std::int64_t kRowsPerStep = 1;

inline Vector zero() {
  return _mm512_setzero_ps();
}
inline Vector load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline void store(float* to, Vector values) {
  _mm512_storeu_ps(to, values);
}
inline Vector add(Vector a, Vector b) {
  return _mm512_add_ps(a, b);
}
inline Factor load_factor(const GradientUnit* from) {
  return _mm512_loadu_ps(reinterpret_cast<const float*>(from));
}
inline Factor splat(GradientUnit unit) {
  return _mm512_set1_ps(std::bit_cast<float>(unit));
}
inline Vector multiply_add(Vector sum, Factor a, Factor b) {
  return _mm512_fmadd_ps(a, b, sum);
}

// clang-format off
#include "routing/kernels/gradient_floats.inl"
#include "routing/kernels/gradient_tiles.inl"
// clang-format on

}  // namespace

GradientLoops gradient_loops_avx512() {
  return {
      .rows_per_step = kRowsPerStep, .left_width = kLeft, .right_width = kRight, .pack = pack, .multiply = multiply};
}

}  // namespace routing::kernels
