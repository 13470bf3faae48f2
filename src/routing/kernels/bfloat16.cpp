#include "routing/kernels/bfloat16.h"

#include "routing/kernels/bfloat16_bits.h"
#include "routing/kernels/simd_level.h"

#include <bit>

namespace routing::kernels {

void to_bfloat16(const float* values, std::int64_t count, std::uint16_t* halves) {
  at_best_level([&]() __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) halves[i] = static_cast<std::uint16_t>(rounded_bits(values[i]) >> 16U);
  });
}

void relu_gradient_to_bfloat16(const float* values, const float* outputs, std::int64_t count, std::uint16_t* halves) {
  at_best_level([&]() __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) {
      // Read in any case and masked as bits: a value read on a condition would keep the loop out of vectors.
      const std::uint32_t keep = outputs[i] > 0.0F ? 0xFFFFFFFFU : 0U;
      halves[i] = static_cast<std::uint16_t>((rounded_bits(values[i]) & keep) >> 16U);
    }
  });
}

void round_to_bfloat16(const float* values, std::int64_t count, float* rounded) {
  at_best_level([&]() __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) rounded[i] = std::bit_cast<float>(rounded_bits(values[i]));
  });
}

}  // namespace routing::kernels
