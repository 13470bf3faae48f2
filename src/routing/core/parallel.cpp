#include "routing/core/parallel.h"

#include "routing/core/error.h"
#include "routing/core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <sched.h>
#include <thread>

namespace routing {
namespace {

std::atomic<int>& thread_count() {
  static std::atomic<int> count{available_cores()};
  return count;
}

// Never destroyed: its threads sleep on it until the process has ended, and destructors of statics may still call.
ThreadPool& pool() {
  static auto* const shared = new ThreadPool;
  return *shared;
}

// Keeps the first exception thrown by any chunk.
class FirstError {
 public:
  template <class Body>
  void guard(const Body& body) {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

int available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int num_threads() {
  return thread_count();
}

void set_num_threads(int threads) {
  require<ConfigError>(threads >= 1, "threads: ", threads, " asked for, but at least 1 is needed; this machine has ",
                       available_cores(), " cores");
  thread_count() = threads;
}

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  require<InputError>(grain >= 1, "parallel_for: grain is ", grain, ", but a chunk holds at least 1 item");
  if (begin >= end) return;
  const std::int64_t chunks = (end - begin + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<std::int64_t>(chunks, num_threads()));
  FirstError error;
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t chunk = next++; chunk < chunks; chunk = next++) {
      const std::int64_t first = begin + chunk * grain;
      error.guard([&] { body(first, std::min(end, first + grain)); });
    }
  };
  pool().run(threads - 1, work);
  error.rethrow();
}

}  // namespace routing
