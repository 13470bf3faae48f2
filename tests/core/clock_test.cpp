#include "routing/core/clock.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace routing::clock_test {
namespace {

TEST(UtcNow, IsTheTimeOfTheClockReadBack) {
  const std::time_t before = std::time(nullptr);
  const std::string text = utc_now();
  const std::time_t after = std::time(nullptr);
  std::tm parts{};
  ASSERT_NE(strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts), nullptr) << text;
  const std::time_t read = timegm(&parts);
  EXPECT_GE(read, before);
  EXPECT_LE(read, after);
  EXPECT_EQ(text.size(), std::string("2026-11-16T12:00:00Z").size());
}

}  // namespace
}  // namespace routing::clock_test
