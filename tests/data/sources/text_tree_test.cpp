#include "routing/data/sources/text_tree.h"

#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <string>
#include <vector>

namespace routing::text_tree_test {
namespace {

class TextTrees : public TemporaryFolderTest {
 protected:
  std::filesystem::path put(const std::string& name, const std::string& text = "x") {
    std::filesystem::create_directories((folder() / name).parent_path());
    return write(name, text);
  }
  std::vector<std::string> below(const TextTree& tree) const {
    std::vector<std::string> names;
    for (const auto& file : tree.files) names.push_back(file.lexically_relative(folder()).string());
    return names;
  }
};

TEST_F(TextTrees, EveryTextBelowAFolderIsFoundAndBinaryFilesAreCounted) {
  put("b.c");
  put("a/deep/er/x.h");
  put("a/notes");
  put(".git/config");
  put("a/.hidden");
  put("a/picture.bin", std::string("x\0y", 3));
  put("a/text.gz", std::string("\x1f\x8b\0", 3));
  const TextTree tree = texts_below(folder());
  EXPECT_EQ(below(tree), (std::vector<std::string>{"a/deep/er/x.h", "a/notes", "a/text.gz", "b.c"}));
  EXPECT_EQ(tree.binary_files, 1);
  EXPECT_THROW(texts_below(folder() / "gone"), FileError);
}

TEST_F(TextTrees, PatternsStandForNamesAndFolders) {
  for (const char* name : {"src/a.c", "src/b.h", "src/x/c.c", "src/x/y/d.c", "src/.e.c", "other/f.c"}) put(name);
  const auto matching = [&](const std::string& pattern) { return below(texts_matching(folder() / pattern)); };
  EXPECT_EQ(matching("src/*.c"), std::vector<std::string>{"src/a.c"});
  EXPECT_EQ(matching("src/**/*.c"), (std::vector<std::string>{"src/a.c", "src/x/c.c", "src/x/y/d.c"}));
  EXPECT_EQ(matching("src/?.h"), std::vector<std::string>{"src/b.h"});
  EXPECT_EQ(matching("**/y/*"), std::vector<std::string>{"src/x/y/d.c"});
  EXPECT_EQ(matching("*/f.c"), std::vector<std::string>{"other/f.c"});
  EXPECT_TRUE(matching("gone/*.c").empty());
  EXPECT_TRUE(is_pattern("src/*.c"));
  EXPECT_FALSE(is_pattern("src/a.c"));
  EXPECT_FALSE(is_pattern(put("odd*name")));
}

TEST(PartInName, IsFoundInFilesOfDataAndInTheFirstFolder) {
  for (const auto& [name, part] :
       std::vector<std::pair<std::string, std::string>>{{"train.txt", "train"},       {"ptb.train.txt", "train"},
                                                        {"ptb.valid.txt", "valid"},   {"ptb.test.txt", "test"},
                                                        {"train-00001.txt", "train"}, {"dev.csv", "valid"},
                                                        {"Validation.TSV", ""},       {"val.json", "valid"},
                                                        {"wiki.test.tokens", "test"}, {"x.train.txt.gz", "train"},
                                                        {"test/a.c", "test"},         {"training/deep/b.xyz", "train"},
                                                        {"deep/test/b.xyz", ""},      {"train-test.txt", ""},
                                                        {"trains.txt", ""},           {"train.py", ""},
                                                        {"test_sort.c", ""},          {"test-drivers/a.c", ""},
                                                        {"letters.txt", ""},          {"a/attest.txt", ""}}) {
    EXPECT_EQ(part_in_name("root/" + name, "root"), part) << name;
  }
}

}  // namespace
}  // namespace routing::text_tree_test
