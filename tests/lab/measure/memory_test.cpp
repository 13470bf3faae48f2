#include "lab/measure/memory.h"

#include "routing/core/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace routing::bench::memory_test {
namespace {

constexpr std::int64_t kMebibyte = 1024 * 1024;

// Address sanitizers keep freed memory for a while to catch its use.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kFreedMemoryGoesBack = false;
#else
constexpr bool kFreedMemoryGoesBack = true;
#endif

void touch(std::int64_t mebibytes) {
  const auto size = static_cast<std::size_t>(mebibytes * kMebibyte);
  const auto block = std::make_unique<unsigned char[]>(size);
  std::memset(block.get(), 1, size);
  // Read through a volatile pointer, or the compiler may leave the block out.
  const volatile unsigned char* const read = block.get();
  EXPECT_EQ(read[size - 1], 1);
}

TEST(BenchMemory, ThePeakIsThatOfTheWorkAlone) {
  if (!kFreedMemoryGoesBack) GTEST_SKIP() << "the sanitizer keeps freed memory";
  const std::int64_t before = resident_bytes();
  touch(256);  // an earlier and larger peak
  const std::optional<std::int64_t> peak = peak_bytes_above(before, [] {
    touch(64);
    touch(32);
  });
  if (!peak) GTEST_SKIP() << "this system cannot set the peak of resident memory back";
  EXPECT_GE(*peak, 60 * kMebibyte);
  EXPECT_LT(*peak, 90 * kMebibyte);
}

TEST(BenchMemory, InputsMadeAfterTheBaselineCount) {
  if (!kFreedMemoryGoesBack) GTEST_SKIP() << "the sanitizer keeps freed memory";
  const std::int64_t before = resident_bytes();
  std::vector<unsigned char> input(static_cast<std::size_t>(48 * kMebibyte), 1);
  const std::optional<std::int64_t> peak = peak_bytes_above(before, [] { touch(16); });
  if (!peak) GTEST_SKIP() << "this system cannot set the peak of resident memory back";
  EXPECT_GE(*peak, 60 * kMebibyte);
  EXPECT_LT(*peak, 90 * kMebibyte);
  EXPECT_EQ(input[7], 1);
}

TEST(BenchMemory, APeakBelowTheBaselineIsZero) {
  const std::optional<std::int64_t> peak = peak_bytes_above(std::int64_t{1} << 50, [] {});
  EXPECT_EQ(peak.value_or(0), 0);
}

TEST(BenchMemory, AllocatedBytesAreThoseOfMallocAndOfThePool) {
  if (!kFreedMemoryGoesBack) GTEST_SKIP() << "the sanitizer has a malloc of its own";
  const std::int64_t before = allocated_bytes();
  const std::vector<char> small(10'000);
  void* const large = block_pool().take(64 * kMebibyte);
  EXPECT_NEAR(static_cast<double>(allocated_bytes() - before), 64.0 * kMebibyte + 10'000.0, 4'000.0);
  block_pool().give_back(large);
  EXPECT_LT(allocated_bytes() - before, kMebibyte);
}

}  // namespace
}  // namespace routing::bench::memory_test
