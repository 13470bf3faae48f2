#include "routing/data/sources/text_tree.h"

#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <string>
#include <unistd.h>
#include <utility>
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
  EXPECT_EQ(tree.links, 0);
  std::filesystem::create_symlink(folder() / "nowhere", folder() / "gone.txt");
  std::filesystem::create_directory_symlink(folder() / "a", folder() / "again");
  std::filesystem::create_symlink(folder() / "b.c", folder() / "same.c");
  EXPECT_EQ(texts_below(folder()).links, 2) << "a link to a file is that file";
  EXPECT_EQ(texts_below(folder()).files.size(), 5U);
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

TEST_F(TextTrees, AFolderThatCannotBeListedIsNamed) {
  constexpr uid_t kNobody = 65534;
  put("a/x");
  std::filesystem::permissions(folder() / "a", std::filesystem::perms::none);
  // Root may list every folder.
  const uid_t user = ::geteuid();
  if (user == 0) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const std::string message = message_of<FileError>([&] { texts_below(folder()); });
  if (user == 0) {
    ASSERT_EQ(::seteuid(user), 0);
  }
  std::filesystem::permissions(folder() / "a", std::filesystem::perms::owner_all);
  EXPECT_NE(message.find("a: cannot be listed"), std::string::npos) << message;
}

TEST(PartInName, IsAWordOfAFilesNameUnlessItIsAProgramSource) {
  for (const auto& [name, part] :
       std::vector<std::pair<std::string, std::string>>{{"train.txt", "train"},      {"ptb.train.txt", "train"},
                                                        {"ptb.valid.txt", "valid"},  {"ptb.test.txt", "test"},
                                                        {"dev.csv", "valid"},        {"train-00001.txt", "train"},
                                                        {"Validation.TSV", "valid"}, {"val.json", "valid"},
                                                        {"TRAIN.TXT", "train"},      {"wiki.test.tokens", "test"},
                                                        {"x.train.txt.gz", "train"}, {"test.md", "test"},
                                                        {"train.bpe.en", "train"},   {"train-test.txt", ""},
                                                        {"trains.txt", ""},          {"train.py", ""},
                                                        {"test_sort.c", ""},         {"test.H", ""},
                                                        {"letters.txt", ""},         {"attest.txt", ""}}) {
    EXPECT_EQ(part_in_file_name("root/" + name), part) << name;
  }
}

TEST(PartInName, IsTheWholeNameOfTheFirstFolder) {
  for (const auto& [name, part] : std::vector<std::pair<std::string, std::string>>{{"test/a.c", "test"},
                                                                                   {"training/deep/b.xyz", "train"},
                                                                                   {"Dev/b", "valid"},
                                                                                   {"deep/test/b.xyz", ""},
                                                                                   {"test-drivers/a.c", ""},
                                                                                   {"test", ""}}) {
    EXPECT_EQ(part_in_folder_name("root/" + name, "root"), part) << name;
  }
}

}  // namespace
}  // namespace routing::text_tree_test
