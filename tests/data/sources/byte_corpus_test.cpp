#include "routing/data/sources/byte_corpus.h"

#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/data/sources/split.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <utility>

namespace routing::byte_corpus_test {
namespace {

class ByteCorpusTest : public TemporaryFolderTest {};

// "abc" in one member, written by hand: header, one stored block (last, 3 bytes, the complement of 3), CRC-32
// 0x352441C2 of "abc", and its length.
std::string member_abc() {
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + std::string("\x01\x03\0\xfc\xff", 5) + "abc" +
         std::string("\xc2\x41\x24\x35\x03\0\0\0", 8);
}

// Nothing at all: an empty stored block, CRC 0, length 0.
std::string member_of_nothing() {
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + std::string("\x01\0\0\xff\xff", 5) + std::string(8, '\0');
}

std::string message_for(const std::filesystem::path& path) {
  try {
    const ByteCorpus corpus(path);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ByteCorpusTest, PlainFileIsItsBytes) {
  const std::string text("\0 text \xff", 8);
  const ByteCorpus corpus(write("any.bin", text));
  EXPECT_EQ(as_text(corpus.bytes()), text);
  EXPECT_EQ(corpus.size(), 8);
  EXPECT_EQ(corpus.path(), folder() / "any.bin");
}

TEST_F(ByteCorpusTest, PartsAreTheirBytes) {
  const ByteCorpus corpus(write("text", "abcdef"));
  EXPECT_EQ(as_text(corpus.part({1, 3})), "bc");
  EXPECT_EQ(as_text(corpus.part({6, 6})), "");
  EXPECT_THROW(corpus.part({-1, 2}), InputError);
  EXPECT_THROW(corpus.part({4, 7}), InputError);
  EXPECT_THROW(corpus.part({3, 2}), InputError);
}

TEST_F(ByteCorpusTest, GzipFileIsWhatItHoldsWhateverTheCaseOfItsEnding) {
  for (const char* name : {"text.gz", "text.dz", "text.dict.DZ", "text.GZ"}) {
    EXPECT_EQ(as_text(ByteCorpus(write(name, member_abc())).bytes()), "abc") << name;
  }
}

TEST_F(ByteCorpusTest, GzipBytesUnderAnotherNameStayAsTheyAre) {
  EXPECT_EQ(as_text(ByteCorpus(write("text", member_abc())).bytes()), member_abc());
}

TEST_F(ByteCorpusTest, MembersFollowEachOtherAndZerosBehindTheLastAreIgnored) {
  const std::string members = member_abc() + member_of_nothing() + member_abc() + std::string(1000, '\0');
  EXPECT_EQ(as_text(ByteCorpus(write("text.gz", members)).bytes()), "abcabc");
}

TEST_F(ByteCorpusTest, CorpusCanBeMoved) {
  ByteCorpus mapped(write("text", "mapped"));
  ByteCorpus unpacked(write("text.gz", member_abc()));
  const ByteCorpus first = std::move(mapped);
  const ByteCorpus second = std::move(unpacked);
  EXPECT_EQ(as_text(first.bytes()), "mapped");
  EXPECT_EQ(as_text(second.bytes()), "abc");
}

TEST_F(ByteCorpusTest, CutOffAtAnyByteIsRefused) {
  const std::string whole = member_abc();
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const std::string message = message_for(write("cut.gz", whole.substr(0, length)));
    EXPECT_TRUE(holds(message, "cut.gz: cannot be decompressed: it ends in the middle")) << length << ": " << message;
    EXPECT_TRUE(holds(message, "fetch it again")) << message;
  }
}

TEST_F(ByteCorpusTest, DamagedTextIsFoundByItsChecksum) {
  std::string damaged = member_abc();
  damaged[16] = 'B';
  const std::string message = message_for(write("damaged.gz", damaged));
  EXPECT_TRUE(holds(message, "damaged.gz: cannot be decompressed: incorrect data check near byte")) << message;
}

TEST_F(ByteCorpusTest, FileThatIsNotGzipOrHasOtherBytesBehindItIsRefused) {
  for (const std::string& bytes : {std::string("plain text"), member_abc() + "plain text"}) {
    const std::string message = message_for(write("plain.gz", bytes));
    EXPECT_TRUE(holds(message, "incorrect header check")) << message;
    EXPECT_TRUE(holds(message, "rename it if it is not gzip")) << message;
  }
}

TEST_F(ByteCorpusTest, EmptyFilesAreRefusedCompressedOrNot) {
  for (const char* name : {"empty", "empty.gz"}) {
    EXPECT_EQ(message_for(write(name, "")),
              (folder() / name).string() + ": has 0 bytes; name a file with something in it");
  }
  EXPECT_TRUE(holds(message_for(write("nothing.gz", member_of_nothing())), "holds 0 bytes when decompressed"));
}

TEST_F(ByteCorpusTest, MissingFilesAndFoldersAreRefusedByName) {
  EXPECT_TRUE(holds(message_for(folder() / "none.gz"), (folder() / "none.gz").string() + ": cannot be read"));
  EXPECT_TRUE(holds(message_for(folder() / "none"), (folder() / "none").string() + ": cannot be read"));
  std::filesystem::create_directories(folder() / "folder.gz");
  EXPECT_TRUE(holds(message_for(folder() / "folder.gz"), "is a folder"));
}

TEST_F(ByteCorpusTest, PipesAreRefusedWithoutWaitingForAWriter) {
  for (const char* name : {"pipe", "pipe.gz"}) {
    ASSERT_EQ(::mkfifo((folder() / name).c_str(), 0600), 0);
    EXPECT_TRUE(holds(message_for(folder() / name), "it is a device or a pipe")) << name;
  }
}

// Debian's dict-gcide: dictzip with its extra field and tens of megabytes.
TEST_F(ByteCorpusTest, DictionaryIsWhatTheGzipProgramMakesOfIt) {
  const std::filesystem::path packed = "/usr/share/dictd/gcide.dict.dz";
  if (!std::filesystem::exists(packed)) GTEST_SKIP() << packed << " is not there; install dict-gcide";
  const auto unpacked = folder() / "gcide.dict";
  if (std::system(("gzip -dc < " + packed.string() + " > " + unpacked.string()).c_str()) != 0) {
    GTEST_SKIP() << "the program gzip is not there";
  }
  const ByteCorpus ours(packed);
  const ByteCorpus theirs(unpacked);
  EXPECT_EQ(ours.size(), theirs.size());
  EXPECT_TRUE(std::ranges::equal(ours.bytes(), theirs.bytes()));
}

TEST_F(ByteCorpusTest, Enwik8IsMappedWholeAndSplitInOrder) {
  const char* const data = std::getenv("ROUTING_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  const auto path = std::filesystem::path(data) / "enwik8" / "enwik8";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const ByteCorpus corpus(path);
  EXPECT_EQ(corpus.size(), static_cast<std::int64_t>(std::filesystem::file_size(path)));
  EXPECT_TRUE(as_text(corpus.bytes().first(200)).starts_with("<mediawiki xmlns=\"http://www.mediawiki.org/"));
  const CorpusSplit split = split_corpus("90%/5%/5%", corpus.size(), path);
  EXPECT_EQ(split.train.begin, 0);
  EXPECT_EQ(split.train.end, corpus.size() * 9 / 10);
  EXPECT_EQ(split.valid.end, corpus.size() * 19 / 20);
  EXPECT_EQ(split.test.end, corpus.size());
}

}  // namespace
}  // namespace routing::byte_corpus_test
