// Files that survive a crash. What is replaced is replaced in one step: who reads the path sees the old bytes or the
// new ones, never a part. Every failure is a FileError "<path>: cannot be …: <the system's reason>; <what to do>".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace routing {

// Writes a file in pieces; it takes its place only with commit().
//
// Until then everything goes to a temporary sibling, "<path>.part-<process>-<count>". Any failure, and a destructor
// without commit(), removes the sibling and leaves the old file as it was. A process killed in between leaves the
// sibling behind; it may be deleted.
class AtomicFile {
 public:
  // Opens the sibling. Refuses a path that is a folder, a device or a pipe.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends all bytes or throws. After a failure the file is given up: the next call throws as well.
  void write(std::span<const std::byte> bytes);

  // Writes over the first bytes, which must have been written before: for headers that are known only at the end.
  void rewrite_start(std::span<const std::byte> bytes);

  // Brings everything safely to the disk, renames the sibling to the path, and brings the new name to the disk. Only
  // that last step can fail with the new file already in place; the message then says so.
  void commit();

 private:
  void require_open() const;
  [[noreturn]] void give_up(int reason);

  std::filesystem::path path_;
  std::filesystem::path sibling_;
  int file_ = -1;
  std::uint64_t written_ = 0;
};

// An AtomicFile with a single write.
void write_file_at_once(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_at_once(const std::filesystem::path& path, std::string_view text);

// Appends to a file, for logs. Each write is one piece: if the disk is full, the file keeps its former length.
class AppendFile {
 public:
  enum class Mode { create_or_append, create_new };

  // create_new throws if the path exists already.
  explicit AppendFile(std::filesystem::path path, Mode mode = Mode::create_or_append);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;

  // The bytes are with the system on return: a crash of the program cannot lose them, only one of the machine.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  // Brings everything written to the disk.
  void sync();

  // Forgets everything from this length on; size must not be larger than size().
  void truncate(std::uint64_t size);

  std::uint64_t size() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

// Brings names created, renamed or removed in the folder to the disk. Does nothing on file systems that cannot.
void sync_folder(const std::filesystem::path& folder);

// Makes a folder and those above it that are missing, and brings their names to the disk: what is put into them later
// is no safer than they are. Gives the system's reason if that cannot be.
std::error_code make_folders(const std::filesystem::path& folder);

// All bytes of a file, also of one whose size is not known before, such as a pipe.
std::string read_file(const std::filesystem::path& path);

// A file as memory, read only; pages come from the disk when touched. An empty file is an empty span. Refuses a folder,
// a device or a pipe, without waiting for one. The file must not be shortened by others in the meantime: touching what
// is gone ends the process. Files that are replaced in one step, as above, are safe.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace routing
