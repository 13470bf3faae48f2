// What the system says of a file without reading it, and files opened so that nothing but a plain file is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace routing {

// Equal facts: the same bytes, as far as can be told from outside. A path that is not there has none, and a link
// its own.
struct FileFacts {
  bool there = false;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t changed = 0;  // nanoseconds since 1970
  friend bool operator==(const FileFacts&, const FileFacts&) = default;

  // Had nothing happened to it for so long that another change would have had another time? Clocks of files are coarse.
  // `now` counts as `changed` does.
  bool settled(std::int64_t now) const;
  bool same_file(const FileFacts& other) const {
    return there && other.there && device == other.device && inode == other.inode;
  }
};
FileFacts facts_of(const std::filesystem::path& path);
std::int64_t nanoseconds_now();

// A regular file that is not a link. Others (folders, pipes, devices, links) are refused without waiting for one.
class PlainFile {
 public:
  // Throws a FileError.
  explicit PlainFile(const std::filesystem::path& path);
  ~PlainFile();
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  const FileFacts& facts() const { return facts_; }
  // Up to `count` bytes from there on: fewer where the file ends before. Throws a FileError.
  std::string read(std::int64_t offset, std::int64_t count) const;

 private:
  std::filesystem::path path_;
  int file_ = -1;
  FileFacts facts_;
};

}  // namespace routing
