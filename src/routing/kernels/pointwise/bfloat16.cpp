#include "routing/kernels/pointwise/bfloat16.h"

#include "routing/kernels/dispatch/simd_level.h"
#include "routing/kernels/pointwise/bfloat16_bits.h"

#include <bit>

namespace routing::kernels {

void to_bfloat16(const float* values, std::int64_t count, std::uint16_t* halves) {
  at_best_level([&]() __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) halves[i] = static_cast<std::uint16_t>(rounded_bits(values[i]) >> 16U);
  });
}

void from_bfloat16(const std::uint16_t* halves, std::int64_t count, float* values) {
  at_best_level([&]() __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = widened(halves[i]);
  });
}

void round_to_bfloat16(const float* values, std::int64_t count, float* rounded) {
  at_best_level([&]() __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) rounded[i] = std::bit_cast<float>(rounded_bits(values[i]));
  });
}

}  // namespace routing::kernels
