#include "serve/page/file_facts.h"

#include "routing/core/error.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace routing {
namespace {

// Times of files are those of the last tick of the kernel's clock.
constexpr std::int64_t kCoarseTick = 50'000'000;

FileFacts facts_from(const struct stat& stat) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {.there = true,
          .device = static_cast<std::uint64_t>(stat.st_dev),
          .inode = static_cast<std::uint64_t>(stat.st_ino),
          .size = static_cast<std::int64_t>(stat.st_size),
          .changed = static_cast<std::int64_t>(stat.st_mtim.tv_sec) * kSecond + stat.st_mtim.tv_nsec};
}

}  // namespace

bool FileFacts::settled(std::int64_t now) const {
  const std::int64_t age = now - changed;
  return age > kCoarseTick || age < -kCoarseTick;
}

std::int64_t nanoseconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

FileFacts facts_of(const std::filesystem::path& path) {
  struct stat stat {};
  return ::lstat(path.c_str(), &stat) == 0 ? facts_from(stat) : FileFacts();
}

PlainFile::PlainFile(const std::filesystem::path& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
  require<FileError>(file_ >= 0, path.string(), ": cannot be read: ", std::strerror(errno));
  struct stat stat {};
  const bool plain = ::fstat(file_, &stat) == 0 && S_ISREG(stat.st_mode);
  if (!plain) ::close(file_);
  require<FileError>(plain, path.string(), ": is not a file");
  facts_ = facts_from(stat);
}

PlainFile::~PlainFile() {
  ::close(file_);
}

std::string PlainFile::read(std::int64_t offset, std::int64_t count) const {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t some = ::pread(file_, bytes.data() + done, bytes.size() - done, offset + static_cast<off_t>(done));
    if (some < 0 && errno == EINTR) continue;
    require<FileError>(some >= 0, path_.string(), ": cannot be read: ", std::strerror(errno));
    if (some == 0) break;
    done += static_cast<std::size_t>(some);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace routing
