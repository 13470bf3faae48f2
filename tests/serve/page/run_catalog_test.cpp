// Which runs are served, what they are called, and that no path of the disk gets out.
#include "serve/page/run_catalog.h"

#include "routing/core/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace routing::run_catalog_test {
namespace {

namespace fs = std::filesystem;

class RunCatalogTest : public testing::Test {
 protected:
  void make_run(const std::string& name) const {
    fs::create_directories(folder_ / name);
    write_file_at_once(folder_ / name / "config.toml", std::string());
  }
  static std::vector<std::string> ids_of(const RunCatalog& catalog) {
    std::vector<std::string> ids;
    for (const ServedRun& run : catalog.runs()) ids.push_back(run.id);
    return ids;
  }
  using Ids = std::vector<std::string>;
  TemporaryFolder folder_;
};

TEST_F(RunCatalogTest, IdsArePathsBelowTheServedFolder) {
  make_run("runs/b");
  make_run("runs/exp/a");
  const RunCatalog catalog({folder_ / "runs/"});
  EXPECT_EQ(ids_of(catalog), (Ids{"b", "exp/a"}));
  EXPECT_EQ(catalog.folder_of("exp/a"), fs::canonical(folder_ / "runs/exp/a"));
}

TEST_F(RunCatalogTest, ARunThatIsServedItselfHasItsLastPart) {
  make_run("runs/quickstart");
  EXPECT_EQ(ids_of(RunCatalog({folder_ / "runs/quickstart"})), Ids{"quickstart"});
  EXPECT_EQ(ids_of(RunCatalog({folder_ / "runs/../runs/quickstart/."})), Ids{"quickstart"});
}

TEST_F(RunCatalogTest, SeveralStandSideBySideAndKeepTheirNames) {
  make_run("one/runs/a");
  make_run("two/runs/a");
  make_run("three");
  RunCatalog catalog({folder_ / "one/runs", folder_ / "two/runs", folder_ / "three", folder_ / "three"});
  EXPECT_EQ(ids_of(catalog), (Ids{"runs-2/a", "runs/a", "three"}));
  // What becomes of others renames nothing.
  fs::remove_all(folder_ / "one");
  EXPECT_TRUE(catalog.refresh());
  EXPECT_EQ(ids_of(catalog), (Ids{"runs-2/a", "three"}));
  EXPECT_EQ(catalog.folder_of("runs-2/a"), fs::canonical(folder_ / "two/runs/a"));
}

TEST_F(RunCatalogTest, RunsComeAndGo) {
  fs::create_directories(folder_ / "runs");
  RunCatalog catalog({folder_ / "runs"});
  EXPECT_TRUE(catalog.runs().empty());
  EXPECT_FALSE(catalog.refresh());
  make_run("runs/new");
  EXPECT_TRUE(catalog.refresh());
  EXPECT_FALSE(catalog.refresh());
  EXPECT_EQ(ids_of(catalog), Ids{"new"});
  fs::rename(folder_ / "runs/new", folder_ / "runs/renamed");
  EXPECT_TRUE(catalog.refresh());
  EXPECT_EQ(ids_of(catalog), Ids{"renamed"});
  fs::remove_all(folder_ / "runs");
  EXPECT_TRUE(catalog.refresh());
  EXPECT_TRUE(catalog.runs().empty());
}

// Nothing that a client writes becomes part of a path.
TEST_F(RunCatalogTest, OnlyRunsThatWereFoundHaveFolders) {
  make_run("runs/a");
  make_run("outside");
  const RunCatalog catalog({folder_ / "runs"});
  for (const std::string id : {"../outside", "a/../../outside", "a/", "/a", "./a", "", "A"}) {
    const std::string message = message_of<NotFoundError>([&] { catalog.folder_of(id); });
    EXPECT_NE(message.find("there is no run '"), std::string::npos) << id;
  }
  EXPECT_THROW(catalog.folder_of(std::string("a\0", 2)), NotFoundError);
  EXPECT_THROW(catalog.folder_of((folder_ / "outside").string()), NotFoundError);
}

// JSON and addresses know only UTF-8.
TEST_F(RunCatalogTest, NamesThatAreNoTextHaveIdsThatAre) {
  make_run("runs/caf\xe9");
  make_run("runs/caf\xea");
  const RunCatalog catalog({folder_ / "runs"});
  EXPECT_EQ(ids_of(catalog), (Ids{"caf\uFFFD", "caf\uFFFD-2"}));
  EXPECT_NE(catalog.folder_of("caf\uFFFD"), catalog.folder_of("caf\uFFFD-2"));
}

TEST_F(RunCatalogTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_EQ(message_of<FileError>([&] { RunCatalog({folder_ / "nowhere"}); }),
            (folder_ / "nowhere").string() + ": is not a folder; give a run, or a folder below which there are runs");
}

TEST(WithoutPaths, NamesWhatLiesInTheFoldersAndTheLastPartOfAllElse) {
  const std::vector<fs::path> folders{"/home/me/work", "/home/me/work/runs", "/data"};
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/home/me/work/runs/a/metrics.jsonl: line 3 is not a JSON object",
       "a/metrics.jsonl: line 3 is not a JSON object"},
      {"/home/me/work/other: cannot be listed", "other: cannot be listed"},
      {"/home/me/work: is not a folder", "work: is not a folder"},
      {"/home/me/work/: is not a folder", "work/: is not a folder"},
      {"give '/home/me/work/runs/a' or \"/etc/passwd\"", "give 'a' or \"passwd\""},
      {"/home/me/worker/x: no", "x: no"},
      {"(/usr/lib/x.so)", "(x.so)"},
      {"path=/usr/lib/x/", "path=x"},
      {"2.19 bits/byte, 3/4 of runs/a, I/O error, https://host/page",
       "2.19 bits/byte, 3/4 of runs/a, I/O error, https://host/page"},
      {"/", "/"},
      {"a / b", "a / b"},
      {"/a", "a"},
      {"", ""},
      {"/x/y\n/z/w", "y\nw"},
      {"see /home/me/work/runs/a and /home/me/work/runs/b", "see a and b"}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(without_paths(text, folders), expected) << text;
}

TEST_F(RunCatalogTest, MessagesLoseTheServedFolders) {
  make_run("runs/a");
  const RunCatalog catalog({folder_ / "runs"});
  const std::string folder = fs::canonical(folder_ / "runs/a").string();
  EXPECT_EQ(catalog.without_paths(folder + ": holds no run"), "a: holds no run");
}

}  // namespace
}  // namespace routing::run_catalog_test
