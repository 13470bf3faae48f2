#include "routing/core/block_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace routing::block_pool_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

// Pages of this process in memory, in bytes.
std::size_t resident() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t pages = 0;
  file >> all >> pages;
  return pages * 4096;
}

TEST(BlockPool, ABlockThatCameBackServesTheNext) {
  BlockPool pool;
  void* first = pool.take(16 * kMiB);
  std::memset(first, 7, 16 * kMiB);
  EXPECT_EQ(pool.usage().reused, 0);
  EXPECT_TRUE(pool.give_back(first));
  EXPECT_EQ(pool.usage().waiting, 16 * kMiB);
  void* second = pool.take(14 * kMiB);
  EXPECT_EQ(second, first);
  EXPECT_EQ(pool.usage().reused, 1);
  EXPECT_EQ(pool.usage().in_use, 14 * kMiB);
  EXPECT_EQ(pool.usage().waiting, 2 * kMiB);
  EXPECT_TRUE(pool.give_back(second));
}

TEST(BlockPool, BlocksAreCutFromLargerOnesAndJoinedAgain) {
  BlockPool pool;
  auto* large = static_cast<char*>(pool.take(32 * kMiB));
  pool.give_back(large);
  void* a = pool.take(12 * kMiB);
  void* b = pool.take(12 * kMiB);
  void* c = pool.take(8 * kMiB);
  EXPECT_EQ(a, large);
  EXPECT_EQ(b, large + 12 * kMiB);
  EXPECT_EQ(c, large + 24 * kMiB);
  EXPECT_EQ(pool.usage().reused, 3);
  EXPECT_EQ(pool.usage().waiting, 0U);
  for (void* block : {a, c, b}) pool.give_back(block);
  EXPECT_EQ(pool.take(32 * kMiB), large);
  EXPECT_EQ(pool.usage().most_in_use, 32 * kMiB);
}

TEST(BlockPool, TheSmallestPartThatFitsIsTaken) {
  BlockPool pool;
  void* larger = pool.take(20 * kMiB);
  pool.take(kMiB);
  void* smaller = pool.take(18 * kMiB);
  pool.take(kMiB);  // behind it 24 MiB of the region that nobody has used
  pool.give_back(larger);
  pool.give_back(smaller);
  EXPECT_EQ(pool.take(17 * kMiB), smaller);
  EXPECT_EQ(pool.take(17 * kMiB), larger);
  EXPECT_EQ(pool.usage().reused, 2);
  pool.take(17 * kMiB);
  EXPECT_EQ(pool.usage().reused, 2);
}

TEST(BlockPool, WhatIsReleasedLeavesMemoryAndItsNeighboursAlone) {
  BlockPool pool;
  auto* first = static_cast<unsigned char*>(pool.take(32 * kMiB));
  auto* second = static_cast<unsigned char*>(pool.take(32 * kMiB));
  std::memset(first, 1, 32 * kMiB);
  std::memset(second, 2, 32 * kMiB);
  const std::size_t before = resident();
  pool.give_back(first);
  pool.release_waiting();
  EXPECT_LT(resident() + 30 * kMiB, before);
  EXPECT_EQ(second[0], 2);
  EXPECT_EQ(second[32 * kMiB - 1], 2);
  pool.give_back(second);
  pool.release_waiting();
  EXPECT_LT(resident() + 60 * kMiB, before);
  EXPECT_EQ(pool.usage().waiting, 0U);
}

// Random sizes come and go; every block keeps what was written into it, and the promise about waiting memory holds.
TEST(BlockPool, ManyBlocksOfAllSizesKeepTheirContents) {
  BlockPool pool;
  struct Held {
    unsigned char* block;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  std::uint32_t random = 1;
  const auto next = [&] { return random = random * 1664525U + 1013904223U, random >> 8U; };
  for (int round = 0; round < 2000; ++round) {
    if (held.size() > 20 || (!held.empty() && next() % 3 == 0)) {
      const std::size_t index = next() % held.size();
      const Held one = held[index];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
      ASSERT_EQ(one.block[0], one.mark);
      ASSERT_EQ(one.block[one.bytes / 2], one.mark);
      ASSERT_EQ(one.block[one.bytes - 1], one.mark);
      ASSERT_TRUE(pool.give_back(one.block));
    } else {
      const std::size_t bytes = 1 + next() % (next() % 8 == 0 ? 80 * kMiB : 5 * kMiB);
      const Held one{static_cast<unsigned char*>(pool.take(bytes)), bytes, static_cast<unsigned char>(round)};
      one.block[0] = one.block[bytes / 2] = one.block[bytes - 1] = one.mark;
      held.push_back(one);
    }
    const BlockPool::Usage usage = pool.usage();
    ASSERT_LE(usage.in_use + usage.waiting, usage.most_in_use + usage.most_in_use / 8);
  }
  for (const Held& one : held) EXPECT_TRUE(pool.give_back(one.block));
  pool.release_waiting();
  EXPECT_EQ(pool.usage().in_use, 0U);
  EXPECT_EQ(pool.usage().waiting, 0U);
}

TEST(BlockPool, BlocksAreWholeAndApart) {
  BlockPool pool;
  std::vector<unsigned char*> blocks;
  const std::vector<std::size_t> sizes{1, 4096, kMiB + 1, 8 * kMiB, 9 * kMiB + 5, 33 * kMiB};
  for (std::size_t n = 0; n < sizes.size(); ++n) {
    blocks.push_back(static_cast<unsigned char*>(pool.take(sizes[n])));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[n]) % 4096, 0U);
    std::memset(blocks[n], static_cast<int>(n + 1), sizes[n]);
  }
  for (std::size_t n = 0; n < sizes.size(); ++n) {
    EXPECT_EQ(blocks[n][0], n + 1);
    EXPECT_EQ(blocks[n][sizes[n] - 1], n + 1);
    EXPECT_TRUE(pool.give_back(blocks[n]));
  }
}

TEST(BlockPool, WaitingBlocksNeverTakeMoreThanAnEighthBeyondTheMostInUse) {
  BlockPool pool;
  for (const std::size_t size : {64, 16, 32, 8, 48, 24, 64, 12}) {
    void* block = pool.take(size * kMiB);
    const BlockPool::Usage usage = pool.usage();
    EXPECT_LE(usage.in_use + usage.waiting, usage.most_in_use + usage.most_in_use / 8);
    pool.give_back(block);
    EXPECT_LE(pool.usage().waiting, 72 * kMiB);
  }
  EXPECT_EQ(pool.usage().most_in_use, 64 * kMiB);
}

TEST(BlockPool, ReleasedBlocksAreGoneAndForeignOnesAreRefused) {
  BlockPool pool;
  void* block = pool.take(8 * kMiB);
  int foreign = 0;
  EXPECT_FALSE(pool.give_back(&foreign));
  EXPECT_TRUE(pool.give_back(block));
  EXPECT_FALSE(pool.give_back(block));
  pool.release_waiting();
  EXPECT_EQ(pool.usage().waiting, 0U);
  EXPECT_EQ(pool.usage().in_use, 0U);
}

TEST(BlockPool, ThreadsGetBlocksOfTheirOwn) {
  BlockPool pool;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) {
        auto* block = static_cast<unsigned char*>(pool.take(kMiB));
        std::memset(block, static_cast<int>(t), kMiB);
        for (std::size_t n = 0; n < kMiB; n += 4096) wrong[t] += block[n] == t ? 0 : 1;
        pool.give_back(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

// A thread takes and gives all the time; a child that finds the lock held would never end.
TEST(BlockPool, ChildrenOfForkCanUseIt) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) block_pool().give_back(block_pool().take(kMiB));
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      block_pool().give_back(block_pool().take(kMiB));
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

TEST(BlockPool, TheProcessHasOne) {
  EXPECT_EQ(&block_pool(), &block_pool());
}

}  // namespace
}  // namespace routing::block_pool_test
