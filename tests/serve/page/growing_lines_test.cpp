// Files of lines while others write, cut and replace them.
#include "serve/page/growing_lines.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace routing::growing_lines_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class Heard : public LineListener {
 public:
  void restart() override { steps.clear(); }
  LineMark take(const Json& line) override {
    steps.push_back(line.at("step"));
    ++lines;
    return {.step = steps.back()};
  }
  std::vector<std::int64_t> steps;
  int lines = 0;  // over all restarts
};

std::string line(std::int64_t step) {
  return "{\"step\":" + std::to_string(step) + "}\n";
}

class GrowingLinesTest : public testing::Test {
 protected:
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  void replace(const std::string& text) const { write_file_at_once(path_, text); }
  std::vector<std::int64_t> read(const std::vector<std::size_t>& numbers) const {
    std::vector<std::int64_t> steps;
    const auto objects = lines_.read(numbers);
    if (!objects) return {-1};
    for (const Json& object : *objects) steps.push_back(object.at("step"));
    return steps;
  }
  using Steps = std::vector<std::int64_t>;
  TemporaryFolder folder_;
  fs::path path_ = folder_ / "lines.jsonl";
  Heard heard_;
  GrowingLines lines_{path_, heard_};
};

TEST_F(GrowingLinesTest, EveryWholeLineIsHeardOnce) {
  EXPECT_FALSE(lines_.refresh()) << "not there";
  append(line(1) + line(2) + "{\"step\":");
  EXPECT_TRUE(lines_.refresh());
  EXPECT_EQ(heard_.steps, (Steps{1, 2}));
  EXPECT_FALSE(lines_.refresh());
  append("3}\n" + line(4));
  EXPECT_TRUE(lines_.refresh());
  EXPECT_EQ(heard_.steps, (Steps{1, 2, 3, 4}));
  EXPECT_EQ(heard_.lines, 4);
  EXPECT_EQ(lines_.size(), 4U);
  EXPECT_EQ(lines_.mark(2).step, 3);
  EXPECT_EQ(lines_.cuts(), 0U);
  EXPECT_EQ(lines_.problem(), "");
  EXPECT_EQ(read({0, 3}), (Steps{1, 4}));
  EXPECT_EQ(read({}), Steps{});
}

// A resume rewrites the file with fewer lines and goes on.
TEST_F(GrowingLinesTest, WhatIsCutBackIsTakenBack) {
  append(line(1) + line(2) + line(3));
  lines_.refresh();
  replace(line(1) + line(2));
  EXPECT_TRUE(lines_.refresh());
  EXPECT_EQ(heard_.steps, (Steps{1, 2}));
  EXPECT_EQ(lines_.cuts(), 1U);
  EXPECT_EQ(lines_.kept_since(0, 3), 2U);
  EXPECT_EQ(lines_.kept_since(0, 1), 1U);
  append(line(3) + line(4));
  lines_.refresh();
  EXPECT_EQ(lines_.kept_since(1, 2), 2U);
  EXPECT_EQ(lines_.kept_since(0, 3), 2U) << "the third line is another one now";
  replace(line(9));
  lines_.refresh();
  EXPECT_EQ(lines_.kept_since(0, 3), 0U);
  EXPECT_EQ(lines_.kept_since(2, 1), 1U);
}

TEST_F(GrowingLinesTest, AFileThatIsReplacedByTheSameAndMoreWasNotCut) {
  append(line(1) + line(2));
  lines_.refresh();
  replace(line(1) + line(2) + line(3));
  EXPECT_TRUE(lines_.refresh());
  EXPECT_EQ(lines_.cuts(), 0U);
  EXPECT_EQ(lines_.kept_since(0, 2), 2U);
  EXPECT_EQ(heard_.steps, (Steps{1, 2, 3}));
}

// The next process takes away the half line that a killed one has left.
TEST_F(GrowingLinesTest, HalfALineThatIsTakenAwayWasNeverThere) {
  append(line(1) + "{\"step\":2,\"a\"");
  lines_.refresh();
  fs::resize_file(path_, line(1).size());
  append("{\"step\":5,\"what\":\"a longer line than the half one\"}\n");
  lines_.refresh();
  EXPECT_EQ(heard_.steps, (Steps{1, 5}));
  EXPECT_EQ(lines_.cuts(), 0U);
}

TEST_F(GrowingLinesTest, AFileCutInItsPlaceAndGrownAgainIsReadAnew) {
  append(line(1) + line(2) + line(3));
  lines_.refresh();
  fs::resize_file(path_, line(1).size());
  append(line(7) + line(8) + line(9));
  lines_.refresh();
  EXPECT_EQ(heard_.steps, (Steps{1, 7, 8, 9}));
  EXPECT_EQ(lines_.kept_since(0, 3), 1U);
}

TEST_F(GrowingLinesTest, FilesThatVanishComeBack) {
  append(line(1) + line(2));
  lines_.refresh();
  fs::remove(path_);
  EXPECT_TRUE(lines_.refresh());
  EXPECT_EQ(lines_.size(), 0U);
  EXPECT_EQ(lines_.kept_since(0, 2), 0U);
  EXPECT_EQ(read({}), Steps{});
  EXPECT_FALSE(lines_.refresh());
  append(line(1));
  EXPECT_TRUE(lines_.refresh());
  EXPECT_EQ(heard_.steps, Steps{1});
}

TEST_F(GrowingLinesTest, LinesThatCannotBeReadAreCountedAndNamed) {
  append(line(1) + "no json\n[1]\n" + line(4));
  lines_.refresh();
  EXPECT_EQ(lines_.size(), 4U);
  EXPECT_EQ(lines_.problem(), path_.string() + ": line 2 is not a JSON object; remove the line");
  EXPECT_EQ(read({0, 1, 2, 3}), (Steps{1, 4}));
  replace(line(1) + "{\"no\":\"step\"}\n");
  lines_.refresh();
  EXPECT_EQ(lines_.problem().find(path_.string() + ": line 2 is not of a run: "), 0U) << lines_.problem();
  EXPECT_EQ(read({0, 1}), Steps{1});
  replace(line(1));
  lines_.refresh();
  EXPECT_EQ(lines_.problem(), "") << "it is no more";
}

TEST_F(GrowingLinesTest, NestedDeeplyIsNotOfARun) {
  append("{\"step\":1,\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}\n" + line(2));
  lines_.refresh();
  EXPECT_EQ(lines_.size(), 2U);
  EXPECT_EQ(heard_.steps, Steps{2});
}

TEST_F(GrowingLinesTest, ALineWithoutEndIsGivenUp) {
  append(line(1) + std::string(static_cast<std::size_t>(GrowingLines::kLongestLine) + 1, 'x'));
  lines_.refresh();
  EXPECT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_.problem().find("line 2 is longer than 4 MiB"), std::string::npos) << lines_.problem();
  append("\n" + line(3));
  lines_.refresh();
  EXPECT_EQ(heard_.steps, Steps{1});
}

// What is no file is not opened, and nobody waits for it.
TEST_F(GrowingLinesTest, OnlyPlainFilesAreRead) {
  append(line(1));
  lines_.refresh();
  fs::rename(path_, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", path_);
  EXPECT_TRUE(lines_.refresh());
  EXPECT_EQ(lines_.size(), 0U);
  EXPECT_NE(lines_.problem().find("cannot be read"), std::string::npos);
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  lines_.refresh();
  EXPECT_NE(lines_.problem().find("is not a file"), std::string::npos) << lines_.problem();
  fs::remove(path_);
  fs::create_directory(path_);
  lines_.refresh();
  EXPECT_NE(lines_.problem().find("is not a file"), std::string::npos) << lines_.problem();
  fs::remove(path_);
  append(line(2));
  lines_.refresh();
  EXPECT_EQ(heard_.steps, Steps{2});
  EXPECT_EQ(lines_.problem(), "");
}

TEST_F(GrowingLinesTest, LinesThatWereReplacedSinceAreNotRead) {
  append(line(1) + line(2));
  lines_.refresh();
  replace(line(1) + line(7));
  EXPECT_EQ(read({0}), Steps{1});
  EXPECT_EQ(read({1}), Steps{-1});
  fs::remove(path_);
  EXPECT_EQ(read({0}), Steps{-1});
}

// Larger than what is read at a time.
TEST_F(GrowingLinesTest, LinesAcrossPiecesAreWhole) {
  std::string text;
  for (int step = 0; step < 40; ++step) {
    text += "{\"step\":" + std::to_string(step) + ",\"text\":\"" + std::string(100'000, 'a') + "\"}\n";
  }
  append(text);
  lines_.refresh();
  EXPECT_EQ(lines_.size(), 40U);
  EXPECT_EQ(read({0, 17, 39}), (Steps{0, 17, 39}));
}

TEST(PlainFiles, AreReadFromAnywhereAndToTheirEnd) {
  const TemporaryFolder folder;
  write_file_at_once(folder / "file", std::string("0123456789"));
  const PlainFile file(folder / "file");
  EXPECT_EQ(file.facts().size, 10);
  EXPECT_EQ(file.read(3, 4), "3456");
  EXPECT_EQ(file.read(8, 100), "89");
  EXPECT_EQ(file.read(20, 5), "");
  EXPECT_NE(message_of<FileError>([&] { PlainFile(folder / "none"); }).find("none: cannot be read: "),
            std::string::npos);
}

TEST(FileFactsTest, TellFilesApart) {
  const TemporaryFolder folder;
  EXPECT_FALSE(facts_of(folder / "file").there);
  write_file_at_once(folder / "file", std::string("text"));
  const FileFacts first = facts_of(folder / "file");
  EXPECT_TRUE(first.there && first.size == 4);
  EXPECT_EQ(first, facts_of(folder / "file"));
  constexpr std::int64_t kMillisecond = 1'000'000;
  EXPECT_FALSE(first.settled(first.changed + 10 * kMillisecond));
  EXPECT_TRUE(first.settled(first.changed + 100 * kMillisecond));
  EXPECT_GT(nanoseconds_now() - first.changed, -100 * kMillisecond);
  EXPECT_TRUE(first.same_file(facts_of(folder / "file")));
  write_file_at_once(folder / "file", std::string("text"));
  EXPECT_FALSE(first.same_file(facts_of(folder / "file")));
  EXPECT_FALSE(FileFacts().same_file(FileFacts()));
}

}  // namespace
}  // namespace routing::growing_lines_test
