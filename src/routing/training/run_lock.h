// One process at a time may train into a folder.
#pragma once

#include "routing/core/error.h"

#include <filesystem>

namespace routing {

// Another process holds the lock.
class BusyError : public FileError {
 public:
  using FileError::FileError;
};

// Holds <folder>/lock as long as it lives; the system lets go of it when a process dies, however it dies. Throws a
// BusyError if another process has it and a FileError if the file cannot be made. Does nothing on file systems without
// locks.
class RunLock {
 public:
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

// Does a process hold the lock of this folder now? Changes nothing; false where there is no lock or it cannot be read.
bool is_locked(const std::filesystem::path& folder);

}  // namespace routing
