#include "routing/data/sources/piped_text.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/hash.h"
#include "routing/data/sources/source.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

class OpenPipe {
 public:
  explicit OpenPipe(const fs::path& path)
      : name_(pipe_name(path)),
        file_(is_standard_input(path) ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                      : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    require<FileError>(file_ >= 0, name_, ": cannot be read: ", std::strerror(errno), "; name a file or a pipe");
  }
  ~OpenPipe() { ::close(file_); }
  OpenPipe(const OpenPipe&) = delete;
  OpenPipe& operator=(const OpenPipe&) = delete;

  bool is_terminal() const { return ::isatty(file_) == 1; }
  // The next bytes; none at the end.
  std::span<std::byte> read(std::vector<std::byte>& buffer) const {
    ssize_t count = -1;
    do {
      count = ::read(file_, buffer.data(), buffer.size());
    } while (count < 0 && errno == EINTR);
    require<FileError>(count >= 0, name_, ": cannot be read: ", std::strerror(errno), "; name a file or a pipe");
    return {buffer.data(), static_cast<std::size_t>(count)};
  }

 private:
  std::string name_;
  int file_;
};

bool begins_as_gzip(std::span<const std::byte> bytes) {
  return bytes.size() > 1 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

std::string pipe_name(const fs::path& pipe) {
  return is_standard_input(pipe) ? "standard input" : pipe.string();
}

fs::path keep_pipe(const fs::path& pipe, const fs::path& folder) {
  const OpenPipe opened(pipe);
  require<FileError>(!opened.is_terminal(), pipe_name(pipe),
                     ": is a terminal; send text into it, as in  cat *.txt | routing …, or name a file");
  std::error_code error;
  fs::create_directories(folder, error);
  require<FileError>(!error, folder.string(), ": cannot be made: ", error.message(),
                     "; what comes through a pipe is kept there; choose a folder that can be written");
  const fs::path arriving = folder / ("arriving-" + std::to_string(::getpid()));
  AtomicFile file(arriving);
  XxHash64 hash;
  std::string ending;
  std::vector<std::byte> buffer(kPieceBytes);
  std::uint64_t bytes = 0;
  for (auto piece = opened.read(buffer); !piece.empty(); piece = opened.read(buffer)) {
    if (bytes == 0 && begins_as_gzip(piece)) ending = ".gz";
    file.write(piece);
    hash.update(piece);
    bytes += piece.size();
  }
  require<FileError>(bytes > 0, pipe_name(pipe),
                     ": ended without a byte; look whether the command before the pipe failed");
  file.commit();
  const std::string kind = is_standard_input(pipe) ? "standard-input-" : "pipe-";
  fs::path kept = folder / (kind + hexadecimal(hash.digest()) + ending);
  fs::rename(arriving, kept, error);
  require<FileError>(!error, kept.string(), ": cannot be written: ", error.message(), "; choose another folder");
  return kept;
}

}  // namespace routing
