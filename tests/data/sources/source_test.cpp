#include "routing/data/sources/source.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::source_test {
namespace {

TEST(SourceParts, AreFoundByNameOrRefused) {
  const SourceFacts facts{
      .format = "images", .parts = {{.name = "train", .files = {}}, {.name = "test", .files = {}}}, .missing = ""};
  EXPECT_EQ(&require_part(facts, "test"), &facts.parts[1]);
  EXPECT_EQ(message_of<InputError>([&] { require_part(facts, "valid"); }),
            "the part \"valid\" is not in these images data, which have train, test; ask for one of those");
}

TEST(SourceParts, ListsLeaveOutWhatIsEmpty) {
  EXPECT_EQ(joined({"", "a", "", "b", ""}), "a, b");
  EXPECT_EQ(joined({}), "");
}

TEST(SourceParts, WhatIsNoFolderIsNotOne) {
  EXPECT_TRUE(is_there("/dev/null"));
  EXPECT_FALSE(is_folder("/dev/null"));
  EXPECT_TRUE(is_folder("/"));
  EXPECT_FALSE(is_there("/dev/null/below"));
  EXPECT_FALSE(is_folder("/dev/null/below"));
}

}  // namespace
}  // namespace routing::source_test
