// Runs the real program in a folder of its own and looks at what a user sees.
#pragma once

#include "test_paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace routing {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Cli : public testing::Test {
 protected:
  Cli() {
    const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("routing_cli_" + std::string(info->name()) + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~Cli() override { fs::remove_all(folder_); }

  // `arguments` as a user types them; `before` is set in the environment. Runs inside the test's own folder.
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    const std::string command = "cd '" + folder_.string() + "' && " + before + " '" + ROUTING_PROGRAM + "' " +
                                arguments + " > .stdout 2> .stderr < /dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder_ / ".stdout"), text_of(folder_ / ".stderr")};
  }

  // Exit code 2, nothing on standard output, and one line that begins as every error and holds all the parts.
  void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    const std::string line = outcome.err.substr(0, outcome.err.find('\n'));
    EXPECT_EQ(line.rfind("routing: error: ", 0), 0U) << outcome.err;
    for (const std::string& part : parts) EXPECT_TRUE(contains(line, part)) << arguments << ": " << line;
    const std::string rest = outcome.err.substr(line.size() + 1);
    EXPECT_TRUE(rest.empty() || rest.rfind("  hint: ", 0) == 0) << outcome.err;
  }

  fs::path folder_;
};

}  // namespace routing
