// The order of rooms: a room includes only itself and rooms above it; what may not be in the library is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// In dependency order, as docs/architecture.md lists them; rooms that do not exist yet have their place already.
const std::vector<std::string> kRooms{"core",       "config",   "kernels", "ops",         "attention",
                                      "model",      "data",     "optim",   "distributed", "evaluation",
                                      "generation", "training", "analysis"};

std::size_t place_of(const std::string& room) {
  return static_cast<std::size_t>(std::find(kRooms.begin(), kRooms.end(), room) - kRooms.begin());
}

// What is wrong with one source file of a room; empty if nothing is.
std::vector<std::string> violations(const std::string& room, const std::string& text) {
  std::vector<std::string> found;
  static const std::regex include_of_room(R"(#include\s*"routing/([a-z_]+)/)");
  static const std::regex include_of_torch(R"(#include\s*<(torch|ATen|c10)/)");
  static const std::regex include_of_app(R"(#include\s*"(apps/|commands\.h))");
  static const std::regex prints_or_exits(
      R"((std::cout|std::cerr|std::clog|\b[fv]*printf\s*\(|\b(f?puts|putchar)\s*\(|\b(_|quick_)?_?exit\s*\(|\babort\s*\())");
  for (std::sregex_iterator it(text.begin(), text.end(), include_of_room), end; it != end; ++it) {
    const std::string included = (*it)[1];
    if (place_of(included) == kRooms.size()) found.push_back("includes the unknown room " + included);
    if (place_of(included) > place_of(room)) found.push_back("includes " + included + ", a room below it");
  }
  const bool torch_free = place_of(room) <= place_of("kernels");
  if (torch_free && std::regex_search(text, include_of_torch)) found.push_back("includes torch");
  if (std::regex_search(text, include_of_app)) found.push_back("includes the program");
  if (std::regex_search(text, prints_or_exits)) found.push_back("prints or exits");
  return found;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Layering, EveryRoomIncludesOnlyRoomsAboveIt) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ROUTING_SOURCE_DIR) / "src/routing")) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    const std::string room = fs::relative(entry.path(), fs::path(ROUTING_SOURCE_DIR) / "src/routing").begin()->string();
    EXPECT_LT(place_of(room), kRooms.size()) << room << " is not a room of the house";
    for (const std::string& violation : violations(room, contents(entry.path()))) {
      ADD_FAILURE() << entry.path() << " " << violation;
    }
    ++files;
  }
  EXPECT_GT(files, 20);
}

// The benchmarks use every room and are printed by the program.
TEST(Layering, BenchmarksDoNotPrintAndDoNotKnowTheProgram) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ROUTING_SOURCE_DIR) / "bench")) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    for (const std::string& violation : violations("analysis", contents(entry.path()))) {
      ADD_FAILURE() << entry.path() << " " << violation;
    }
    ++files;
  }
  EXPECT_GT(files, 10);
}

TEST(Layering, PlantedViolationsAreFound) {
  EXPECT_EQ(violations("ops", "#include \"routing/attention/plan.h\"\n").size(), 1U);
  EXPECT_EQ(violations("ops", "#include \"routing/cellar/plan.h\"\n").size(), 2U);
  EXPECT_EQ(violations("kernels", "#include <ATen/ATen.h>\n").size(), 1U);
  EXPECT_EQ(violations("analysis", "std::cout << 1;\n").size(), 1U);
  EXPECT_EQ(violations("core", "if (bad) std::exit(1);\n").size(), 1U);
  EXPECT_EQ(violations("attention", "#include \"commands.h\"\n").size(), 1U);
  EXPECT_TRUE(violations("attention", "#include \"routing/ops/attend.h\"\n#include <ATen/ATen.h>\n").empty());
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
  for (const char* folder : {"src", "apps", "bench", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(ROUTING_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string text = contents(entry.path());
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 500) << entry.path();
    }
  }
}

}  // namespace
