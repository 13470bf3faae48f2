#include "routing/core/parallel.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace routing {
namespace {

// Puts the number of threads and the backend back.
class Parallel : public ::testing::TestWithParam<ThreadBackend> {
 protected:
  void SetUp() override { set_thread_backend(GetParam()); }
  void TearDown() override {
    set_num_threads(available_cores());
    set_thread_backend(ThreadBackend::openmp);
  }
};

TEST_P(Parallel, CoversEveryItemOnceInChunksThatDoNotDependOnTheThreads) {
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

TEST_P(Parallel, UsesSeveralThreads) {
  set_num_threads(2);
  // Each chunk waits for the other: with one thread this would never end, so it gives up after a while.
  std::atomic<int> arrived{0};
  parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    for (int wait = 0; wait < 5000 && arrived < 2; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(arrived, 2);
  });
}

TEST_P(Parallel, ThrowsTheErrorOfABodyAfterAllChunksEnded) {
  set_num_threads(2);
  std::atomic<int> ended{0};
  EXPECT_THROW(parallel_for(0, 10, 1,
                            [&](std::int64_t first, std::int64_t) {
                              ++ended;
                              if (first == 4) throw InputError("item 4");
                            }),
               InputError);
  EXPECT_EQ(ended, 10);
}

TEST_P(Parallel, RefusesZeroThreadsAndEmptyChunks) {
  EXPECT_THROW(set_num_threads(0), ConfigError);
  EXPECT_THROW(parallel_for(0, 1, 0, [](std::int64_t, std::int64_t) {}), InputError);
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, Parallel, ::testing::Values(ThreadBackend::openmp, ThreadBackend::plain_threads),
                         [](const auto& instance) {
                           return instance.param == ThreadBackend::openmp ? "openmp" : "plain_threads";
                         });

TEST(AvailableCores, IsWhatTheAffinityMaskAllows) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace routing
