// Files beyond 4 GiB, most of which is a hole: places and counts that 32 bits do not hold.
#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/data/shard.h"
#include "routing/data/sources/byte_corpus.h"
#include "routing/data/sources/split.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace routing::sparse_files_test {
namespace {

constexpr std::int64_t kFar = (std::int64_t{1} << 32U) + 12345;

// Makes the file so long, with these bytes at a place; false where the disk knows no holes of that size.
bool write_far(const std::filesystem::path& path, std::int64_t size, std::int64_t place, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const bool done = file >= 0 && ::ftruncate(file, size) == 0 &&
                    ::pwrite(file, bytes.data(), bytes.size(), place) == static_cast<ssize_t>(bytes.size());
  if (file >= 0) ::close(file);
  return done;
}

std::string text_of(std::span<const std::uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST(SparseFiles, ACorpusIsReadBeyondFourGibibytes) {
  const TemporaryFolder folder;
  if (!write_far(folder / "text", kFar + 5, kFar, "hello")) GTEST_SKIP() << "no room for a file with a hole";
  const ByteCorpus corpus(folder / "text");
  EXPECT_EQ(corpus.size(), kFar + 5);
  EXPECT_EQ(text_of(corpus.part({.begin = kFar, .end = kFar + 5})), "hello");
  // Everything but the last three bytes is for training.
  const CorpusSplit split = split_corpus("rest/0/3", corpus.size(), "text");
  EXPECT_EQ(split.train.end, kFar + 2);
  EXPECT_EQ(text_of(corpus.part(split.test)), "llo");
  EXPECT_EQ(split_corpus("50%/25%/25%", corpus.size(), "text").valid.begin, (kFar + 5) / 2);
}

// So large a shard is not summed when it is opened, so that its header is all that has to be right.
TEST(SparseFiles, AShardHasIdsBeyondFourBillion) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "train.shard";
  ShardWriter(path, 256, "0123456789abcdef").finish({.documents = 1, .words = 2, .bytes = 3});
  const std::int64_t tokens = kFar + 3;
  constexpr std::size_t kHeader = 128;
  constexpr std::size_t kHashed = 120;
  std::array<char, kHeader> header{};
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::pread(file, header.data(), kHeader, 0), static_cast<ssize_t>(kHeader));
  std::memcpy(header.data() + 16, &tokens, sizeof tokens);
  const std::uint64_t hash = xxhash64(std::as_bytes(std::span(header)).first(kHashed));
  std::memcpy(header.data() + kHashed, &hash, sizeof hash);
  ASSERT_EQ(::pwrite(file, header.data(), kHeader, 0), static_cast<ssize_t>(kHeader));
  ::close(file);
  if (!write_far(path, static_cast<std::int64_t>(kHeader) + tokens, static_cast<std::int64_t>(kHeader) + kFar, "abc")) {
    GTEST_SKIP() << "no room for a file with a hole";
  }
  const Shard shard(path);
  EXPECT_EQ(shard.facts().tokens, tokens);
  EXPECT_EQ(shard.tokens().size(), tokens);
  EXPECT_EQ(shard.tokens()[kFar + 1], 'b');
  std::vector<std::int32_t> last(3);
  shard.tokens().copy(kFar, std::span(last));
  EXPECT_EQ(last, (std::vector<std::int32_t>{'a', 'b', 'c'}));
  EXPECT_EQ(shard.tokens().part(kFar + 2, 1)[0], 'c');
  // One byte less than the header says.
  ASSERT_EQ(::truncate(path.c_str(), static_cast<std::int64_t>(kHeader) + tokens - 1), 0);
  EXPECT_NE(message_of<FileError>([&] { Shard{path}; }).find("but the header says " + std::to_string(tokens)),
            std::string::npos);
}

}  // namespace
}  // namespace routing::sparse_files_test
