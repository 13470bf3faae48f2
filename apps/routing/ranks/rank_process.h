// This process as one rank of a run: joins the others, does its work, and ends so that all of them know.
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/distributed/watch/rank_place.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace routing {

struct RankProcessOptions {
  std::chrono::milliseconds timeout{60000};
  int restarts = 0;                // start this process anew after a failure, where nobody launched it
  std::filesystem::path run = {};  // of a training: where the rank's log goes; see LaunchOptions
  std::vector<std::string> arguments = {};
};

// Calls work(group, local rank) and returns what it returns. If a rank is lost, the process ends here.
int run_as_rank(const RankPlace& place, const RankProcessOptions& options,
                const std::function<int(const std::shared_ptr<RankGroup>&, int local_rank)>& work);

}  // namespace routing
