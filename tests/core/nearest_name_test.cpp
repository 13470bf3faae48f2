#include "routing/core/nearest_name.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

namespace routing::nearest_name_test {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("abc", "abd"), 1U);
  EXPECT_EQ(edit_distance("abc", "ac"), 1U);
  EXPECT_EQ(edit_distance("abc", "acb"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestName, FindsTheSmallestDistanceAndTheEarlierOnATie) {
  EXPECT_EQ(nearest_name("windwo", {"window", "clusters"}), "window");
  EXPECT_EQ(nearest_name("ab", {"aa", "bb"}), "aa");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("abc", {"uvwxyz"}), "");
}

TEST(Require, WritesAllPartsOnlyWhenTheConditionFails) {
  EXPECT_NO_THROW(require<ConfigError>(true, "never"));
  try {
    require<ConfigError>(false, "window ", 8, " is longer than ", 4.5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "window 8 is longer than 4.5");
  }
}

}  // namespace
}  // namespace routing::nearest_name_test
