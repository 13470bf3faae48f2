#include "routing/distributed/watch/rank_status.h"

#include <fmt/core.h>
#include <sstream>

namespace routing {
namespace {

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
}

}  // namespace

std::string to_text(std::chrono::milliseconds time) {
  return fmt::format("{:.1f} s", static_cast<double>(time.count()) / 1000.0);
}

std::string to_text(const RankBeat& beat) {
  return fmt::format("{} {} {} {}", beat.number, beat.step, static_cast<int>(beat.phase), beat.phase_age.count());
}

std::optional<RankBeat> beat_from_text(const std::string& text) {
  std::istringstream words(text);
  RankBeat beat;
  int phase = 0;
  std::int64_t age = 0;
  if (!(words >> beat.number >> beat.step >> phase >> age) || phase < 0 || phase > static_cast<int>(RankPhase::ended)) {
    return std::nullopt;
  }
  beat.phase = static_cast<RankPhase>(phase);
  beat.phase_age = std::chrono::milliseconds(age);
  return to_text(beat) == text ? std::optional<RankBeat>(beat) : std::nullopt;
}

void RankStatus::enter(RankPhase phase) {
  const std::lock_guard lock(mutex_);
  now_.phase = phase;
  since_ = std::chrono::steady_clock::now();
}

void RankStatus::finish_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  now_.step = step;
}

std::int64_t RankStatus::step() const {
  const std::lock_guard lock(mutex_);
  return now_.step;
}

RankPhase RankStatus::phase() const {
  const std::lock_guard lock(mutex_);
  return now_.phase;
}

RankBeat RankStatus::beat() {
  const std::lock_guard lock(mutex_);
  ++now_.number;
  now_.phase_age = since(since_);
  return now_;
}

}  // namespace routing
