// What the pages name exists: files, folders, tests, links, and the facts that comments cite. A page that still names
// what was moved or renamed sends its reader nowhere.
#include "test_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace routing::docs_test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ROUTING_SOURCE_DIR;

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The first group of every match.
std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found{kRoot / "README.md", kRoot / "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> sources() {
  std::vector<fs::path> found;
  for (const char* folder : {"src", "apps", "bench", "tests", "presets"}) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp" || extension == ".inl" || extension == ".toml") {
        found.push_back(entry.path());
      }
    }
  }
  return found;
}

// Words in capitals stand for a name: tests/ROOM/FILE.cpp, presets/NAME.toml, NAME_avx2.cpp.
bool has_placeholder(const std::string& path) {
  static const std::regex word(R"((?:^|[^A-Za-z])([A-Z]{2,})(?![A-Za-z]))");
  static const std::set<std::string> real{"README", "CONTRIBUTING", "CHANGELOG"};
  const std::vector<std::string> words = matches(path, word);
  return std::any_of(words.begin(), words.end(), [](const std::string& each) { return !real.contains(each); });
}

// A name in which `*` stands for any characters.
std::regex name_pattern(const std::string& name) {
  const std::string dots = std::regex_replace(name, std::regex(R"(\.)"), "\\.");
  return std::regex(std::regex_replace(dots, std::regex(R"(\*)"), ".*"));
}

// Is there such a file or folder? A file may be named without its extension, as pages do for a header and its source.
bool exists_below(const fs::path& folder, const fs::path& path) {
  if (fs::exists(folder / path) || fs::exists((folder / path).string() + ".cpp")) return true;
  const fs::path parent = (folder / path).parent_path();
  if (!fs::is_directory(parent)) return false;
  const std::regex pattern = name_pattern(path.filename());
  return std::any_of(fs::directory_iterator(parent), fs::directory_iterator(), [&](const fs::directory_entry& entry) {
    return std::regex_match(entry.path().filename().string(), pattern);
  });
}

// Every path from the root of the repository, in prose, code and links alike.
std::vector<std::string> rooted_paths(const std::string& text) {
  static const std::regex pattern(
      R"((?:^|[^\w/.~$-])((?:src|docs|tests|scripts|presets|apps|bench|cmake)/[\w./*-]*[\w*/]))");
  return matches(text, pattern);
}

// Sources in backticks: `ops/attend/plan.h` below src/ or a part of it, or the bare name of a file that is
// anywhere.
std::vector<std::string> sources_in_backticks(const std::string& text) {
  static const std::regex pattern(R"(`((?:[\w*-]+/)*[\w*.-]+\.(?:h|cpp|inl))(?!\w))");
  return matches(text, pattern);
}

std::set<std::string> names_of_all_files() {
  std::set<std::string> names;
  for (const fs::path& source : sources()) names.insert(source.filename());
  return names;
}

bool source_exists(const std::string& named, const std::set<std::string>& names) {
  if (named.find('/') == std::string::npos) {
    const std::regex pattern = name_pattern(named);
    return std::any_of(names.begin(), names.end(), [&](const auto& name) { return std::regex_match(name, pattern); });
  }
  if (exists_below(kRoot, named) || exists_below(kRoot / "src", named)) return true;
  return std::any_of(fs::directory_iterator(kRoot / "src"), fs::directory_iterator(),
                     [&](const fs::directory_entry& part) { return exists_below(part.path(), named); });
}

// Suite.Name of every test there is, those that are commands among them.
std::set<std::string> names_of_all_tests() {
  std::set<std::string> tests;
  static const std::regex definition(R"(TEST(?:_P|_F)?\(\s*(\w+,\s*\w+)\))");
  static const std::regex comma(R"(,\s*)");
  for (const fs::path& source : sources()) {
    for (const std::string& name : matches(contents(source), definition)) {
      tests.insert(std::regex_replace(name, comma, "."));
    }
  }
  static const std::regex command(R"(NAME (\w+\.\w+))");
  for (const std::string& name : matches(contents(kRoot / "tests/CMakeLists.txt"), command)) tests.insert(name);
  return tests;
}

// `Suite.Name`, or `Suite.*` for all of a suite.
std::vector<std::string> tests_in_backticks(const std::string& text) {
  static const std::regex pattern(R"(`([A-Z]\w+\.(?:[A-Z]\w+|\*))`)");
  return matches(text, pattern);
}

bool test_exists(const std::string& named, const std::set<std::string>& tests) {
  if (!named.ends_with("*")) return tests.contains(named);
  const std::string suite = named.substr(0, named.size() - 1);
  return std::any_of(tests.begin(), tests.end(), [&](const std::string& test) { return test.starts_with(suite); });
}

// Where something lies on the computer of whoever wrote the page.
std::vector<std::string> paths_of_a_machine(const std::string& text) {
  static const std::regex pattern(R"(((?:/home/|/work/|/root/|/tmp/|/Users/|[A-Z]:\\)\w[\w./\\-]*))");
  return matches(text, pattern);
}

TEST(Documents, NameOnlyTestsThatExist) {
  const std::set<std::string> tests = names_of_all_tests();
  int mentions = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& named : tests_in_backticks(contents(page))) {
      EXPECT_TRUE(test_exists(named, tests)) << page << " names " << named;
      ++mentions;
    }
  }
  EXPECT_GT(mentions, 30);
}

TEST(Documents, NameOnlyPathsThatExist) {
  const std::set<std::string> names = names_of_all_files();
  int mentions = 0;
  for (const fs::path& page : pages()) {
    const std::string text = contents(page);
    for (const std::string& named : rooted_paths(text)) {
      EXPECT_TRUE(has_placeholder(named) || exists_below(kRoot, named)) << page << " names " << named;
      ++mentions;
    }
    for (const std::string& named : sources_in_backticks(text)) {
      EXPECT_TRUE(has_placeholder(named) || source_exists(named, names)) << page << " names " << named;
      ++mentions;
    }
  }
  EXPECT_GT(mentions, 200);
}

TEST(Documents, LinkOnlyToWhatExists) {
  static const std::regex link(R"(\]\(([^)#\s]+)(?:#[^)]*)?\))");
  int links = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& target : matches(contents(page), link)) {
      if (target.find("://") != std::string::npos) continue;
      EXPECT_TRUE(fs::exists(page.parent_path() / target)) << page << " links to " << target;
      ++links;
    }
  }
  EXPECT_GT(links, 30);
}

TEST(Documents, ShowNoPathOfAMachine) {
  std::vector<fs::path> all = pages();
  all.push_back(kRoot / "CHANGELOG.md");
  for (const fs::path& page : all) {
    for (const std::string& path : paths_of_a_machine(contents(page))) ADD_FAILURE() << page << " shows " << path;
  }
}

// `docs/facts.md E7` in a comment, a message or a page, and the bare labels of the two pages that cite them by the row.
TEST(Documents, CiteOnlyFactsThatAreThere) {
  const std::string facts = contents(kRoot / "docs/facts.md");
  static const std::regex label(R"((?:\n#+ |\n\| )([A-G]\d*)(?:\.| \|))");
  const std::vector<std::string> list = matches(facts, label);
  const std::set<std::string> labels(list.begin(), list.end());
  EXPECT_GT(labels.size(), 50U);
  static const std::regex citation(R"(docs/facts\.md,? ([A-G]\d*)\b)");
  int citations = 0;
  std::vector<fs::path> all = sources();
  for (const fs::path& page : pages()) all.push_back(page);
  for (const fs::path& file : all) {
    for (const std::string& cited : matches(contents(file), citation)) {
      EXPECT_TRUE(labels.contains(cited)) << file << " cites " << cited;
      ++citations;
    }
  }
  static const std::regex bare(R"([( ]([A-G]\d{1,2})[,;:.) ])");
  for (const char* page : {"docs/paper-map.md", "docs/routing.md"}) {
    for (const std::string& cited : matches(contents(kRoot / page), bare)) {
      EXPECT_TRUE(labels.contains(cited)) << page << " cites " << cited;
      ++citations;
    }
  }
  EXPECT_GT(citations, 50);
}

TEST(Documents, PlantedMistakesAreFound) {
  const std::set<std::string> names{"plan.h"};
  EXPECT_EQ(rooted_paths("see `src/routing/core/error.h`, (docs/no-page.md) and x/src/y").size(), 2U);
  EXPECT_TRUE(exists_below(kRoot, "docs/architecture.md"));
  EXPECT_TRUE(exists_below(kRoot, "presets/tiny-*.toml"));
  EXPECT_FALSE(exists_below(kRoot, "docs/no-page.md"));
  EXPECT_FALSE(exists_below(kRoot, "presets/no-*.toml"));
  EXPECT_TRUE(has_placeholder("tests/ROOM/FILE.cpp"));
  EXPECT_TRUE(has_placeholder("NAME_avx2.cpp"));
  EXPECT_FALSE(has_placeholder("docs/README.md"));
  EXPECT_EQ(sources_in_backticks("`plan.h`, `no/plan.h`, plain plan.h").size(), 2U);
  EXPECT_TRUE(source_exists("plan.h", names));
  EXPECT_TRUE(source_exists("p*.h", names));
  EXPECT_FALSE(source_exists("no_plan.h", names));
  EXPECT_FALSE(source_exists("evaluation/no_file.cpp", names));
  EXPECT_EQ(tests_in_backticks("`Suite.Name`, `Suite.*`, `train.steps`, Suite.Other").size(), 2U);
  EXPECT_TRUE(test_exists("Suite.*", {"Suite.Name"}));
  EXPECT_FALSE(test_exists("Suite.Other", {"Suite.Name"}));
  EXPECT_EQ(paths_of_a_machine("in /home/someone/x, C:\\data and /usr/share").size(), 2U);
}

}  // namespace
}  // namespace routing::docs_test
