#include "routing/core/parallel.h"

#include "routing/core/error.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace routing::parallel_test {
namespace {

class Parallel : public ::testing::Test {
  const support::ThreadGuard guard_;
};

// Adds 1 to each of the items in chunks of one.
void count_up(std::vector<int>& items) {
  parallel_for(0, static_cast<std::int64_t>(items.size()), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t item = first; item < last; ++item) ++items[static_cast<std::size_t>(item)];
  });
}

bool all_are(const std::vector<int>& items, int value) {
  return std::all_of(items.begin(), items.end(), [&](int item) { return item == value; });
}

TEST_F(Parallel, CoversEveryItemOnceInChunksThatDoNotDependOnTheThreads) {
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (const std::int64_t items : {0, 1, 7, 64, 1000}) {
      std::vector<int> visits(static_cast<std::size_t>(items), 0);
      parallel_for(3, 3 + items, 7, [&](std::int64_t first, std::int64_t last) {
        EXPECT_EQ((first - 3) % 7, 0);
        EXPECT_LE(last - first, 7);
        for (std::int64_t item = first; item < last; ++item) ++visits[static_cast<std::size_t>(item - 3)];
      });
      EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(items), 1)) << items << " items, " << threads;
    }
  }
}

TEST_F(Parallel, UsesSeveralThreads) {
  set_num_threads(2);
  // Each chunk waits for the other: with one thread this would never end, so it gives up after a while.
  std::atomic<int> arrived{0};
  parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    for (int wait = 0; wait < 5000 && arrived < 2; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(arrived, 2);
  });
}

TEST_F(Parallel, ThrowsTheErrorOfABodyAfterAllChunksEnded) {
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    std::atomic<int> ended{0};
    EXPECT_THROW(parallel_for(0, 10, 1,
                              [&](std::int64_t first, std::int64_t) {
                                ++ended;
                                if (first == 4) throw InputError("item 4");
                              }),
                 InputError);
    EXPECT_EQ(ended, 10) << threads;
  }
}

TEST_F(Parallel, ErrorsInAllChunksLeaveTheNextCallAsItWas) {
  set_num_threads(3);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(parallel_for(0, 9, 1, [](std::int64_t, std::int64_t) { throw std::runtime_error("each"); }),
                 std::runtime_error);
    std::vector<int> items(9, 0);
    EXPECT_NO_THROW(count_up(items));
    EXPECT_TRUE(all_are(items, 1)) << round;
  }
}

TEST_F(Parallel, ACallFromInsideOfABodyRunsOnTheThreadOfThatBody) {
  set_num_threads(4);
  std::vector<int> sums(20, 0);
  parallel_for(0, 20, 1, [&](std::int64_t outer, std::int64_t) {
    const auto here = std::this_thread::get_id();
    parallel_for(0, 100, 7, [&](std::int64_t first, std::int64_t last) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      for (std::int64_t item = first; item < last; ++item)
        sums[static_cast<std::size_t>(outer)] += static_cast<int>(item);
    });
  });
  EXPECT_TRUE(all_are(sums, 4950));
}

TEST_F(Parallel, AnErrorFromACallInsideOfABodyArrivesOutside) {
  set_num_threads(2);
  EXPECT_THROW(parallel_for(0, 4, 1,
                            [](std::int64_t, std::int64_t) {
                              parallel_for(0, 4, 1, [](std::int64_t inner, std::int64_t) {
                                if (inner == 2) throw InputError("inner 2");
                              });
                            }),
               InputError);
}

// Helpers come late, leave and come again in the middle of the next calls.
TEST_F(Parallel, ManyShortCallsInARowEachEndBeforeTheNextBegins) {
  set_num_threads(4);
  constexpr int kCalls = 20000;
  std::vector<int> items(3, 0);
  for (int call = 1; call <= kCalls; ++call) {
    count_up(items);
    ASSERT_TRUE(all_are(items, call)) << call;
  }
}

TEST_F(Parallel, CallsAfterAPauseWakeTheThreadsAgain) {
  set_num_threads(2);
  for (int call = 0; call < 20; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough for them to fall asleep
    std::atomic<int> arrived{0};
    parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
      ++arrived;
      for (int wait = 0; wait < 5000 && arrived < 2; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(arrived, 2) << call;
    });
  }
}

TEST_F(Parallel, MoreThreadsThanChunksRunEachChunkOnce) {
  set_num_threads(16);
  for (int call = 0; call < 200; ++call) {
    std::vector<int> items(2, 0);
    count_up(items);
    EXPECT_TRUE(all_are(items, 1)) << call;
  }
}

TEST_F(Parallel, NeverUsesMoreThreadsThanWereSetLast) {
  for (const int threads : {1, 5, 2, 7, 1, 3, 2}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    for (int call = 0; call < 100; ++call) {
      std::mutex mutex;
      std::set<std::thread::id> seen;
      parallel_for(0, 40, 1, [&](std::int64_t, std::int64_t) {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
      });
      EXPECT_LE(seen.size(), static_cast<std::size_t>(threads));
    }
  }
}

TEST_F(Parallel, SeveralThreadsMayCallAtOnce) {
  set_num_threads(3);
  constexpr int kCallers = 4;
  constexpr int kCalls = 2000;
  std::vector<std::vector<int>> items(kCallers, std::vector<int>(5, 0));
  std::vector<std::thread> callers;
  for (std::vector<int>& own : items) {
    callers.emplace_back([&own] {
      for (int call = 0; call < kCalls; ++call) count_up(own);
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::vector<int>& own : items) EXPECT_TRUE(all_are(own, kCalls));
}

// A child of fork() has the calling thread only. If calls waited for others, this one would never end.
TEST_F(Parallel, AChildOfForkRunsAllChunksByItself) {
  set_num_threads(4);
  std::vector<int> items(50, 0);
  count_up(items);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    for (int call = 0; call < 100; ++call) count_up(items);
    _exit(all_are(items, 101) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Made before the first call, so destroyed after everything that a call made.
struct CallsWhenDestroyed {
  ~CallsWhenDestroyed() {
    std::vector<int> items(50, 0);
    count_up(items);
    _exit(all_are(items, 1) ? 7 : 1);
  }
};

TEST(ParallelDeathTest, DestructorsOfStaticsMayStillCall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static const CallsWhenDestroyed last;
        set_num_threads(4);
        std::vector<int> items(50, 0);
        count_up(items);
        std::exit(0);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_F(Parallel, RefusesZeroThreadsAndEmptyChunks) {
  EXPECT_THROW(set_num_threads(0), ConfigError);
  EXPECT_THROW(parallel_for(0, 1, 0, [](std::int64_t, std::int64_t) {}), InputError);
}

TEST(AvailableCores, IsWhatTheAffinityMaskAllows) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace routing::parallel_test
