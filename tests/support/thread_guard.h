// Puts the number of threads back when a test ends.
#pragma once

#include "routing/core/parallel.h"

namespace routing::support {

class ThreadGuard {
 public:
  ThreadGuard() = default;
  ~ThreadGuard() { set_num_threads(threads_); }
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;

 private:
  int threads_ = num_threads();
};

}  // namespace routing::support
