// Sums and exponentials that the compiler can vectorise, with an order of operations that is written down. For kernel
// sources only.
#pragma once

#include <bit>
#include <cstdint>

namespace routing::kernels {

inline constexpr std::int64_t kLanes = 16;

// The sum of term(0 … count-1): lane l takes every 16th term from l on; then the upper half of the lanes is added to
// the lower until one is left.
template <class Term>
[[gnu::always_inline]] inline float lane_sum(std::int64_t count, const Term& term) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) lanes[lane] += term(i + lane);
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// e^x to about two units in the last place for x <= 88; 0 below -87, where the result would no longer be a normal
// float. x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial, 2^n by writing the exponent.
[[gnu::always_inline]] inline float lane_exp(float x) {
  constexpr float kRounder = 0x1.8p23F;  // adding it leaves a whole number in the lowest bits
  const float shifted = x * 0x1.715476p0F + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
  const float tail = 1.0F / 24.0F + r * (1.0F / 120.0F + r * (1.0F / 720.0F + r * (1.0F / 5040.0F)));
  const float power = 1.0F + (r + r * r * (0.5F + r * (1.0F / 6.0F + r * tail)));
  const auto scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127U) << 23U);
  return x < -87.0F ? 0.0F : power * scale;
}

}  // namespace routing::kernels
