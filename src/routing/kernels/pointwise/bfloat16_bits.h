// To and from bfloat16 for loops that the compiler is to turn into vectors. For kernel sources only.
#pragma once

#include <bit>
#include <cstdint>

namespace routing::kernels {

// The nearest bfloat16, ties to even, as the upper half of a float32 whose lower half is 0. Adding 0x7FFF carries into
// the upper half from above the middle on; the last kept bit on top makes the middle itself go to the even neighbour. A
// NaN could carry over to infinity: it gets its quiet bit instead.
[[gnu::always_inline]] inline std::uint32_t rounded_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return (is_nan ? bits | 0x00400000U : rounded) & 0xFFFF0000U;
}

[[gnu::always_inline]] inline float widened(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
}
// For loops over either kind of number.
[[gnu::always_inline]] inline float widened(float number) {
  return number;
}

}  // namespace routing::kernels
