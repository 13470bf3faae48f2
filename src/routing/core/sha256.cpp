#include "routing/core/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace routing {
namespace {

using Words = std::array<std::uint32_t, 8>;
constexpr std::size_t kBlock = 64;
constexpr std::size_t kRounds = 64;

// The first 32 bits behind the point of the roots of the first primes: square roots begin the state, cube roots are the
// constants of the rounds. A double holds these 3 + 32 bits with 18 to spare.
template <std::size_t kCount>
std::array<std::uint32_t, kCount> bits_of_roots(double (*root)(double)) {
  std::array<std::uint32_t, kCount> bits{};
  std::size_t found = 0;
  for (int number = 2; found < kCount; ++number) {
    bool prime = true;
    for (int divisor = 2; divisor * divisor <= number; ++divisor) prime = prime && number % divisor != 0;
    if (!prime) continue;
    const double value = root(static_cast<double>(number));
    bits[found++] = static_cast<std::uint32_t>(std::ldexp(value - std::floor(value), 32));
  }
  return bits;
}

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

void take_block(Words& state, const std::byte* block) {
  static const auto constants = bits_of_roots<kRounds>([](double x) { return std::cbrt(x); });
  std::array<std::uint32_t, kRounds> w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < kRounds; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < kRounds; ++t) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + constants[t] + w[t];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const Words added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

std::string sha256(std::span<const std::byte> bytes) {
  Words state = bits_of_roots<8>([](double x) { return std::sqrt(x); });
  const std::size_t whole = bytes.size() / kBlock * kBlock;
  for (std::size_t at = 0; at < whole; at += kBlock) take_block(state, bytes.data() + at);
  // The rest, a bit, zeros, and the length in bits as the last eight bytes of a block.
  std::vector<std::byte> rest(bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes.end());
  rest.push_back(std::byte{0x80});
  rest.resize((rest.size() + 8 + kBlock - 1) / kBlock * kBlock);
  for (std::size_t i = 0; i < 8; ++i) rest[rest.size() - 1 - i] = static_cast<std::byte>(bytes.size() * 8 >> 8 * i);
  for (std::size_t at = 0; at < rest.size(); at += kBlock) take_block(state, rest.data() + at);
  std::string text;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15U];
  }
  return text;
}

}  // namespace routing
