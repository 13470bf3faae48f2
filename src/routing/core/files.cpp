#include "routing/core/files.h"

#include "routing/core/error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace routing {
namespace {

constexpr mode_t kFileMode = 0666;  // less what the user's umask takes away

const char* remedy_for_writing(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "free some space or choose a folder on another disk";
    case EFBIG:
      return "raise the largest allowed size of a file (ulimit -f) or choose another disk";
    case EISDIR:
      return "this is a folder, choose the name of a file";
    case EIO:
      return "the disk reports a fault, choose a folder on another one";
    default:
      return "choose a file in a folder that exists and that you may write to";
  }
}

const char* remedy_for_reading(int reason) {
  switch (reason) {
    case ENOENT:
    case ENOTDIR:
      return "check the name";
    case EISDIR:
      return "this is a folder, name a file in it";
    case EACCES:
    case EPERM:
      return "ask its owner for the right to read it";
    case ENOMEM:
      return "free some memory or take a smaller file";
    default:
      return "check that the disk is there and sound";
  }
}

[[noreturn]] void throw_cannot_write(const std::filesystem::path& path, int reason) {
  throw FileError(path.string() + ": cannot be written: " + std::generic_category().message(reason) + "; " +
                  remedy_for_writing(reason));
}

[[noreturn]] void throw_cannot_read(const std::filesystem::path& path, int reason) {
  throw FileError(path.string() + ": cannot be read: " + std::generic_category().message(reason) + "; " +
                  remedy_for_reading(reason));
}

// Closes on every way out of a function.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// A signal may interrupt a call on a file of a network or of user space before anything has happened.
template <class Call>
int uninterrupted(const Call& call) {
  int result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_file(const std::filesystem::path& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
}

int sync_file(int file) {
  return uninterrupted([&] { return ::fsync(file); });
}

// The file is closed even if that was interrupted: another call could close somebody else's.
int close_file(int file) {
  return ::close(file) != 0 && errno != EINTR ? -1 : 0;
}

// Returns 0, or the reason why not every byte was taken.
int write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

// Returns 0 or the reason.
int sync_folder_or_reason(const std::filesystem::path& folder) {
  const Descriptor file(open_file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY));
  if (file.number() < 0) return errno;
  if (sync_file(file.number()) == 0) return 0;
  // Network and user-space file systems may know no such thing; there is nothing more that we could do.
  return errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

int open_for_reading(const std::filesystem::path& path, int extra = 0) {
  const int file = open_file(path, O_RDONLY | extra);
  if (file < 0) throw_cannot_read(path, errno);
  return file;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), sibling_(path_) {
  struct stat old {};
  if (::stat(path_.c_str(), &old) == 0) {
    if (S_ISDIR(old.st_mode)) throw_cannot_write(path_, EISDIR);
    // The rename would put an ordinary file in the place of, say, /dev/null.
    require<FileError>(S_ISREG(old.st_mode), path_.string(),
                       ": cannot be written: it is a device or a pipe; choose the name of an ordinary file");
  }
  // A sibling, because a rename is one step only inside one file system; the count, because threads may write side by
  // side.
  static std::atomic<unsigned> count{0};
  sibling_ += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  file_ = open_file(sibling_, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (file_ < 0) throw_cannot_write(path_, errno);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(sibling_.c_str());
}

void AtomicFile::require_open() const {
  require<FileError>(file_ >= 0, path_.string(),
                     ": cannot be written: it was committed or given up before; open it anew");
}

void AtomicFile::give_up(int reason) {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  ::unlink(sibling_.c_str());
  throw_cannot_write(path_, reason);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  require_open();
  const int reason = write_all(file_, bytes);
  if (reason != 0) give_up(reason);
  written_ += bytes.size();
}

void AtomicFile::rewrite_start(std::span<const std::byte> bytes) {
  require_open();
  require<InputError>(bytes.size() <= written_, path_.string(), ": the first ", bytes.size(),
                      " bytes cannot be written again, as only ", written_, " were written");
  if (::lseek(file_, 0, SEEK_SET) < 0) give_up(errno);
  const int reason = write_all(file_, bytes);
  if (reason != 0) give_up(reason);
  if (::lseek(file_, 0, SEEK_END) < 0) give_up(errno);
}

void AtomicFile::commit() {
  require_open();
  if (sync_file(file_) != 0) give_up(errno);
  if (close_file(std::exchange(file_, -1)) != 0) give_up(errno);
  if (::rename(sibling_.c_str(), path_.c_str()) != 0) give_up(errno);
  const int reason = sync_folder_or_reason(path_.parent_path());
  require<FileError>(reason == 0, path_.string(),
                     ": is written, but its folder cannot be synced: ", std::generic_category().message(reason),
                     "; the file may be missing after a power failure");
}

void write_file_at_once(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_at_once(const std::filesystem::path& path, std::string_view text) {
  write_file_at_once(path, bytes_of(text));
}

AppendFile::AppendFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  const int extra = mode == Mode::create_new ? O_EXCL : 0;
  file_ = open_file(path_, O_WRONLY | O_CREAT | O_APPEND | extra);
  if (file_ < 0) throw_cannot_write(path_, errno);
}

AppendFile::~AppendFile() {
  if (file_ >= 0) ::close(file_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

void AppendFile::write(std::span<const std::byte> bytes) {
  const std::uint64_t before = size();
  const int reason = write_all(file_, bytes);
  if (reason == 0) return;
  // Should this fail as well, readers find a torn end; the reason to report is still the first one.
  [[maybe_unused]] const int restored = ::ftruncate(file_, static_cast<off_t>(before));
  throw_cannot_write(path_, reason);
}

void AppendFile::write(std::string_view text) {
  write(bytes_of(text));
}

void AppendFile::sync() {
  if (sync_file(file_) != 0) throw_cannot_write(path_, errno);
}

void AppendFile::truncate(std::uint64_t size) {
  require<InputError>(size <= this->size(), path_.string(), ": cannot be cut to ", size, " bytes, it has only ",
                      this->size(), "; give a smaller length");
  if (uninterrupted([&] { return ::ftruncate(file_, static_cast<off_t>(size)); }) != 0)
    throw_cannot_write(path_, errno);
}

std::uint64_t AppendFile::size() const {
  struct stat state {};
  if (::fstat(file_, &state) != 0) throw_cannot_write(path_, errno);
  return static_cast<std::uint64_t>(state.st_size);
}

void sync_folder(const std::filesystem::path& folder) {
  const int reason = sync_folder_or_reason(folder);
  require<FileError>(reason == 0, folder.string(), ": cannot be synced: ", std::generic_category().message(reason),
                     "; check that the folder exists and that you may read it");
}

std::error_code make_folders(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> made;
  for (fs::path each = fs::absolute(folder); !fs::exists(each, error) && each.has_relative_path();
       each = each.parent_path()) {
    if (each.has_filename()) made.push_back(each);
  }
  error.clear();
  fs::create_directories(folder, error);
  for (const fs::path& each : made) {
    const int reason = error ? 0 : sync_folder_or_reason(each.parent_path());
    if (reason != 0) error = {reason, std::generic_category()};
  }
  return error;
}

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(open_for_reading(path));
  struct stat state {};
  if (::fstat(file.number(), &state) != 0) throw_cannot_read(path, errno);
  std::string text;
  std::size_t filled = 0;
  // One more than the size, so that the end is seen without growing.
  constexpr std::size_t kSmallest = 4096;
  text.resize(std::max(kSmallest, static_cast<std::size_t>(state.st_size) + 1));
  for (;;) {
    if (filled == text.size()) text.resize(2 * text.size());
    const ssize_t count = ::read(file.number(), text.data() + filled, text.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_cannot_read(path, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  text.resize(filled);
  return text;
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK a pipe would wait here for somebody to write to it, only to be refused.
  const Descriptor file(open_for_reading(path, O_NONBLOCK));
  struct stat state {};
  if (::fstat(file.number(), &state) != 0) throw_cannot_read(path, errno);
  if (S_ISDIR(state.st_mode)) throw_cannot_read(path, EISDIR);
  require<FileError>(S_ISREG(state.st_mode), path.string(),
                     ": cannot be read: it is a device or a pipe; name an ordinary file");
  // The system refuses to map nothing.
  if (state.st_size == 0) return;
  const auto size = static_cast<std::size_t>(state.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) throw_cannot_read(path, errno);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace routing
