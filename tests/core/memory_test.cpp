#include "routing/core/memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace routing::memory_test {
namespace {

TEST(AvailableMemory, IsMoreThanNothingAndLessThanAnyMachineHas) {
  EXPECT_GT(available_memory(), std::int64_t{1} << 20);
  EXPECT_LT(available_memory(), total_memory());
  EXPECT_LT(total_memory(), std::int64_t{1} << 50);
}

}  // namespace
}  // namespace routing::memory_test
