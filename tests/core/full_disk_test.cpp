// A disk that takes no more bytes: by the system's limit on the size of a file, and by a real small file system where
// the test may mount one.
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <sys/mount.h>

namespace routing::full_disk_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLimit = 65536;

// A file system of kLimit bytes in memory, if this process may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path folder) : folder_(std::move(folder)) {
    const std::string size = "size=" + std::to_string(kLimit);
    mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(folder_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  fs::path folder_;
  bool mounted_ = false;
};

void expect_full_disk_leaves_old_files(const TemporaryFolder& folder, const std::string& reason) {
  const fs::path path = folder / "a";
  write_file_at_once(path, std::string_view("old"));
  const std::string large(2 * kLimit, 'x');
  EXPECT_EQ(message_of<FileError>([&] { write_file_at_once(path, large); }), path.string() + reason);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.num_entries(), 1U);

  // In pieces: the second no longer fits, and the file stays given up.
  {
    AtomicFile file(path);
    const std::span<const std::byte> piece = std::as_bytes(std::span(large.data(), kLimit / 2 + 1));
    file.write(piece);
    EXPECT_EQ(message_of<FileError>([&] { file.write(piece); }), path.string() + reason);
    EXPECT_EQ(folder.num_entries(), 1U);
    EXPECT_THROW(file.commit(), FileError);
  }
  EXPECT_EQ(read_file(path), "old");

  // A log keeps its whole lines and goes on when there is room again.
  AppendFile log(folder / "log");
  log.write("first\n");
  EXPECT_EQ(message_of<FileError>([&] { log.write(large); }), (folder / "log").string() + reason);
  EXPECT_EQ(read_file(folder / "log"), "first\n");
  log.write("second\n");
  EXPECT_EQ(read_file(folder / "log"), "first\nsecond\n");
}

TEST(FullDisk, BeyondTheLargestSizeOfAFileLeavesOldFilesWhole) {
  const TemporaryFolder folder;
  const FileSizeLimit limit(kLimit);
  expect_full_disk_leaves_old_files(folder,
                                    ": cannot be written: File too large; raise the largest allowed size of a "
                                    "file (ulimit -f) or choose another disk");
}

TEST(FullDisk, WithoutSpaceLeftLeavesOldFilesWhole) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.mounted()) GTEST_SKIP() << "this process may not mount a small disk";
  expect_full_disk_leaves_old_files(folder,
                                    ": cannot be written: No space left on device; free some space or choose a "
                                    "folder on another disk");
}

// /dev/full accepts being opened and refuses every byte.
TEST(FullDisk, ALogOnAFullDeviceNamesPathAndReason) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  AppendFile log("/dev/full");
  EXPECT_EQ(message_of<FileError>([&] { log.write("text"); }),
            "/dev/full: cannot be written: No space left on device; free some space or choose a folder on another "
            "disk");
}

}  // namespace
}  // namespace routing::full_disk_test
