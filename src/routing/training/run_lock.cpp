#include "routing/training/run_lock.h"

#include "routing/core/error.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace routing {

RunLock::RunLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  do {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  } while (file_ < 0 && errno == EINTR);
  require<FileError>(file_ >= 0, path.string(), ": cannot be made: ", std::strerror(errno),
                     "; choose a `run` that can be written");
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  // Somebody may only be asking is_locked().
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(file_);
  throw BusyError(folder.string() +
                  ": another process is training into this folder; wait for it, or choose another `run`");
}

RunLock::~RunLock() {
  ::close(file_);
}

bool is_locked(const std::filesystem::path& folder) {
  const int file = ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return held;
}

}  // namespace routing
