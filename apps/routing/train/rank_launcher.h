// Starts the ranks of a run on this machine, watches them, ends all if one is lost, and starts them again if asked to.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct LaunchOptions {
  int ranks = 1;
  int restarts = 0;
  std::chrono::milliseconds timeout{60000};
  std::filesystem::path run = {};           // where ranks' logs go
  std::vector<std::string> arguments = {};  // of the program: the ranks get the same
  bool quiet = false;
};

// Tells a rank that its launcher speaks for it.
inline constexpr const char* kLaunchedVariable = "ROUTING_LAUNCHED";
// Was this process started by launch_ranks()? Then that one tells people what happened.
inline bool is_launched() {
  return std::getenv(kLaunchedVariable) != nullptr;
}
// How often the run was started anew.
inline constexpr const char* kAttemptVariable = "ROUTING_ATTEMPT";

// Returns the exit code of the whole run. Prints one line if it failed.
int launch_ranks(const LaunchOptions& options);

// The end of the line about a failure: which checkpoint there is to go on from.
std::string remedy(const std::filesystem::path& run);

}  // namespace routing
