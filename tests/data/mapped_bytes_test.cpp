#include "routing/data/mapped_bytes.h"

#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace routing {
namespace {

class MappedBytesTest : public TemporaryFolderTest {};

std::string message_for(const std::filesystem::path& path) {
  try {
    const MappedBytes bytes(path);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST_F(MappedBytesTest, HoldsEveryByteOfTheFileInOrder) {
  const std::string text("a\0\xff\n", 4);
  const MappedBytes mapped(write("file", text));
  EXPECT_EQ(as_text(mapped.bytes()), text);
}

TEST_F(MappedBytesTest, SurvivesAMoveAndAnAssignment) {
  MappedBytes first(write("first", "one"));
  MappedBytes second(write("second", "second"));
  MappedBytes moved(std::move(first));
  EXPECT_EQ(as_text(moved.bytes()), "one");
  moved = std::move(second);
  EXPECT_EQ(as_text(moved.bytes()), "second");
}

TEST_F(MappedBytesTest, StaysWholeWhenTheFileIsReplacedOrRemoved) {
  const auto path = write("file", "old bytes");
  const MappedBytes mapped(path);
  std::filesystem::rename(write("other", "new"), path);
  EXPECT_EQ(as_text(mapped.bytes()), "old bytes");
  std::filesystem::remove(path);
  EXPECT_EQ(as_text(mapped.bytes()), "old bytes");
}

TEST_F(MappedBytesTest, MissingFileIsRefusedWithPathReasonAndRemedy) {
  EXPECT_EQ(message_for(folder() / "none"),
            (folder() / "none").string() +
                ": cannot be read: No such file or directory; check the name, it must be an existing file");
}

TEST_F(MappedBytesTest, EmptyFileIsRefused) {
  const auto path = write("empty", "");
  EXPECT_EQ(message_for(path), path.string() + ": has 0 bytes; name a file with something in it");
}

TEST_F(MappedBytesTest, FolderIsRefused) {
  EXPECT_EQ(message_for(folder()), folder().string() + ": is a folder, not a file; name one file in it");
}

TEST_F(MappedBytesTest, PipeIsRefusedWithoutWaitingForAWriter) {
  const auto path = folder() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(message_for(path).find("is a pipe or a device"), std::string::npos) << message_for(path);
}

TEST_F(MappedBytesTest, FileThatMayNotBeReadIsRefused) {
  const auto path = write("secret", "text");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  // Root may read everything, so it becomes somebody else for the length of this test.
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const std::string message = message_for(path);
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(message, path.string() + ": cannot be read: Permission denied; ask for the right to read it");
}

}  // namespace
}  // namespace routing
