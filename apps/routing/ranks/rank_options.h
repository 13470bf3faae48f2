// Options of the commands that spread over ranks.
#pragma once

#include "shell/options.h"

#include <chrono>
#include <string>

namespace routing {

struct LocalRanks {
  int count = 1;
  int timeout_seconds = 60;

  std::chrono::milliseconds timeout() const { return std::chrono::seconds(timeout_seconds); }
};

// --ranks and --timeout; `work` says what the processes do together.
void add_rank_options(OptionGroup& group, LocalRanks& ranks, const std::string& work);

// Throws a UsageError where both --ranks and the environment say who the ranks are.
void refuse_two_sets_of_ranks(const LocalRanks& ranks);

}  // namespace routing
