// Decides from the beats of all ranks whether one of them is lost, and which.
#pragma once

#include "routing/distributed/watch/rank_status.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// Why a run over several ranks ends before its time.
struct RankFailure {
  int rank = 0;           // -1 where it is not a single one
  std::int64_t step = 0;  // the last that was finished
  std::string reason = {};

  // "rank 2 failed after step 37: …".
  std::string text() const;
};
std::string to_record(const RankFailure& failure);
// Nothing for a text that to_record() has not written.
std::optional<RankFailure> failure_from_record(const std::string& record);

// How long a rank may be silent, and how long others may wait for one that is not: parts of the time in which the whole
// run must have ended.
struct JudgeLimits {
  std::chrono::milliseconds silent{0};
  std::chrono::milliseconds waiting{0};
  std::chrono::milliseconds starting{0};
};
JudgeLimits judge_limits(std::chrono::milliseconds timeout);
// How often ranks send a beat.
std::chrono::milliseconds beat_period(std::chrono::milliseconds timeout);

// A rank is lost if it has sent no beat for `silent` (dead, stopped, no network; its first may take `starting`), or if
// another has waited for `waiting` in a collective and it has not come there (hangs), or if all wait so long. While any
// rank prepares or saves nobody is late, and waiting counts from there on.
class RankJudge {
 public:
  RankJudge(int ranks, JudgeLimits limits, std::chrono::steady_clock::time_point begin);

  // The newest beat of every rank; nothing for one that has not sent any.
  std::optional<RankFailure> look(const std::vector<std::optional<RankBeat>>& beats,
                                  std::chrono::steady_clock::time_point now);

 private:
  struct Seen {
    std::int64_t number = 0;
    std::chrono::steady_clock::time_point when;
  };
  using Time = std::chrono::steady_clock::time_point;
  std::chrono::milliseconds waited(const RankBeat& beat, Time now) const;
  std::optional<RankFailure> find_deadlock(const std::vector<std::optional<RankBeat>>& beats, Time now) const;
  std::optional<RankFailure> find_late(const std::vector<std::optional<RankBeat>>& beats, Time now);

  JudgeLimits limits_;
  Time excused_;  // when a rank was last seen preparing or saving
  std::vector<Seen> seen_;
};

}  // namespace routing
