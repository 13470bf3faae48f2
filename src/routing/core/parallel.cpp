#include "routing/core/parallel.h"

#include "routing/core/error.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <sched.h>
#include <thread>
#include <vector>

namespace routing {
namespace {

std::atomic<int>& thread_count() {
  static std::atomic<int> count{available_cores()};
  return count;
}

std::atomic<ThreadBackend>& active_backend() {
  static std::atomic<ThreadBackend> backend{ThreadBackend::openmp};
  return backend;
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

ThreadBackend thread_backend() {
  return active_backend();
}
void set_thread_backend(ThreadBackend backend) {
  active_backend() = backend;
}

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  require<InputError>(grain >= 1, "parallel_for: grain is ", grain, ", but a chunk holds at least 1 item");
  if (begin >= end) return;
  const std::int64_t chunks = (end - begin + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<std::int64_t>(chunks, num_threads()));
  const auto run_chunk = [&](std::int64_t chunk) {
    const std::int64_t first = begin + chunk * grain;
    body(first, std::min(end, first + grain));
  };
  FirstError error;
  if (threads == 1) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) error.guard([&] { run_chunk(chunk); });
  } else if (thread_backend() == ThreadBackend::openmp) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) error.guard([&] { run_chunk(chunk); });
  } else {
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
      for (std::int64_t chunk = next++; chunk < chunks; chunk = next++) error.guard([&] { run_chunk(chunk); });
    };
    std::vector<std::thread> workers;
    workers.reserve(static_cast<std::size_t>(threads));
    for (int thread = 0; thread < threads; ++thread) workers.emplace_back(work);
    for (std::thread& worker : workers) worker.join();
  }
  error.rethrow();
}

}  // namespace routing
