#include "routing/data/shard.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace routing::shard_test {
namespace {

using Ids = std::vector<std::int32_t>;

class Shards : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "train.shard"; }

  ShardFacts write(const Ids& ids, std::int64_t vocabulary, const ShardFacts& counts = {}) const {
    ShardWriter writer(file(), vocabulary, "0123456789abcdef");
    // In pieces: they must not matter.
    const auto half = static_cast<std::ptrdiff_t>(ids.size() / 2);
    writer.write(Ids(ids.begin(), ids.begin() + half));
    writer.write(Ids(ids.begin() + half, ids.end()));
    return writer.finish(counts);
  }
  std::string bytes() const { return read_file(file()); }
  void overwrite(std::size_t place, char byte) const {
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(place));
    stream.put(byte);
  }
  std::string refusal() const {
    return message_of<FileError>([&] { Shard{file()}; });
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Shards, GiveBackIdsAndCounts) {
  const Ids ids{5, 0, 299, 7, 7};
  const ShardFacts facts = write(ids, 300, {.documents = 2, .words = 4, .bytes = 17});
  EXPECT_EQ(facts.tokens, 5);
  EXPECT_EQ(facts.vocabulary_size, 300);
  const Shard shard(file());
  EXPECT_EQ(shard.facts(), facts);
  EXPECT_EQ(shard.facts().tokenizer_hash, "0123456789abcdef");
  Ids read(5);
  shard.tokens().copy(0, std::span(read));
  EXPECT_EQ(read, ids);
  EXPECT_EQ(bytes().size(), 128U + 5 * 4) << "32-bit ids behind the header";
  EXPECT_EQ(shard.checksum(), hexadecimal(xxhash64(std::as_bytes(std::span(ids)))));
}

TEST_F(Shards, TakeAByteForEachIdOfASmallVocabulary) {
  write({255, 0, 1}, 256, {.record_length = 3});
  EXPECT_EQ(bytes().substr(128), std::string("\xFF\0\1", 3));
  const Shard shard(file());
  EXPECT_EQ(shard.facts().record_length, 3);
  EXPECT_EQ(shard.tokens()[0], 255);
  EXPECT_EQ(shard.tokens().part(1, 2)[1], 1);
}

TEST_F(Shards, TakeBytesToo) {
  ShardWriter writer(file(), 256, "0123456789abcdef");
  writer.write(std::vector<std::uint8_t>{1, 200});
  EXPECT_EQ(writer.tokens(), 2);
  writer.finish({});
  EXPECT_EQ(Shard(file()).tokens()[1], 200);
}

TEST_F(Shards, MayBeEmpty) {
  write({}, 256);
  EXPECT_TRUE(Shard(file()).tokens().empty());
}

TEST_F(Shards, AppearOnlyWhenFinished) {
  {
    ShardWriter writer(file(), 256, "0123456789abcdef");
    writer.write(Ids{1, 2, 3});
  }
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Shards, IdsOutsideOfTheVocabularyAreRefusedWithTheirPlace) {
  ShardWriter writer(file(), 10, "0123456789abcdef");
  writer.write(Ids{1, 2});
  EXPECT_EQ(message_of<InputError>([&] {
              writer.write(Ids{3, 10});
            }),
            "token 3 is 10, but the vocabulary has 10 types");
  EXPECT_THROW(writer.write(Ids{-1}), InputError);
}

TEST_F(Shards, AWrongChecksumOfTheIdsIsNamed) {
  write({1, 2, 3}, 256);
  overwrite(129, '\x07');
  EXPECT_EQ(refusal(), file().string() + ": the ids have checksum " +
                           hexadecimal(xxhash64(std::as_bytes(std::span("\1\7\3", 3)))) + ", but the header says " +
                           hexadecimal(xxhash64(std::as_bytes(std::span("\1\2\3", 3)))) +
                           "; the file is damaged, prepare the data again with  routing data prepare");
}

TEST_F(Shards, EveryChangedByteIsNoticed) {
  write({1, 2, 300}, 301);
  const std::string whole = bytes();
  for (std::size_t place = 0; place < whole.size(); ++place) {
    overwrite(place, static_cast<char>(whole[place] ^ 1));
    EXPECT_NE(refusal(), "") << place;
    overwrite(place, whole[place]);
  }
  EXPECT_NO_THROW(Shard{file()});
}

// Whoever forges the header can forge its checksum too.
TEST_F(Shards, CountsThatCannotBeAreRefused) {
  write({1, 2, 3}, 256);
  const std::string whole = bytes();
  for (const std::size_t place : {24, 32, 40, 48, 56}) {
    for (const std::uint64_t count : {std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
      std::string forged = whole;
      for (unsigned byte = 0; byte < 8; ++byte) forged[place + byte] = static_cast<char>(count >> (8 * byte) & 0xFFU);
      const std::uint64_t checksum = xxhash64(std::as_bytes(std::span(forged.data(), 120)));
      for (unsigned byte = 0; byte < 8; ++byte) forged[120 + byte] = static_cast<char>(checksum >> (8 * byte) & 0xFFU);
      std::ofstream(file(), std::ios::binary) << forged;
      EXPECT_NE(refusal().find("which cannot be; prepare the data again"), std::string::npos) << place << refusal();
    }
  }
}

TEST_F(Shards, EveryCutAndEveryTailIsNoticed) {
  write({1, 2, 300}, 301);
  const std::string whole = bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(file(), std::ios::binary) << whole.substr(0, length);
    EXPECT_NE(refusal(), "") << length;
  }
  std::ofstream(file(), std::ios::binary) << whole << "tail";
  EXPECT_NE(refusal().find("has 16 bytes of ids, but the header says 3 ids of 4"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace routing::shard_test
