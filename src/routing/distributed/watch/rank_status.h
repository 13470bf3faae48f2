// What a rank is doing, for those who watch it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace routing {

// "1.5 s".
std::string to_text(std::chrono::milliseconds time);

enum class RankPhase {
  preparing,  // reads data and checkpoints: takes what it takes
  computing,
  waiting,  // for the other ranks, in a collective
  saving,   // writes a checkpoint or draws a sample: the others wait as long as that needs
  ended
};

// A rank's word about itself at one moment.
struct RankBeat {
  std::int64_t number = 0;  // grows with every beat
  std::int64_t step = 0;    // the last finished one
  RankPhase phase = RankPhase::preparing;
  std::chrono::milliseconds phase_age{0};
};
std::string to_text(const RankBeat& beat);
// Nothing for a text that to_text() has not written.
std::optional<RankBeat> beat_from_text(const std::string& text);

// Written by the thread that trains, read by the one that sends beats.
class RankStatus {
 public:
  void enter(RankPhase phase);
  void finish_step(std::int64_t step);
  std::int64_t step() const;
  RankPhase phase() const;
  // The next beat.
  RankBeat beat();

 private:
  mutable std::mutex mutex_;
  RankBeat now_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// In `phase` as long as it lives, then back in the phase before.
class PhaseGuard {
 public:
  PhaseGuard(RankStatus& status, RankPhase phase) : status_(status), before_(status.phase()) { status.enter(phase); }
  ~PhaseGuard() { status_.enter(before_); }
  PhaseGuard(const PhaseGuard&) = delete;
  PhaseGuard& operator=(const PhaseGuard&) = delete;

 private:
  RankStatus& status_;
  RankPhase before_;
};

}  // namespace routing
