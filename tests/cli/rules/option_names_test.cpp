#include "shell/option_names.h"

#include "test_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace routing {
namespace {

namespace fs = std::filesystem;

std::string all_sources() {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ROUTING_SOURCE_DIR) / "src")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    text.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return text;
}

TEST(OptionNames, FlagsStandWhereTheLibraryNamesItsOptions) {
  EXPECT_EQ(with_flags("run: holds a run already; go on with it by `resume`, or choose another `run`"),
            "run: holds a run already; go on with it by --resume, or choose another --out");
  EXPECT_EQ(with_flags("`rows` 9-4: a range; `rows` 1: there is none"), "--rows 9-4: a range; --rows 1: there is none");
}

TEST(OptionNames, OtherWordsInBackticksStay) {
  EXPECT_EQ(with_flags("unknown preset; `routing presets` lists all"), "unknown preset; `routing presets` lists all");
  EXPECT_EQ(with_flags("a ` alone, `` and rows"), "a ` alone, `` and rows");
}

TEST(OptionNames, EveryNameStandsInAMessageOfTheLibrary) {
  const std::string sources = all_sources();
  for (const OptionName& name : option_names()) {
    EXPECT_NE(sources.find("`" + std::string(name.in_library) + "`"), std::string::npos) << name.in_library;
  }
}

}  // namespace
}  // namespace routing
