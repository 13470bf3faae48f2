#include "train/training_display.h"

#include "routing/core/parallel.h"
#include "routing/evaluation/measures.h"
#include "routing/training/progress.h"
#include "shell/interrupts.h"
#include "shell/text_table.h"

#include <fmt/core.h>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace routing {
namespace {

constexpr int kUsualWidth = 80;
// The bar shows an average, because single batches jump; a new step counts this much.
constexpr double kNewestShare = 0.1;
constexpr std::chrono::milliseconds kTerminalPause{100};
constexpr std::chrono::seconds kPlainPause{10};

int bar_width() {
  const std::size_t width = terminal_width(STDERR_FILENO);
  return width > 0 ? static_cast<int>(width) : kUsualWidth;
}

std::string in_millions(std::int64_t count) {
  return fmt::format("{:.2f} M", static_cast<double>(count) * 1e-6);
}

// Whom rank 0 shares its sequences with; its piece is one of the longer ones.
std::string pieces_text(const TrainConfig& train) {
  const std::int64_t split = train.sequence_ranks;
  if (split == 1) return "";
  return ", which shares them with the next " +
         (split == 2 ? std::string("rank") : fmt::format("{} ranks", split - 1)) +
         fmt::format(", a piece of {} tokens each", (train.sequence_length + split - 1) / split);
}

}  // namespace

TrainingDisplay::TrainingDisplay(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

TrainingDisplay::~TrainingDisplay() {
  finish();
}

TrainingObserver TrainingDisplay::observer() {
  return {.step = [this](const StepReport& report) { on_step(report); },
          .evaluation =
              [this](const EvaluationReport& report) {
                std::ostringstream text;
                text << "step " << report.step << ": " << report.split << " " << std::fixed << std::setprecision(3)
                     << score(report.kind, report.nats_per_token) << " " << score_unit(report.kind).name << " on "
                     << report.tokens << " tokens";
                if (report.accuracy) text << ", " << 100.0 * *report.accuracy << " % right";
                text << (report.best ? ", the best so far" : "") << ", " << report.labels;
                say(text.str());
              },
          .stop_requested = [] { return InterruptGuard::requested(); }};
}

bool TrainingDisplay::time_to_draw() {
  const auto now = std::chrono::steady_clock::now();
  const bool due = last_drawn_ == std::chrono::steady_clock::time_point() ||
                   now - last_drawn_ >= (terminal_ ? std::chrono::steady_clock::duration(kTerminalPause)
                                                   : std::chrono::steady_clock::duration(kPlainPause));
  if (due) last_drawn_ = now;
  return due;
}

void TrainingDisplay::on_step(const StepReport& report) {
  smoothed_nats_ =
      steps_seen_ == 0 ? report.loss_nats : (1.0 - kNewestShare) * smoothed_nats_ + kNewestShare * report.loss_nats;
  ++steps_seen_;
  const bool last = report.step == report.steps;
  if (quiet_ || !(time_to_draw() || last)) return;
  const Progress progress{.step = report.step,
                          .total_steps = report.steps,
                          .score = score(report.kind, smoothed_nats_),
                          .unit = score_unit(report.kind).name,
                          .epochs = report.epochs > 0.0 ? std::optional(report.epochs) : std::nullopt,
                          .tokens_per_second = report.tokens_per_second,
                          .seconds_elapsed = report.seconds,
                          .seconds_left = report.seconds_left};
  draw(terminal_ ? progress_line(progress, bar_width()) : plain_progress_line(progress));
}

void TrainingDisplay::evaluation_progress(std::int64_t windows_done, std::int64_t windows) {
  progress("window", windows_done, windows);
}

void TrainingDisplay::progress(const std::string& unit, std::int64_t done, std::int64_t all) {
  if (quiet_ || !(time_to_draw() || done == all)) return;
  draw(terminal_ ? progress_line({.step = done, .total_steps = all}, bar_width())
                 : unit + " " + std::to_string(done) + " of " + std::to_string(all));
}

void TrainingDisplay::draw(const std::string& line) {
  if (!terminal_) {
    std::cerr << line << "\n";
    return;
  }
  // Back to the start of the line, and away with what was longer.
  std::cerr << "\r" << line << "\x1b[K" << std::flush;
  bar_shown_ = true;
}

void TrainingDisplay::finish() {
  if (bar_shown_) std::cerr << "\n";
  bar_shown_ = false;
}

void TrainingDisplay::say(const std::string& line) {
  if (quiet_) return;
  if (bar_shown_) std::cerr << "\r\x1b[K";
  bar_shown_ = false;
  std::cerr << "routing: " << line << "\n";
}

std::string describe_run(Trainer& trainer) {
  const ExperimentConfig& config = trainer.config();
  const TrainingFacts& data = trainer.data();
  std::ostringstream text;
  text << config.name << ", " << in_millions(trainer.learner().model().num_parameters()) << " parameters, "
       << to_string(trainer.learner().precision()) << ", " << trainer.labels() << "\nrouting: " << data.description;
  if (!data.cut.empty()) text << "\nrouting: " << data.cut;
  if (!data.missing.empty()) text << "\nrouting: partial data: " << data.missing;
  const RankFacts& ranks = trainer.rank_facts();
  if (ranks.ranks > 1) {
    const double mib = 1 << 20;
    text << "\nrouting: " << ranks.ranks << " ranks of " << num_threads() << " threads, global batch " << ranks.all_rows
         << " sequences of " << config.train.sequence_length << " tokens"
         << (config.train.accumulation > 1 ? " x " + std::to_string(config.train.accumulation) : "") << ", "
         << ranks.rows << " of them on rank 0" << pieces_text(config.train) << std::fixed << std::setprecision(1);
    if (ranks.optimizer_bytes < ranks.all_optimizer_bytes) {
      text << "\nrouting: optimiser state " << static_cast<double>(ranks.optimizer_bytes) / mib << " MiB instead of "
           << static_cast<double>(ranks.all_optimizer_bytes) / mib
           << " on rank 0: " << static_cast<double>(ranks.all_optimizer_bytes - ranks.optimizer_bytes) / mib
           << " MiB saved by sharding";
    }
  }
  if (trainer.state().step > 0) text << "\nrouting: going on after step " << trainer.state().step;
  return text.str();
}

}  // namespace routing
