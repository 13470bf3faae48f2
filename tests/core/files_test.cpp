#include "routing/core/files.h"

#include "routing/core/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <utility>
#include <vector>

namespace routing::files_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void put(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(WriteFileAtOnce, ReplacesTheOldBytesAndLeavesNoTemporary) {
  const TemporaryFolder folder;
  put(folder / "a", "the old and longer text");
  write_file_at_once(folder / "a", std::string_view("new\0text", 8));
  EXPECT_EQ(text_of(folder / "a"), std::string("new\0text", 8));
  write_file_at_once(folder / "b", std::string_view());
  EXPECT_EQ(fs::file_size(folder / "b"), 0U);
  EXPECT_EQ(folder.num_entries(), 2U);
}

TEST(WriteFileAtOnce, WritesANameWithoutAFolderIntoTheCurrentOne) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file_at_once("plain", std::string_view("text"));
  fs::current_path(before);
  EXPECT_EQ(text_of(folder / "plain"), "text");
}

TEST(WriteFileAtOnce, GivesTheFileTheRightsThatTheUserWants) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_file_at_once(folder / "a", std::string_view("text"));
  ::umask(before);
  EXPECT_EQ(static_cast<unsigned>(fs::status(folder / "a").permissions()), 0640U);
}

TEST(WriteFileAtOnce, NamesPathReasonAndRemedy) {
  const TemporaryFolder folder;
  const fs::path missing = folder / "missing" / "a";
  EXPECT_EQ(message_of<FileError>([&] { write_file_at_once(missing, std::string_view("text")); }),
            missing.string() +
                ": cannot be written: No such file or directory; choose a file in a folder that exists and "
                "that you may write to");
  EXPECT_EQ(
      message_of<FileError>([&] { write_file_at_once(folder.path(), std::string_view("text")); }),
      folder.path().string() + ": cannot be written: Is a directory; this is a folder, choose the name of a file");
  EXPECT_EQ(folder.num_entries(), 0U);
}

TEST(WriteFileAtOnce, RefusesToReplaceADeviceOrAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of<FileError>([&] { write_file_at_once(folder / "pipe", std::string_view("text")); }),
            (folder / "pipe").string() +
                ": cannot be written: it is a device or a pipe; choose the name of an ordinary file");
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST(WriteFileAtOnce, ThreadsThatWriteOnePathNeverMixTheirBytes) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    threads.emplace_back([&, letter] {
      for (int time = 0; time < 10; ++time) write_file_at_once(folder / "a", std::string(10000, letter));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = text_of(folder / "a");
  EXPECT_EQ(text, std::string(10000, text.at(0)));
  EXPECT_EQ(folder.num_entries(), 1U);
}

TEST(AtomicFile, ShowsNothingBeforeCommitAndAllAfter) {
  const TemporaryFolder folder;
  put(folder / "a", "old");
  AtomicFile file(folder / "a");
  file.write(bytes_of("one, "));
  file.write({});
  file.write(bytes_of("two"));
  EXPECT_EQ(text_of(folder / "a"), "old");
  EXPECT_EQ(folder.num_entries(), 2U);
  file.commit();
  EXPECT_EQ(text_of(folder / "a"), "one, two");
  EXPECT_EQ(folder.num_entries(), 1U);
}

TEST(AtomicFile, WithoutCommitLeavesTheOldFileAlone) {
  const TemporaryFolder folder;
  put(folder / "a", "old");
  { AtomicFile(folder / "a").write(bytes_of("new")); }
  EXPECT_EQ(text_of(folder / "a"), "old");
  EXPECT_EQ(folder.num_entries(), 1U);
}

TEST(AtomicFile, ItsStartCanBeWrittenAgain) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "f");
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); };
  file.write(bytes("head body"));
  file.rewrite_start(bytes("HEAD"));
  file.write(bytes(" more"));
  EXPECT_THROW(file.rewrite_start(bytes("longer than all of it")), InputError);
  file.commit();
  EXPECT_EQ(read_file(folder / "f"), "HEAD body more");
}

TEST(AtomicFile, RefusesBytesAfterCommit) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.commit();
  EXPECT_THROW(file.write(bytes_of("late")), FileError);
  EXPECT_THROW(file.commit(), FileError);
  EXPECT_EQ(text_of(folder / "a"), "");
}

TEST(AtomicFile, AFailedRenameRemovesTheTemporary) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.write(bytes_of("new"));
  fs::create_directory(folder / "a");
  EXPECT_EQ(
      message_of<FileError>([&] { file.commit(); }),
      (folder / "a").string() + ": cannot be written: Is a directory; this is a folder, choose the name of a file");
  EXPECT_EQ(folder.num_entries(), 1U);
  EXPECT_THROW(file.commit(), FileError);
}

TEST(AppendFile, GoesOnWhereTheFileEnds) {
  const TemporaryFolder folder;
  put(folder / "a", "old ");
  AppendFile file(folder / "a");
  file.write("and new");
  file.write(bytes_of("!"));
  EXPECT_EQ(text_of(folder / "a"), "old and new!");
  EXPECT_EQ(file.size(), 12U);
  EXPECT_EQ(file.path(), folder / "a");
  file.truncate(3);
  file.write("er");
  file.sync();
  EXPECT_EQ(text_of(folder / "a"), "older");
  EXPECT_THROW(file.truncate(6), InputError);
}

TEST(AppendFile, AsNewRefusesAFileThatExists) {
  const TemporaryFolder folder;
  put(folder / "a", "old");
  EXPECT_EQ(message_of<FileError>([&] { AppendFile(folder / "a", AppendFile::Mode::create_new); }),
            (folder / "a").string() +
                ": cannot be written: File exists; choose a file in a folder that exists and that you may write to");
  AppendFile moved = AppendFile(folder / "b", AppendFile::Mode::create_new);
  AppendFile other(folder / "c");
  other = std::move(moved);
  other.write("text");
  EXPECT_EQ(text_of(folder / "b"), "text");
}

TEST(SyncFolder, ThrowsOnlyWhereThereIsNoFolder) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(sync_folder(folder.path()));
  EXPECT_NO_THROW(sync_folder(""));
  EXPECT_EQ(message_of<FileError>([&] { sync_folder(folder / "missing"); }),
            (folder / "missing").string() +
                ": cannot be synced: No such file or directory; check that the folder exists and that you may read it");
}

TEST(MakeFolders, MakesAllThatAreMissingOrGivesTheReason) {
  const TemporaryFolder folder;
  EXPECT_FALSE(make_folders(folder / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  EXPECT_FALSE(make_folders(folder / "a/b/c")) << "what is there already is well";
  EXPECT_FALSE(make_folders(folder / "a/d/"));
  EXPECT_TRUE(fs::is_directory(folder / "a/d"));
  write_file_at_once(folder / "file", std::string("x"));
  EXPECT_EQ(make_folders(folder / "file/inside"), std::errc::not_a_directory);
}

TEST(ReadFile, ReturnsEveryByte) {
  const TemporaryFolder folder;
  // Around the size of the first buffer, where reading might stop early.
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 100000U}) {
    std::string text(size, '\0');
    for (std::size_t at = 0; at < size; ++at) text[at] = static_cast<char>(at * 7);
    put(folder / "a", text);
    EXPECT_EQ(read_file(folder / "a"), text) << size;
  }
}

TEST(ReadFile, ReadsAPipeToItsEnd) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string text(100000, 'x');
  std::thread writer([&] { put(folder / "pipe", text); });
  EXPECT_EQ(read_file(folder / "pipe"), text);
  writer.join();
}

TEST(ReadFile, NamesPathReasonAndRemedy) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<FileError>([&] { read_file(folder / "missing"); }),
            (folder / "missing").string() + ": cannot be read: No such file or directory; check the name");
  EXPECT_EQ(message_of<FileError>([&] { read_file(folder.path()); }),
            folder.path().string() + ": cannot be read: Is a directory; this is a folder, name a file in it");
}

TEST(MappedFile, IsTheBytesOfTheFile) {
  const TemporaryFolder folder;
  const std::string text("a\0\xff\n text", 9);
  put(folder / "a", text);
  const MappedFile file(folder / "a");
  EXPECT_EQ(file.size(), 9U);
  EXPECT_EQ(text_of(file.bytes()), text);
  put(folder / "b", "");
  EXPECT_EQ(MappedFile(folder / "b").size(), 0U);
  EXPECT_TRUE(MappedFile(folder / "b").bytes().empty());
}

TEST(MappedFile, KeepsTheOldBytesWhenTheFileIsReplacedOrRemoved) {
  const TemporaryFolder folder;
  put(folder / "a", "old bytes");
  const MappedFile file(folder / "a");
  write_file_at_once(folder / "a", std::string_view("new"));
  EXPECT_EQ(text_of(file.bytes()), "old bytes");
  fs::remove(folder / "a");
  EXPECT_EQ(text_of(file.bytes()), "old bytes");
}

TEST(MappedFile, Moves) {
  const TemporaryFolder folder;
  put(folder / "a", "a");
  put(folder / "b", "bb");
  MappedFile first(folder / "a");
  MappedFile second(std::move(first));
  EXPECT_EQ(text_of(second.bytes()), "a");
  MappedFile third(folder / "b");
  third = std::move(second);
  EXPECT_EQ(text_of(third.bytes()), "a");
}

TEST(MappedFile, NamesPathReasonAndRemedy) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<FileError>([&] { MappedFile(folder / "missing"); }),
            (folder / "missing").string() + ": cannot be read: No such file or directory; check the name");
  EXPECT_EQ(message_of<FileError>([&] { MappedFile{folder.path()}; }),
            folder.path().string() + ": cannot be read: Is a directory; this is a folder, name a file in it");
  EXPECT_EQ(message_of<FileError>([&] { MappedFile("/dev/null"); }),
            "/dev/null: cannot be read: it is a device or a pipe; name an ordinary file");
}

TEST(MappedFile, RefusesAPipeWithoutWaitingForAWriter) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of<FileError>([&] { MappedFile(folder / "pipe"); }),
            (folder / "pipe").string() + ": cannot be read: it is a device or a pipe; name an ordinary file");
}

TEST(MappedFile, NamesTheMissingRightToRead) {
  const TemporaryFolder folder;
  put(folder / "secret", "x");
  fs::permissions(folder / "secret", fs::perms::none);
  // Root may read everything, so root becomes somebody else for a moment.
  const bool root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(!root || ::seteuid(kNobody) == 0);
  const std::string message = message_of<FileError>([&] { MappedFile(folder / "secret"); });
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
  EXPECT_EQ(message, (folder / "secret").string() +
                         ": cannot be read: Permission denied; ask its owner for the right to read it");
}

}  // namespace
}  // namespace routing::files_test
