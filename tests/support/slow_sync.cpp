// A disk that takes its time: preloaded into the program (LD_PRELOAD), every fsync waits SLOW_SYNC_MS milliseconds.
#include <cstdlib>
#include <ctime>

extern "C" int fsync(int /*file*/) {
  const char* const text = std::getenv("SLOW_SYNC_MS");
  const long milliseconds = text == nullptr ? 0 : std::atol(text);
  const std::timespec time{.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
  nanosleep(&time, nullptr);
  return 0;
}
