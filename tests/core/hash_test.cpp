#include "routing/core/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::hash_test {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string every_byte(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t at = 0; at < size; ++at) text[at] = static_cast<char>(at);
  return text;
}

// Bit by bit, without a table.
std::uint32_t plain_crc32c(const std::string& text) {
  std::uint32_t rest = 0xFFFFFFFFU;
  for (const char letter : text) {
    rest ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1U) != 0 ? (rest >> 1U) ^ 0x82F63B78U : rest >> 1U;
  }
  return rest ^ 0xFFFFFFFFU;
}

TEST(XxHash64, IsTheKnownOneOfKnownBytes) {
  EXPECT_EQ(xxhash64({}), 0xEF46DB3751D8E999U);
  EXPECT_EQ(xxhash64(bytes_of("abc")), 0x44BC2CF5AD770999U);
  EXPECT_NE(xxhash64(bytes_of("abc"), 1), xxhash64(bytes_of("abc"), 0));
}

TEST(XxHash64, DoesNotDependOnWhereTheBytesAreCut) {
  const std::string text = every_byte(300);
  for (const std::uint64_t seed : {0U, 7U}) {
    for (const std::size_t cut : {0U, 1U, 31U, 32U, 33U, 299U, 300U}) {
      XxHash64 hash(seed);
      hash.update(bytes_of(text.substr(0, cut)));
      EXPECT_EQ(hash.digest(), xxhash64(bytes_of(text.substr(0, cut)), seed));
      hash.update(bytes_of(text.substr(cut)));
      EXPECT_EQ(hash.digest(), xxhash64(bytes_of(text), seed)) << cut;
    }
  }
}

TEST(Crc32c, IsTheKnownOneOfKnownBytes) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
  // RFC 3720, section B.4: 32 bytes of zeros, of ones, and ascending.
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAU);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xFF'))), 0x62A8AB43U);
  EXPECT_EQ(crc32c(bytes_of(every_byte(32))), 0x46DD794EU);
}

TEST(Crc32c, EqualsTheOneWithoutTableWhereverTheBytesAreCut) {
  const std::string text = every_byte(300);
  for (const std::size_t cut : {0U, 1U, 150U, 300U}) {
    const std::uint32_t first = crc32c(bytes_of(text.substr(0, cut)));
    EXPECT_EQ(first, plain_crc32c(text.substr(0, cut)));
    EXPECT_EQ(crc32c(bytes_of(text.substr(cut)), first), plain_crc32c(text));
  }
}

TEST(Hexadecimal, HasSixteenDigits) {
  EXPECT_EQ(hexadecimal(0), "0000000000000000");
  EXPECT_EQ(hexadecimal(0x1234abcdU), "000000001234abcd");
  EXPECT_EQ(hexadecimal(~std::uint64_t{0}), "ffffffffffffffff");
}

}  // namespace
}  // namespace routing::hash_test
