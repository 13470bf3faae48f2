// The probe really reads what it says: its memory holds ones, so a sum counts the words.
#include "lab/measure/read_rate.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

namespace routing::bench::read_rate_test {
namespace {

TEST(ReadProbe, ReadsEveryWordOnceWhateverTheSize) {
  ReadProbe probe(1 << 20);
  for (const std::int64_t words : {0, 1, 7, 33, 32768, 32769, 131071, 131072}) {
    EXPECT_EQ(probe.read(words * 8), static_cast<std::uint64_t>(words));
  }
  EXPECT_EQ(probe.read(15), 1U);
}

TEST(ReadProbe, GoesRoundItsMemoryAndRefusesMoreThanThereIs) {
  const std::int64_t large = std::int64_t{200} << 20U;
  ReadProbe probe(large);
  // The third does not fit behind the first two any more.
  for (int call = 0; call < 3; ++call) EXPECT_EQ(probe.read(large), static_cast<std::uint64_t>(large / 8));
  EXPECT_THROW(probe.read(3 * large), InputError);
}

}  // namespace
}  // namespace routing::bench::read_rate_test
