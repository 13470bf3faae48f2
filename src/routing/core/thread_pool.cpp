#include "routing/core/thread_pool.h"

#include <chrono>
#include <system_error>
#include <thread>

namespace routing {
namespace {

constexpr std::uint32_t kOpen = 1U << 31U;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once the word is no longer `value`.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  constexpr auto kSpin = std::chrono::microseconds(50);
  constexpr int kLooksPerClock = 16;
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (word.load(std::memory_order_acquire) != value) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  word.wait(value, std::memory_order_acquire);
}

}  // namespace

void ThreadPool::run(int helpers, const std::function<void()>& work) {
  if (helpers < 1 || busy_.exchange(true, std::memory_order_acquire)) return work();
  start(helpers);
  work_ = &work;
  helpers_ = helpers;
  gate_.store(kOpen, std::memory_order_release);
  for (Helper& helper : threads_) {
    if (helpers-- == 0) break;
    helper.calls.fetch_add(1, std::memory_order_release);
    helper.calls.notify_one();
  }
  work();
  std::uint32_t inside = gate_.fetch_sub(kOpen, std::memory_order_acq_rel) - kOpen;
  for (; inside != 0; inside = gate_.load(std::memory_order_acquire)) wait_while(gate_, inside);
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::start(int helpers) {
  while (threads_.size() < static_cast<std::size_t>(helpers)) {
    const auto index = static_cast<int>(threads_.size());
    Helper& helper = threads_.emplace_back();
    try {
      std::thread([this, &helper, index] { serve(helper, index); }).detach();
    } catch (const std::system_error&) {
      threads_.pop_back();
      return;
    }
  }
}

void ThreadPool::serve(const Helper& helper, int index) {
  for (std::uint32_t seen = 0;;) {
    wait_while(helper.calls, seen);
    // Before work(): a call that comes meanwhile must not be missed.
    seen = helper.calls.load(std::memory_order_relaxed);
    if (!enter()) continue;
    // One that was called earlier and comes late may be more than this call asked for.
    if (index < helpers_) (*work_)();
    leave();
  }
}

bool ThreadPool::enter() {
  std::uint32_t inside = gate_.load(std::memory_order_relaxed);
  while ((inside & kOpen) != 0) {
    if (gate_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  if (gate_.fetch_sub(1, std::memory_order_release) == 1) gate_.notify_one();
}

}  // namespace routing
