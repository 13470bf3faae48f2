// Ctrl-C and SIGTERM as a wish that long work can look at, instead of the end.
#pragma once

namespace routing {

// While one of these lives, the first SIGINT or SIGTERM only sets a flag; the second one ends the program as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool requested();
};

}  // namespace routing
