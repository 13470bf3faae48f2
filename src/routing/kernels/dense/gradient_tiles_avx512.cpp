// The loops of gradient_tiles.h in float32 for AVX-512. Nothing but gradient_loops_avx512 may leave this file, see
// dense_rows_avx512.cpp.
#include "routing/kernels/dense/gradient_tiles.h"
#include "routing/kernels/pointwise/bfloat16_bits.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#define ROUTING_VECTOR_BYTES 64

namespace routing::kernels {
namespace {

constexpr std::int64_t kLeft = 8;
constexpr int kVectors = 2;

// clang-format off
#include "routing/kernels/dense/gradient_vectors.inl"
#include "routing/kernels/dense/gradient_floats.inl"
#include "routing/kernels/dense/gradient_tiles.inl"
// clang-format on

}  // namespace

GradientLoops gradient_loops_avx512() {
  return loops();
}

}  // namespace routing::kernels
