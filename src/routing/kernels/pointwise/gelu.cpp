#include "routing/kernels/pointwise/gelu.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/lanes.h"
#include "routing/kernels/dispatch/simd_level.h"

namespace routing::kernels {
namespace {

constexpr std::int64_t kGrain = 16384;
constexpr float kRootHalf = 0.70710678118F;
constexpr float kDensityAtZero = 0.39894228040F;  // 1 / sqrt(2 pi)

struct Normal {
  float below;    // Phi(x)
  float density;  // phi(x)
};

[[gnu::always_inline]] inline Normal normal_at(float x) {
  const float size = (x < 0.0F ? -x : x) * kRootHalf;
  const float t = 1.0F / (1.0F + 0.3275911F * size);
  float square = size * size;
  square = square > 87.0F ? 87.0F : square;  // keeps lane_exp in its range
  const float bell = lane_exp(-square);
  const float series =
      t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
  const float tail = 0.5F * series * bell;  // of the far side
  return {x < 0.0F ? tail : 1.0F - tail, kDensityAtZero * bell};
}

}  // namespace

void gelu_forward(const float* input, std::int64_t count, float* result) {
  parallel_for(0, count, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) result[i] = input[i] * normal_at(input[i]).below;
    });
  });
}

void gelu_backward(const float* input, const float* d_result, std::int64_t count, float* d_input) {
  parallel_for(0, count, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) {
        const Normal at = normal_at(input[i]);
        d_input[i] = d_result[i] * (at.below + input[i] * at.density);
      }
    });
  });
}

}  // namespace routing::kernels
