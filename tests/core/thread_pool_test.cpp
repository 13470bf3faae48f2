#include "routing/core/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace routing::thread_pool_test {
namespace {

ThreadPool& pool() {
  static auto* const shared = new ThreadPool;
  return *shared;
}

// Gives up after some seconds, so that a test fails instead of hanging.
template <class Condition>
void wait_until(const Condition& condition) {
  for (int wait = 0; wait < 5000 && !condition(); ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(ThreadPool, WithoutHelpersTheCallerWorksAlone) {
  int calls = 0;
  pool().run(0, [&, caller = std::this_thread::get_id()] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, AsManyHelpersAsAskedForWorkAtTheSameTime) {
  for (const int helpers : {1, 3}) {
    std::atomic<int> arrived{0};
    pool().run(helpers, [&] {
      ++arrived;
      wait_until([&] { return arrived > helpers; });
      EXPECT_GT(arrived, helpers);
    });
  }
}

TEST(ThreadPool, WaitsForHelpersThatAreInside) {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> came{false};
  std::atomic<bool> ended{false};
  pool().run(1, [&] {
    if (std::this_thread::get_id() == caller) {
      wait_until([&] { return came.load(); });
      return;
    }
    if (came.exchange(true)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the caller has long given up spinning
    ended = true;
  });
  EXPECT_TRUE(came);
  EXPECT_TRUE(ended);
}

TEST(ThreadPool, CallsFromInsideHaveNoHelpers) {
  pool().run(3, [] {
    int calls = 0;
    pool().run(3, [&, here = std::this_thread::get_id()] {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++calls;
    });
    EXPECT_EQ(calls, 1);
  });
}

// The first call of another thread takes the helpers; this one must not wait for it to end.
TEST(ThreadPool, ACallWhileAnotherGoesOnEndsByItself) {
  std::atomic<bool> begun{false};
  std::atomic<bool> second_ended{false};
  std::thread first([&] {
    pool().run(1, [&] {
      begun = true;
      wait_until([&] { return second_ended.load(); });
      EXPECT_TRUE(second_ended);
    });
  });
  wait_until([&] { return begun.load(); });
  pool().run(1, [] {});
  second_ended = true;
  first.join();
}

}  // namespace
}  // namespace routing::thread_pool_test
