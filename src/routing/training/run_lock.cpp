#include "routing/training/run_lock.h"

#include "routing/core/error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace routing {

RunLock::RunLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  require<FileError>(file_ >= 0, path.string(), ": cannot be made: ", std::strerror(errno),
                     "; choose a `run` that can be written");
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(file_);
  throw BusyError(folder.string() +
                  ": another process is training into this folder; wait for it, or choose another `run`");
}

RunLock::~RunLock() {
  ::close(file_);
}

}  // namespace routing
