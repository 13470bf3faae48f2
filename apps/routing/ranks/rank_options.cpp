#include "ranks/rank_options.h"

#include "ranks/launched.h"
#include "routing/distributed/watch/rank_place.h"
#include "shell/usage_error.h"

#include <optional>

namespace routing {
namespace {

constexpr int kMostRanks = 4096;
constexpr int kLongestTimeout = 24 * 3600;

}  // namespace

void add_rank_options(OptionGroup& group, LocalRanks& ranks, const std::string& work) {
  group.add({"--ranks N", "processes on this machine that " + work}, ranks.count, whole_number(1, kMostRanks));
  group.add({"--timeout S", "end the run if a rank is lost for S seconds"}, ranks.timeout_seconds,
            whole_number(1, kLongestTimeout));
}

void refuse_two_sets_of_ranks(const LocalRanks& ranks) {
  const std::optional<RankPlace> place = rank_place();
  if (ranks.count == 1 || !place || is_launched()) return;
  throw UsageError("--ranks is " + std::to_string(ranks.count) + ", but RANK is set to " + std::to_string(place->rank) +
                       ": both say who the ranks are",
                   "leave --ranks out under torchrun, srun or mpirun; unset RANK and WORLD_SIZE otherwise");
}

}  // namespace routing
