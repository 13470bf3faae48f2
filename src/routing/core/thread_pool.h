// Threads that sleep until a caller has work for them.
//
// A busy neighbour must cost no more than its share of the cores, and a helper that the system does not let run must
// cost nothing. So nobody waits for helpers to turn up: the caller works too, helpers come in while there is work, and
// the caller waits only for those that are inside. Whoever waits spins for some microseconds, since most calls follow
// each other closely, and then sleeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace routing {

class ThreadPool {
 public:
  ThreadPool() = default;
  // Its threads are detached and use it for as long as the process lives: make one that is never destroyed.
  ~ThreadPool() = delete;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls work() here, and at the same time on up to `helpers` other threads. Returns when all these calls have
  // returned. work() claims tasks until none is left, so that all are done then, whoever has turned up; a helper may
  // call it again when none is left.
  //
  // A pool serves one call at a time. Any other call, from another thread or from inside of work(), has no helpers and
  // returns when its own work() has: nested calls cannot wait for each other. So do calls in a child of fork(), which
  // has none of the threads, and calls for which the system gives no threads.
  //
  // work() must not throw.
  void run(int helpers, const std::function<void()>& work);

 private:
  struct alignas(64) Helper {
    std::atomic<std::uint32_t> calls{0};
  };

  void start(int helpers);
  [[noreturn]] void serve(const Helper& helper, int index);
  bool enter();
  void leave();

  std::atomic<bool> busy_{false};
  // Changed by the one who holds busy_; each thread knows its own element only.
  std::deque<Helper> threads_;
  // Written before the gate opens and after the last helper has left.
  const std::function<void()>* work_ = nullptr;
  int helpers_ = 0;
  // Helpers inside the call, plus kOpen while more may come in.
  alignas(64) std::atomic<std::uint32_t> gate_{0};
};

}  // namespace routing
