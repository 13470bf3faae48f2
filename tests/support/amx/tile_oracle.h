// What TDPBF16PS computes, in plain loops, and numbers to try it with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace routing::support {

struct TileSizes {
  int rows = 16;
  int columns = 16;
  int depth = 32;  // of one instruction; an even number
};

inline float widened(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
}

// The upper half; exact for numbers of at most eight bits.
inline std::uint16_t halved(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
}

inline float flushed(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}

// One result: c + (even + odd). The factors are the elements of a row of A and of a column of B, in order of depth.
inline float tile_dot(const std::vector<float>& a, const std::vector<float>& b, float c) {
  float even = 0;
  float odd = 0;
  for (std::size_t k = 0; k + 1 < a.size(); k += 2) {
    even = flushed(std::fma(flushed(a[k]), flushed(b[k]), even));
    odd = flushed(std::fma(flushed(a[k + 1]), flushed(b[k + 1]), odd));
  }
  return flushed(flushed(c) + flushed(even + odd));
}

// Whole numbers from -8 to 8: sums of 2^17 products are exact in float32 whatever their order.
inline std::vector<std::uint16_t> small_integers(std::size_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::uint16_t> halves(count);
  for (std::uint16_t& half : halves) half = halved(static_cast<float>(static_cast<int>(engine() % 17) - 8));
  return halves;
}

// All signs and significands, exponents from 2^-12 to 2^3.
inline std::vector<std::uint16_t> rough_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::uint16_t> halves(count);
  for (std::uint16_t& half : halves) {
    const auto bits = static_cast<std::uint32_t>(engine());
    half = static_cast<std::uint16_t>((bits & 0x807FU) | (115U + (bits >> 16U) % 16U) << 7U);
  }
  return halves;
}

}  // namespace routing::support
