// The order of rooms: a room includes only itself and rooms above it; what may not be in the library is not there.
#include "test_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace routing::layering_test {
namespace {

namespace fs = std::filesystem;

// In dependency order, as docs/architecture.md lists them. A folder inside a room has its own place, mostly above the
// room's other files. The laboratory comes last: no file of the library includes it.
const std::vector<std::string> kRooms{"routing/core",
                                      "routing/config/text",
                                      "routing/config",
                                      "routing/kernels/dispatch",
                                      "routing/kernels/pointwise",
                                      "routing/kernels/centroids",
                                      "routing/kernels/dense",
                                      "routing/kernels/attend",
                                      "routing/kernels/optim",
                                      "routing/ops",
                                      "routing/ops/dense",
                                      "routing/ops/attend",
                                      "routing/attention/plan",
                                      "routing/attention/routing",
                                      "routing/attention/patterns",
                                      "routing/attention/cache",
                                      "routing/attention/pieces",
                                      "routing/attention",
                                      "routing/storage",
                                      "routing/model",
                                      "routing/interchange/values",
                                      "routing/interchange/bundle",
                                      "routing/interchange/pickle",
                                      "routing/interchange",
                                      "routing/data/sources",
                                      "routing/data/images",
                                      "routing/data/tokenizers",
                                      "routing/data/tasks",
                                      "routing/data",
                                      "routing/optim",
                                      "routing/distributed/watch",
                                      "routing/distributed/group",
                                      "routing/distributed",
                                      "routing/evaluation",
                                      "routing/generation",
                                      "routing/serving/http/wire",
                                      "routing/serving/http",
                                      "routing/training/log",
                                      "routing/training",
                                      "lab/measure",
                                      "lab/figures",
                                      "lab/runs",
                                      "lab/heads",
                                      "lab/leak",
                                      "lab/texts",
                                      "lab/tables",
                                      "lab/bench"};

std::size_t place_of(const std::string& room) {
  return static_cast<std::size_t>(std::find(kRooms.begin(), kRooms.end(), room) - kRooms.begin());
}

// What is wrong with one source file of a room; empty if nothing is.
std::vector<std::string> violations(const std::string& room, const std::string& text) {
  std::vector<std::string> found;
  static const std::regex include_of_room(R"(#include\s*"((routing|lab)(/[a-z_]+)*)/[a-z_0-9]+\.h")");
  static const std::regex include_of_torch(R"(#include\s*<(torch|ATen|c10)/)");
  static const std::regex include_of_app(R"(#include\s*"(apps/|commands\.h))");
  static const std::regex attends_by_kernels(
      R"(#include\s*"routing/kernels/attend/attend\.h"|\bkernels::attend_(forward|backward)\b)");
  static const std::regex prints_or_exits(
      R"((std::cout|std::cerr|std::clog|\b[fv]*printf\s*\(|\b(f?puts|putchar)\s*\(|\b(_|quick_)?_?exit\s*\(|\babort\s*\())");
  static const std::regex flag_in_text(R"("[^"\n]*--[a-z])");
  for (std::sregex_iterator it(text.begin(), text.end(), include_of_room), end; it != end; ++it) {
    const std::string included = (*it)[1];
    if (place_of(included) == kRooms.size()) found.push_back("includes the unknown room " + included);
    if (place_of(included) > place_of(room)) found.push_back("includes " + included + ", a room below it");
  }
  const bool torch_free = place_of(room) <= place_of("routing/kernels/optim");
  if (torch_free && std::regex_search(text, include_of_torch)) found.push_back("includes torch");
  if (std::regex_search(text, include_of_app)) found.push_back("includes the program");
  const bool may_attend = room == "routing/ops/attend" || room == "routing/kernels/attend";
  if (!may_attend && std::regex_search(text, attends_by_kernels)) found.push_back("attends past routing/ops/attend");
  if (std::regex_search(text, prints_or_exits)) found.push_back("prints or exits");
  if (std::regex_search(text, flag_in_text)) found.push_back("names a flag of the command line");
  return found;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_source(const fs::path& path) {
  const std::string extension = path.extension();
  return extension == ".h" || extension == ".cpp" || extension == ".inl";
}

TEST(Layering, EveryRoomIncludesOnlyRoomsAboveIt) {
  const fs::path root = fs::path(ROUTING_SOURCE_DIR) / "src";
  std::set<std::string> rooms;
  int files = 0;
  for (const char* part : {"routing", "lab"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / part)) {
      const std::string room = fs::relative(entry.path().parent_path(), root);
      if (!is_source(entry.path()) || room.find("missing_headers") != std::string::npos) continue;
      EXPECT_LT(place_of(room), kRooms.size()) << room << " is not a room of the house";
      for (const std::string& violation : violations(room, contents(entry.path()))) {
        ADD_FAILURE() << entry.path() << " " << violation;
      }
      rooms.insert(room);
      ++files;
    }
  }
  EXPECT_GT(files, 400);
  for (const std::string& room : kRooms) EXPECT_TRUE(rooms.contains(room)) << room << " has no files";
}

TEST(Layering, PlantedViolationsAreFound) {
  EXPECT_EQ(violations("routing/ops", "#include \"routing/attention/plan/plan_builder.h\"\n").size(), 1U);
  EXPECT_EQ(violations("routing/ops", "#include \"routing/cellar/plan.h\"\n").size(), 2U);
  EXPECT_EQ(violations("routing/attention/plan", "#include \"routing/attention/cache/head_cache.h\"\n").size(), 1U);
  EXPECT_EQ(violations("routing/training", "#include \"lab/measure/runner.h\"\n").size(), 1U);
  EXPECT_EQ(violations("routing/kernels/dense", "#include <ATen/ATen.h>\n").size(), 1U);
  EXPECT_EQ(violations("lab/heads", "std::cout << 1;\n").size(), 1U);
  EXPECT_EQ(violations("routing/core", "if (bad) std::exit(1);\n").size(), 1U);
  EXPECT_EQ(violations("routing/attention", "#include \"commands.h\"\n").size(), 1U);
  EXPECT_EQ(violations("routing/attention", "#include \"routing/kernels/attend/attend.h\"\n").size(), 1U);
  EXPECT_EQ(violations("lab/bench", "kernels::attend_forward(problem, output, lse);\n").size(), 1U);
  EXPECT_TRUE(violations("routing/ops/attend", "#include \"routing/kernels/attend/attend.h\"\n").empty());
  EXPECT_EQ(violations("lab/bench", "throw ConfigError(\"raise --repeats\");\n").size(), 1U);
  EXPECT_TRUE(
      violations("routing/attention", "#include \"routing/ops/attend/attend.h\"\n#include <ATen/ATen.h>\n").empty());
}

TEST(Layering, NoFolderHoldsMoreFilesThanOneCanSurvey) {
  std::map<fs::path, int> counts;
  for (const char* part : {"src", "apps", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(ROUTING_SOURCE_DIR) / part)) {
      if (is_source(entry.path())) ++counts[entry.path().parent_path()];
    }
  }
  for (const auto& [folder, count] : counts) EXPECT_LE(count, 28) << folder;
}

// The list above is the one people read.
TEST(Layering, TheArchitecturePageListsTheRoomsInThisOrder) {
  const std::string page = contents(fs::path(ROUTING_SOURCE_DIR) / "docs/architecture.md");
  std::size_t last = 0;
  for (const std::string& room : kRooms) {
    const std::size_t place = page.find("| `" + room + "/`");
    ASSERT_NE(place, std::string::npos) << room;
    EXPECT_GT(place, last) << room;
    last = place;
  }
}

TEST(Layering, NoSourceFileIsLongerThanAReviewAllows) {
  for (const char* folder : {"src", "apps", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(ROUTING_SOURCE_DIR) / folder)) {
      if (!is_source(entry.path())) continue;
      const std::string text = contents(entry.path());
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 500) << entry.path();
    }
  }
}

}  // namespace
}  // namespace routing::layering_test
