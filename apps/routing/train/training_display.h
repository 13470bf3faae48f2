// What a person sees of a training run: a progress bar on a terminal, plain lines elsewhere, nothing with --quiet. All
// of it goes to standard error; results go to standard output.
#pragma once

#include "routing/training/trainer.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace routing {

class TrainingDisplay {
 public:
  explicit TrainingDisplay(bool quiet);
  ~TrainingDisplay();
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  // Wired to this display; asks InterruptGuard whether to stop.
  TrainingObserver observer();

  // "routing: …" on a line of its own, above the bar.
  void say(const std::string& line);
  // Progress of an evaluation.
  void evaluation_progress(std::int64_t windows_done, std::int64_t windows);
  // Progress of other work: "token 96 of 768".
  void progress(const std::string& unit, std::int64_t done, std::int64_t all);
  // Leaves the line of the bar, if there is one.
  void finish();

 private:
  void draw(const std::string& line);
  void on_step(const StepReport& report);
  bool time_to_draw();

  bool quiet_;
  bool terminal_;
  bool bar_shown_ = false;
  double smoothed_nats_ = 0.0;
  std::int64_t steps_seen_ = 0;
  std::chrono::steady_clock::time_point last_drawn_;
};

// The facts of a run that is about to start, as lines for say().
std::string describe_run(Trainer& trainer);

}  // namespace routing
