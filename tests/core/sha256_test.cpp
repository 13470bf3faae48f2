#include "routing/core/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::sha256_test {
namespace {

std::string sum_of(const std::string& text) {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

std::string every_byte(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t at = 0; at < size; ++at) text[at] = static_cast<char>(at);
  return text;
}

// From FIPS 180-4 and its examples.
TEST(Sha256, IsTheKnownOneOfKnownBytes) {
  EXPECT_EQ(sum_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// As sha256sum prints them: the last block just holds the length, just does not, and is only length.
TEST(Sha256, IsRightWhereverTheLastBlockEnds) {
  EXPECT_EQ(sum_of(every_byte(55)), "463eb28e72f82e0a96c0a4cc53690c571281131f672aa229e0d45ae59b598b59");
  EXPECT_EQ(sum_of(every_byte(56)), "da2ae4d6b36748f2a318f23e7ab1dfdf45acdc9d049bd80e59de82a60895f562");
  EXPECT_EQ(sum_of(every_byte(64)), "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108");
  EXPECT_EQ(sum_of(every_byte(119)), "da18797ed7c3a777f0847f429724a2d8cd5138e6ed2895c3fa1a6d39d18f7ec6");
  EXPECT_EQ(sum_of(every_byte(1000)), "a8af099bf2e878609558dbf69d8f88f4a31040a8cf84b549a0cfa912f12ffc3f");
}

}  // namespace
}  // namespace routing::sha256_test
