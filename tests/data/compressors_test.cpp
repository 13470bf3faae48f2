#include "routing/data/compressors.h"

#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/data/sources/byte_corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace routing::compressors_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

class CompressorsTest : public TemporaryFolderTest {
 protected:
  // Bits per byte that a program reaches over its standard input; negative if it cannot be run.
  double program_bits_per_byte(const std::string& program, std::span<const std::uint8_t> text) const {
    const auto input = write("input", as_text(text));
    const auto output = folder() / "output";
    const std::string command = program + " < " + input.string() + " > " + output.string() + " 2> /dev/null";
    if (std::system(command.c_str()) != 0) return -1.0;
    return 8.0 * static_cast<double>(std::filesystem::file_size(output)) / static_cast<double>(text.size());
  }
};

// Words drawn with very different frequencies: compressible, but not without end.
Bytes made_up_text(std::size_t size) {
  RandomStream stream(1, "text");
  std::vector<std::string> words;
  for (int word = 0; word < 2000; ++word) {
    std::string letters;
    for (std::uint32_t length = 2 + stream.below(8); length > 0; --length) {
      letters += static_cast<char>('a' + stream.below(26));
    }
    words.push_back(letters + " ");
  }
  Bytes text;
  while (text.size() < size) {
    const std::string& word = words[stream.below(1 + stream.below(2000))];
    text.insert(text.end(), word.begin(), word.end());
  }
  text.resize(size);
  return text;
}

Bytes noise(std::size_t size) {
  RandomStream stream(2, "noise");
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(stream.next_u32());
  return bytes;
}

TEST_F(CompressorsTest, OneByteCostsItsHeaders) {
  // gzip: ten bytes of header, three of a block with one literal (3 bits of type, 8 of the letter, 7 of the end: 18
  // bits), four of checksum and four of length.
  EXPECT_EQ(gzip_bits_per_byte(Bytes{'a'}), 8.0 * 21);
  // xz: headers of stream (12) and block (12), LZMA2 of one literal stored (3 + 1 + 1, padded to 8), CRC64 (8), index
  // (8) and footer (12).
  EXPECT_EQ(xz_bits_per_byte(Bytes{'a'}), 8.0 * 60);
}

TEST_F(CompressorsTest, NoiseCannotBeCompressedAndOneByteAMillionTimesNearlyVanishes) {
  const Bytes bytes = noise(100'000);
  EXPECT_GT(gzip_bits_per_byte(bytes), 8.0);
  EXPECT_LT(gzip_bits_per_byte(bytes), 8.01);
  EXPECT_GT(xz_bits_per_byte(bytes), 8.0);
  EXPECT_LT(xz_bits_per_byte(bytes), 8.01);
  const Bytes same(1'000'000, 'x');
  // A deflate match is 258 bytes long and costs at least two bits.
  EXPECT_GT(gzip_bits_per_byte(same), 2.0 / 258);
  EXPECT_LT(gzip_bits_per_byte(same), 0.01);
  EXPECT_GT(xz_bits_per_byte(same), 0.0);
  EXPECT_LT(xz_bits_per_byte(same), 0.003);
}

TEST_F(CompressorsTest, RepetitionFartherThanGzipSeesIsFoundByXz) {
  // gzip looks back 32 KiB, xz as far as the text goes: the second copy of 300 kB of noise is free only for xz.
  Bytes twice = noise(300'000);
  const Bytes copy = twice;
  twice.insert(twice.end(), copy.begin(), copy.end());
  EXPECT_GT(gzip_bits_per_byte(twice), 8.0);
  EXPECT_NEAR(xz_bits_per_byte(twice), 4.0, 0.02);
}

TEST_F(CompressorsTest, SizesAreThoseOfTheProgramsWithinOnePercent) {
  const Bytes text = made_up_text(300'000);
  const double gzip = program_bits_per_byte("gzip -9", text);
  const double xz = program_bits_per_byte("xz -9", text);
  if (gzip < 0.0 || xz < 0.0) GTEST_SKIP() << "the programs gzip and xz are not both there";
  EXPECT_NEAR(gzip_bits_per_byte(text), gzip, 0.01 * gzip);
  EXPECT_NEAR(xz_bits_per_byte(text), xz, 0.01 * xz);
}

TEST_F(CompressorsTest, NoTextIsRefused) {
  EXPECT_THROW(gzip_bits_per_byte({}), InputError);
  EXPECT_THROW(xz_bits_per_byte({}), InputError);
}

TEST_F(CompressorsTest, TailOfTheDictionaryTakesAbout260And209HundredthsOfABit) {
  const std::filesystem::path path = "/usr/share/dictd/gcide.dict.dz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there; install dict-gcide";
  const ByteCorpus corpus(path);
  const auto tail = corpus.bytes().last(2'000'000);
  const double gzip = gzip_bits_per_byte(tail);
  const double xz = xz_bits_per_byte(tail);
  RecordProperty("gzip", std::to_string(gzip));
  RecordProperty("xz", std::to_string(xz));
  EXPECT_NEAR(gzip, 2.60, 0.03);
  EXPECT_NEAR(xz, 2.09, 0.03);
  const double gzip_program = program_bits_per_byte("gzip -9", tail);
  const double xz_program = program_bits_per_byte("xz -9", tail);
  if (gzip_program > 0.0) {
    EXPECT_NEAR(gzip, gzip_program, 0.01 * gzip_program);
  }
  if (xz_program > 0.0) {
    EXPECT_NEAR(xz, xz_program, 0.01 * xz_program);
  }
}

}  // namespace
}  // namespace routing::compressors_test
