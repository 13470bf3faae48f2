// The main function of all test programs. A program holds the files of a whole room; --file=NAME,… takes those of some
// files only, named without folder and extension.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <malloc.h>
#include <sstream>
#include <string>
#include <vector>

namespace {

const std::string kOption = "--file=";

// Takes the option out of the arguments, so that GoogleTest does not see it.
std::vector<std::string> wanted_files(int& count, char** arguments) {
  std::vector<std::string> wanted;
  int kept = 1;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument.starts_with(kOption)) {
      std::istringstream names(argument.substr(kOption.size()));
      for (std::string name; std::getline(names, name, ',');) wanted.push_back(name);
    } else {
      arguments[kept++] = arguments[i];
    }
  }
  arguments[kept] = nullptr;
  count = kept;
  return wanted;
}

// A filter of GoogleTest for all cases of these files; those that nobody finds are left in `wanted`.
std::string filter_for(std::vector<std::string>& wanted) {
  const auto stem_of = [](const testing::TestInfo& info) { return std::filesystem::path(info.file()).stem().string(); };
  std::string filter;
  std::vector<std::string> found;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& info = *suite.GetTestInfo(t);
      const std::string stem = stem_of(info);
      if (std::find(wanted.begin(), wanted.end(), stem) == wanted.end()) continue;
      found.push_back(stem);
      filter += std::string(suite.name()) + "." + info.name() + ":";
    }
  }
  std::erase_if(wanted,
                [&](const std::string& name) { return std::find(found.begin(), found.end(), name) != found.end(); });
  return filter;
}

}  // namespace

int main(int count, char** arguments) {
  // Oracles make and drop tensors of megabytes: memory that goes back to the system each time is a third of their time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  std::vector<std::string> wanted = wanted_files(count, arguments);
  testing::InitGoogleTest(&count, arguments);
  // A filter that was given as well, as ctest does for single cases, says more.
  if (!wanted.empty() && GTEST_FLAG_GET(filter) == "*") {
    const std::string filter = filter_for(wanted);
    if (!wanted.empty()) {
      std::cerr << "no cases of a file " << wanted.front() << " in this program\n";
      return 2;
    }
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
