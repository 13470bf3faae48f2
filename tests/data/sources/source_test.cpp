#include "routing/data/sources/source.h"

#include "routing/core/error.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <sys/stat.h>

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

TEST(SourceParts, PipesCanBeToldFromFiles) {
  EXPECT_TRUE(is_pipe("-"));
  EXPECT_TRUE(is_pipe("/dev/stdin"));
  EXPECT_TRUE(is_standard_input("-"));
  EXPECT_FALSE(is_standard_input("./-")) << "a file that is called so";
  EXPECT_FALSE(is_pipe("./-"));
  EXPECT_FALSE(is_pipe("/"));
  EXPECT_FALSE(is_pipe("/dev/zero")) << "it has no end";
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(is_pipe(folder / "pipe"));
  EXPECT_FALSE(is_standard_input(folder / "pipe"));
}

}  // namespace
}  // namespace routing::source_test
