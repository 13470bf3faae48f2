#include "routing/kernels/geglu.h"

#include "routing/core/parallel.h"

#include <bit>

namespace routing {
namespace {

constexpr std::int64_t kGrain = 16384;
constexpr float kTwoRootTwoOverPi = 1.5957691216F;
constexpr float kCubic = 0.044715F;

// e^x for x in [-87, 87], larger |x| taken as that: 2^n e^r with r in +-ln(2)/2 and the Taylor polynomial of e^r up to
// r^7, whose rest is below 6e-9. Written out because a call of std::exp would keep the loop from being vectorised.
inline float bounded_exp(float x) {
  constexpr float kLargest = 87.0F;
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
  x = x > kLargest ? kLargest : x;
  x = x < -kLargest ? -kLargest : x;
  const float shifted = x * kLog2E + kRounder;
  const float whole = shifted - kRounder;
  const float r = (x - whole * kLn2High) - whole * kLn2Low;
  float sum = 1.0F / 5040.0F;
  sum = sum * r + 1.0F / 720.0F;
  sum = sum * r + 1.0F / 120.0F;
  sum = sum * r + 1.0F / 24.0F;
  sum = sum * r + 1.0F / 6.0F;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  const auto exponent = (std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRounder) + 127) << 23;
  return sum * std::bit_cast<float>(exponent);
}

inline float gelu_gate(float g) {
  return 1.0F / (1.0F + bounded_exp(-kTwoRootTwoOverPi * (g + kCubic * g * g * g)));
}

}  // namespace

void geglu_forward(const GegluArrays& inputs, float* result) {
  parallel_for(0, inputs.count, kGrain, [&](std::int64_t first, std::int64_t last) {
    const float* gate = inputs.gate;
    const float* value = inputs.value;
    for (std::int64_t i = first; i < last; ++i) result[i] = gate[i] * gelu_gate(gate[i]) * value[i];
  });
}

void geglu_backward(const GegluArrays& inputs, const float* d_result, float* d_gate, float* d_value) {
  parallel_for(0, inputs.count, kGrain, [&](std::int64_t first, std::int64_t last) {
    const float* gate = inputs.gate;
    const float* value = inputs.value;
    for (std::int64_t i = first; i < last; ++i) {
      const float g = gate[i];
      const float share = gelu_gate(g);
      const float slope = kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * g * g);
      d_value[i] = d_result[i] * (g * share);
      d_gate[i] = d_result[i] * value[i] * (share + g * share * (1.0F - share) * slope);
    }
  });
}

}  // namespace routing
