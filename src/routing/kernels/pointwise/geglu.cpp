#include "routing/kernels/pointwise/geglu.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/lanes.h"
#include "routing/kernels/dispatch/simd_level.h"

namespace routing::kernels {
namespace {

constexpr std::int64_t kGrain = 16384;
constexpr float kTwoRootTwoOverPi = 1.5957691216F;
constexpr float kCubic = 0.044715F;

// Keeps lane_exp in its range; the gate is within 2e-38 of 0 or 1 there.
constexpr float kLargest = 87.0F;

[[gnu::always_inline]] inline float gelu_gate(float g) {
  float x = kTwoRootTwoOverPi * (g + kCubic * g * g * g);
  x = x > kLargest ? kLargest : x;
  x = x < -kLargest ? -kLargest : x;
  return 1.0F / (1.0F + lane_exp(-x));
}

}  // namespace

void geglu_forward(const GegluArrays& inputs, float* result) {
  parallel_for(0, inputs.count, kGrain, [&](std::int64_t first, std::int64_t last) {
    const float* gate = inputs.gate;
    const float* value = inputs.value;
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) result[i] = gate[i] * gelu_gate(gate[i]) * value[i];
    });
  });
}

void geglu_backward(const GegluArrays& inputs, const float* d_result, float* d_gate, float* d_value) {
  parallel_for(0, inputs.count, kGrain, [&](std::int64_t first, std::int64_t last) {
    const float* gate = inputs.gate;
    const float* value = inputs.value;
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) {
        const float g = gate[i];
        const float share = gelu_gate(g);
        const float slope = kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * g * g);
        d_value[i] = d_result[i] * (g * share);
        d_gate[i] = d_result[i] * value[i] * (share + g * share * (1.0F - share) * slope);
      }
    });
  });
}

}  // namespace routing::kernels
