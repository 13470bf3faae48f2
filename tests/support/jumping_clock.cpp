// A clock that jumps: preloaded into a program (LD_PRELOAD). The wall clock goes ten years ahead at one look and ten
// years back at the next. The steady one leaps an hour ahead at every hundredth look, as that of a virtual machine may
// that was stopped; it never goes back, which the system promises of it.
#include <atomic>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int clock_gettime(clockid_t clock, std::timespec* time) noexcept {
  constexpr long kHour = 3600;
  constexpr long kTenYears = 10 * 365 * 24 * kHour;
  constexpr long kLooks = 100;
  static std::atomic<long> walls{0}, looks{0};
  const long result = ::syscall(SYS_clock_gettime, clock, time);
  if (result != 0) return static_cast<int>(result);
  if (clock == CLOCK_REALTIME) time->tv_sec += walls++ % 2 == 0 ? kTenYears : -kTenYears;
  if (clock == CLOCK_MONOTONIC) time->tv_sec += looks++ / kLooks * kHour;
  return 0;
}
