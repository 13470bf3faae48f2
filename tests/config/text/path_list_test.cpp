#include "routing/config/text/path_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::path_list_test {
namespace {

TEST(PathLists, AreLinesInOrder) {
  const std::vector<std::string> paths{"b.txt", "a, c", "/d/*.md"};
  EXPECT_EQ(path_list(paths), "b.txt\na, c\n/d/*.md");
  EXPECT_EQ(paths_in(path_list(paths)), paths);
  EXPECT_EQ(shown_paths(path_list(paths)), "b.txt, a, c, /d/*.md");
}

TEST(PathLists, OnePathIsItsOwnListAndNoneIsEmpty) {
  EXPECT_EQ(path_list({"a"}), "a");
  EXPECT_EQ(paths_in("a"), std::vector<std::string>{"a"});
  EXPECT_TRUE(paths_in("").empty());
  EXPECT_EQ(path_list({}), "");
}

TEST(PathLists, RelativePathsAreSeenFromAFolderAndStandardInputIsNot) {
  EXPECT_EQ(paths_from("a\n/b\n-\n./-", "/f"), "/f/a\n/b\n-\n/f/./-");
  EXPECT_EQ(paths_from("", "/f"), "");
}

}  // namespace
}  // namespace routing::path_list_test
