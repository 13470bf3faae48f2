// Puts the number of threads and the backend back when a test ends.
#pragma once

#include "routing/core/parallel.h"

namespace routing::testing {

class ThreadGuard {
 public:
  ThreadGuard() = default;
  ~ThreadGuard() {
    set_num_threads(threads_);
    set_thread_backend(backend_);
  }
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;

 private:
  int threads_ = num_threads();
  ThreadBackend backend_ = thread_backend();
};

}  // namespace routing::testing
