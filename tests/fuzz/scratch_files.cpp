#include "fuzz/scratch_files.h"

#include "routing/core/files.h"

#include <fcntl.h>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

namespace routing::fuzz {
namespace {

namespace fs = std::filesystem;

class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code error;
    const fs::path memory = "/dev/shm";
    const fs::path base = ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
    path_ = base / ("routing_fuzz_" + std::to_string(::getpid()));
    fs::remove_all(path_, error);
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

const fs::path& scratch_folder() {
  static const ScratchFolder folder;
  return folder.path();
}

fs::path scratch_file(const std::string& name, std::string_view bytes) {
  const fs::path path = scratch_folder() / name;
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    fs::create_directories(path.parent_path());
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  const bool written = file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (file >= 0) ::close(file);
  if (!written) throw std::runtime_error(path.string() + ": the scratch file cannot be written");
  return path;
}

std::string bytes_of_file(const fs::path& path) {
  return read_file(path);
}

}  // namespace routing::fuzz
