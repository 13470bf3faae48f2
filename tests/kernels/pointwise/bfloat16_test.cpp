#include "routing/kernels/pointwise/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace routing::kernels::bfloat16_test {
namespace {

std::uint16_t half_of(float value) {
  // Behind 40 other values, so that the vectorised loop and its tail are both on the way.
  std::vector<float> values(41, 1.0F);
  values.back() = value;
  std::vector<std::uint16_t> halves(values.size());
  to_bfloat16(values.data(), static_cast<std::int64_t>(values.size()), halves.data());
  EXPECT_EQ(halves.front(), 0x3F80);
  values.front() = value;
  to_bfloat16(values.data(), static_cast<std::int64_t>(values.size()), halves.data());
  EXPECT_EQ(halves.front(), halves.back());
  return halves.back();
}

float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

TEST(BFloat16, HandWorkedRoundings) {
  EXPECT_EQ(half_of(1.0F), 0x3F80);
  EXPECT_EQ(half_of(-2.0F), 0xC000);
  EXPECT_EQ(half_of(0.0F), 0x0000);
  EXPECT_EQ(half_of(from_bits(0x3F807FFF)), 0x3F80);  // just below the middle: down
  EXPECT_EQ(half_of(from_bits(0x3F808000)), 0x3F80);  // the middle: to the even neighbour, here down
  EXPECT_EQ(half_of(from_bits(0x3F818000)), 0x3F82);  // the middle: to the even neighbour, here up
  EXPECT_EQ(half_of(from_bits(0x3F808001)), 0x3F81);  // just above the middle: up
  EXPECT_EQ(half_of(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(half_of(-std::numeric_limits<float>::infinity()), 0xFF80);
}

TEST(BFloat16, NotANumberStaysNotANumber) {
  for (const std::uint32_t bits : {0x7F800001U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU, 0x7FC00000U}) {
    const auto half = static_cast<std::uint32_t>(half_of(from_bits(bits)));
    EXPECT_TRUE(std::isnan(from_bits(half << 16U))) << std::hex << bits;
  }
}

TEST(BFloat16, RoundedFloatsAreTheHalvesWidened) {
  std::vector<float> values;
  for (int i = -500; i < 500; ++i) values.push_back(std::ldexp(1.0F + 0.001F * static_cast<float>(i), i % 30));
  std::vector<std::uint16_t> halves(values.size());
  std::vector<float> rounded(values.size());
  to_bfloat16(values.data(), static_cast<std::int64_t>(values.size()), halves.data());
  round_to_bfloat16(values.data(), static_cast<std::int64_t>(values.size()), rounded.data());
  std::vector<float> back(values.size());
  from_bfloat16(halves.data(), static_cast<std::int64_t>(halves.size()), back.data());
  EXPECT_EQ(back, rounded);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(rounded[i], from_bits(static_cast<std::uint32_t>(halves[i]) << 16U));
    ASSERT_LE(std::abs(rounded[i] - values[i]), std::abs(values[i]) * 0x1.0p-8F);
  }
}

}  // namespace
}  // namespace routing::kernels::bfloat16_test
