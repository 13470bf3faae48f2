#include "routing/distributed/watch/rank_judge.h"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;

// Steps are finished together: what any rank has finished, all had come to.
std::int64_t last_finished(const std::vector<std::optional<RankBeat>>& beats) {
  std::int64_t step = 0;
  for (const auto& beat : beats) {
    if (beat) step = std::max(step, beat->step);
  }
  return step;
}

}  // namespace

std::string RankFailure::text() const {
  return (rank < 0 ? "the run" : "rank " + std::to_string(rank)) + " failed after step " + std::to_string(step) + ": " +
         reason;
}

std::string to_record(const RankFailure& failure) {
  return std::to_string(failure.rank) + " " + std::to_string(failure.step) + " " + failure.reason;
}

std::optional<RankFailure> failure_from_record(const std::string& record) {
  std::istringstream words(record);
  RankFailure failure;
  if (!(words >> failure.rank >> failure.step)) return std::nullopt;
  // One space, then whatever the reason is, lines and all.
  if (words.get() == ' ') failure.reason.assign(std::istreambuf_iterator<char>(words), {});
  return to_record(failure) == record ? std::optional(failure) : std::nullopt;
}

JudgeLimits judge_limits(std::chrono::milliseconds timeout) {
  return {.silent = timeout / 2, .waiting = timeout * 3 / 4, .starting = timeout * 3 / 4};
}

std::chrono::milliseconds beat_period(std::chrono::milliseconds timeout) {
  return std::clamp(timeout / 20, std::chrono::milliseconds(20), std::chrono::milliseconds(1000));
}

RankJudge::RankJudge(int ranks, JudgeLimits limits, Clock::time_point begin)
    : limits_(limits), excused_(begin), seen_(static_cast<std::size_t>(ranks), Seen{.when = begin}) {}

// How long a rank has waited without an excuse for those it waits for.
std::chrono::milliseconds RankJudge::waited(const RankBeat& beat, Clock::time_point now) const {
  return std::min(beat.phase_age, std::chrono::duration_cast<std::chrono::milliseconds>(now - excused_));
}

// All ranks wait, each in another collective than the rest.
std::optional<RankFailure> RankJudge::find_deadlock(const std::vector<std::optional<RankBeat>>& beats,
                                                    Clock::time_point now) const {
  const auto youngest = std::min_element(beats.begin(), beats.end(),
                                         [](const auto& a, const auto& b) { return a->phase_age < b->phase_age; });
  if (waited(**youngest, now) < limits_.waiting) return std::nullopt;
  return RankFailure{.rank = static_cast<int>(youngest - beats.begin()),
                     .step = last_finished(beats),
                     .reason = "all ranks wait for one another since " + to_text((*youngest)->phase_age)};
}

std::optional<RankFailure> RankJudge::find_late(const std::vector<std::optional<RankBeat>>& beats,
                                                Clock::time_point now) {
  std::optional<std::size_t> waiter, late;
  for (std::size_t rank = 0; rank < beats.size(); ++rank) {
    if (!beats[rank]) return std::nullopt;
    const RankBeat& beat = *beats[rank];
    if (beat.phase == RankPhase::preparing || beat.phase == RankPhase::saving) {
      excused_ = now;
      return std::nullopt;
    }
    if (beat.phase != RankPhase::waiting) {
      if (!late || beat.phase_age > beats[*late]->phase_age) late = rank;
    } else if (!waiter || beat.phase_age > beats[*waiter]->phase_age) {
      waiter = rank;
    }
  }
  if (!waiter || waited(*beats[*waiter], now) < limits_.waiting) return std::nullopt;
  if (!late) return find_deadlock(beats, now);
  const bool gone = beats[*late]->phase == RankPhase::ended;
  return RankFailure{.rank = static_cast<int>(*late),
                     .step = last_finished(beats),
                     .reason = gone ? "it has ended while rank " + std::to_string(*waiter) + " waits for it"
                                    : "it hangs; rank " + std::to_string(*waiter) + " has waited " +
                                          to_text(beats[*waiter]->phase_age) + " for it in step " +
                                          std::to_string(beats[*waiter]->step + 1)};
}

std::optional<RankFailure> RankJudge::look(const std::vector<std::optional<RankBeat>>& beats, Clock::time_point now) {
  for (std::size_t rank = 0; rank < beats.size(); ++rank) {
    const auto& beat = beats[rank];
    if (beat && (beat->number != seen_[rank].number || beat->phase == RankPhase::ended)) {
      seen_[rank] = {.number = beat->number, .when = now};
    }
    const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(now - seen_[rank].when);
    // Starting takes longer than a beat.
    if (silence < (seen_[rank].number == 0 ? limits_.starting : limits_.silent)) continue;
    return RankFailure{
        .rank = static_cast<int>(rank),
        .step = last_finished(beats),
        .reason = "nothing was heard of it for " + to_text(silence) + "; it is dead, stopped or without network"};
  }
  return find_late(beats, now);
}

}  // namespace routing
