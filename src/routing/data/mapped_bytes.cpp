#include "routing/data/mapped_bytes.h"

#include "routing/core/error.h"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace routing {
namespace {

class OpenFile {
 public:
  // Without O_NONBLOCK a pipe would wait here for somebody to write to it.
  explicit OpenFile(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

void require_system(bool worked, const std::filesystem::path& path) {
  if (worked) return;
  const int reason = errno;
  const char* const remedy = reason == EACCES || reason == EPERM ? "; ask for the right to read it"
                             : reason == ENOMEM                  ? "; free some memory or take a smaller file"
                                                                 : "; check the name, it must be an existing file";
  throw FileError(path.string() + ": cannot be read: " + std::generic_category().message(reason) + remedy);
}

}  // namespace

MappedBytes::MappedBytes(const std::filesystem::path& path) {
  const OpenFile file(path);
  require_system(file.descriptor() >= 0, path);
  struct stat status = {};
  require_system(::fstat(file.descriptor(), &status) == 0, path);
  require<FileError>(!S_ISDIR(status.st_mode), path.string(), ": is a folder, not a file; name one file in it");
  require<FileError>(S_ISREG(status.st_mode), path.string(),
                     ": is a pipe or a device, not a file; save its bytes to a file first and name that");
  require<FileError>(status.st_size > 0, path.string(), ": has 0 bytes; name a file with something in it");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  require_system(start != MAP_FAILED, path);
  start_ = start;
  size_ = size;
}

MappedBytes::~MappedBytes() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

MappedBytes::MappedBytes(MappedBytes&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedBytes& MappedBytes::operator=(MappedBytes&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace routing
