#include "routing/core/nearest_name.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

using Names = std::vector<std::string>;

TEST(NearNames, FindsTheSmallestDistanceAndTheEarlierOnATie) {
  EXPECT_EQ(near_names("windwo", {"window", "clusters"}), Names{"window"});
  EXPECT_EQ(near_names("ab", {"aa", "bb"}), Names{"aa"});
  EXPECT_EQ(near_names("x", {}), Names{});
  EXPECT_EQ(near_names("abc", {"uvwxyz"}), Names{});
}

TEST(NearNames, KeepsSilentWhenMoreThanAThirdOfTheLettersDiffer) {
  EXPECT_EQ(near_names("abcdef", {"xycdef"}), Names{"xycdef"});
  EXPECT_EQ(near_names("abcdef", {"xyzdef"}), Names{});
  EXPECT_EQ(near_names("abcdef", {"abcxyz"}), Names{"abcxyz"}) << "half, if both begin alike";
  EXPECT_EQ(near_names("abcdefg", {"abcwxyz"}), Names{});
  // Every word of one letter is one letter away from every other.
  EXPECT_EQ(near_names("x", {"y"}), Names{});
}

TEST(NearNames, OffersNamesThatHaveTheWordInThem) {
  const Names keys{"a.window", "model.residual_dropout", "model.input_dropout", "x.dropout_a", "x.dropout_b"};
  EXPECT_EQ(near_names("dropout", keys), (Names{"model.residual_dropout", "model.input_dropout", "x.dropout_a"}));
  EXPECT_EQ(near_names("dr", keys), Names{}) << "two letters are in half of all names";
}

TEST(DidYouMean, JoinsTheNames) {
  EXPECT_EQ(did_you_mean("windwo", {"window"}), "did you mean 'window'?");
  EXPECT_EQ(did_you_mean("part", {"part_a", "part_bcdef", "xpart"}), "did you mean 'xpart'?");
  EXPECT_EQ(did_you_mean("part", {"part_abc", "b_part_b", "xx_part"}),
            "did you mean 'part_abc', 'b_part_b' or 'xx_part'?");
  EXPECT_EQ(did_you_mean("part", {"part_abc", "b_part_b"}), "did you mean 'part_abc' or 'b_part_b'?");
  EXPECT_EQ(did_you_mean("part", {"other"}), "");
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

// A file decides how long the names in it are. The table of the distance would have 8 GB here.
TEST(NearNames, NamesThatAreMuchLongerAreNotCompared) {
  EXPECT_TRUE(near_names(std::string(100'000'000, 'x'), {"train.steps"}).empty());
}

}  // namespace
}  // namespace routing::nearest_name_test
