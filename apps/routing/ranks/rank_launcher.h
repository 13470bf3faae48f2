// Starts the ranks of a run on this machine, watches them, ends all if one is lost, and starts them again if asked to.
#pragma once

#include "ranks/launched.h"
#include "routing/distributed/watch/rank_judge.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct LaunchOptions {
  int ranks = 1;
  int restarts = 0;
  std::chrono::milliseconds timeout{60000};
  // Of a training: where ranks' logs go and checkpoints are. Empty for work that keeps nothing: it is done or it
  // failed.
  std::filesystem::path run = {};
  std::vector<std::string> arguments = {};  // of the program: the ranks get the same
  bool quiet = false;
  int speaker = 0;  // the rank that speaks on our terminal and whose exit code is that of all
};

// Returns the exit code of the whole run. Prints one line if it failed.
int launch_ranks(const LaunchOptions& options);

// The line about a failure: of a training with the last step, and with the checkpoint that there is to go on from.
std::string failure_line(const RankFailure& failure, const std::filesystem::path& run);

}  // namespace routing
