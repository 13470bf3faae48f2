#include "lab/figures/curves_figure.h"
#include "lab/figures/pattern_figure.h"
#include "lab/figures/pattern_gallery.h"
#include "lab/measure/step_timer.h"
#include "lab/runs/run_history.h"
#include "routing/config/resolve.h"
#include "routing/training/trainer.h"
#include "shell/engine.h"
#include "shell/interrupts.h"
#include "shell/json_text.h"
#include "shell/output.h"
#include "train/quickstart_options.h"
#include "train/quickstart_scores.h"
#include "train/quickstart_size.h"
#include "train/step_estimate.h"
#include "train/training_display.h"
#include "train/training_result.h"
#include "version.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

// How many steps fit into the minutes on this machine, from some steps on scattered bytes. Fixing their number before
// the run lets the learning rate fall to its end in time, and keeps the run exactly resumable.
std::int64_t timed_number_of_steps(const ExperimentConfig& config, double minutes) {
  StepTimer timer(config);
  // Not counted: memory and packed weights may still grow.
  timer.seconds_of_a_step();
  const auto time_one_step = [&] { return timer.seconds_of_a_step(); };
  return steps_that_fit(minutes, seconds_per_step(time_one_step, timing_limits(minutes)));
}

// A preset with what the user changed, and as many steps as fit into the minutes unless their number is given.
ExperimentConfig resolved(const std::string& preset, const QuickstartOptions& options) {
  ExperimentConfig config = resolve(quickstart_sources(preset, options));
  if (!options.sets("train.steps")) config.train.steps = timed_number_of_steps(config, options.minutes);
  return config;
}

// Values that follow from the number of steps, unless --set names them.
void fit_to_steps(ExperimentConfig& config, const QuickstartOptions& options) {
  TrainConfig& train = config.train;
  if (!options.sets("train.warmup_steps")) train.warmup_steps = std::min(train.warmup_steps, train.steps / 5);
  if (!options.sets("train.eval_every")) train.eval_every = std::max<std::int64_t>(1, train.steps / 8);
  if (!options.sets("train.checkpoint_every")) train.checkpoint_every = train.eval_every;
  if (!options.sets("train.log_every")) train.log_every = std::max<std::int64_t>(1, train.steps / 100);
  if (!options.sets("train.clusters_every")) train.clusters_every = train.log_every;
  if (!options.sets("train.sample_every")) train.sample_every = std::max<std::int64_t>(1, train.steps / 10);
}

ExperimentConfig quickstart_config(const QuickstartOptions& options, TrainingDisplay& display) {
  const RunDirectory run(options.out);
  // A run that is there goes on, or is shown again if it has ended.
  if (run.exists()) return run.read_config();
  if (!options.sets("train.steps")) {
    display.say("timing a few steps to see what fits into " + fixed_digits(options.minutes, 1) + " minutes");
  }
  const std::vector<QuickstartSize>& sizes = quickstart_sizes();
  ExperimentConfig config = resolved(sizes.front().preset, options);
  const TrainConfig& smallest = config.train;
  const std::int64_t bytes = smallest.steps * smallest.accumulation * smallest.batch_size * smallest.sequence_length;
  display.say(size_reason(sizes, bytes));
  const std::string& preset = size_that_pays(sizes, bytes).preset;
  if (preset != sizes.front().preset) config = resolved(preset, options);
  fit_to_steps(config, options);
  return config;
}

// The curves of metrics.jsonl beside what compressors do.
CurvesFigure curves_of(const fs::path& metrics, const std::vector<ReferenceLine>& references) {
  const RunHistory history = read_run_history(metrics);
  Curve train{.name = "training"};
  Curve valid{.name = "validation", .points = true};
  const auto add = [](Curve& curve, const std::vector<HistoryPoint>& points) {
    for (const HistoryPoint& point : points) {
      curve.x.push_back(static_cast<double>(point.step));
      curve.y.push_back(point.value);
    }
  };
  add(train, history.training);
  add(valid, history.evaluation);
  return {.title = "Bits per byte while training",
          .x_label = "step",
          .y_label = "bits per byte",
          .curves = {train, valid},
          .references = references};
}

struct Written {
  fs::path curves, patterns;
};

std::string indented(const std::string& text) {
  std::string lines = "  ";
  for (const char letter : text) {
    // A young model may write anything; a terminal need not obey.
    const bool control = static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    lines += letter == '\n' ? "\n  " : std::string(1, control ? ' ' : letter);
  }
  return lines;
}

// ", 95 % interval 1.731 to 1.759", or nothing where a single window tells of none.
std::string interval_text(const RatioInterval& bits_per_byte) {
  if (!bits_per_byte.bounded) return "";
  return ", 95 % interval " + fixed_digits(bits_per_byte.low, 3) + " to " + fixed_digits(bits_per_byte.high, 3);
}

void print_result(const QuickstartOptions& options, const ExperimentConfig& config, const QuickstartScores& scores,
                  const Written& written) {
  const std::string validity = validity_label(config) + (scores.data_label.empty() ? "" : ", " + scores.data_label);
  if (options.json) {
    const nlohmann::ordered_json object{{"run", options.out},
                                        {"bytes", scores.bytes},
                                        {"bits_per_byte", scores.bits_per_byte.ratio},
                                        // JSON has no infinity: null, where a single window tells of no interval.
                                        {"bits_per_byte_low", scores.bits_per_byte.low},
                                        {"bits_per_byte_high", scores.bits_per_byte.high},
                                        {"gzip_bits_per_byte", scores.gzip},
                                        {"xz_bits_per_byte", scores.xz},
                                        {"validity", validity},
                                        {"curves", written.curves.string()},
                                        {"patterns", written.patterns.string()},
                                        {"sample", scores.sample}};
    // A sample of bytes need not be UTF-8.
    std::cout << json_text(object) << "\n";
    return;
  }
  const std::string run = options.out;
  std::cout << "Bits per byte on " << scores.bytes << " held-out bytes (smaller is better)\n"
            << "  this model   " << fixed_digits(scores.bits_per_byte.ratio, 3) << "   " << validity
            << interval_text(scores.bits_per_byte) << "\n"
            << "  gzip -9      " << fixed_digits(scores.gzip, 3) << "\n"
            << "  xz -9        " << fixed_digits(scores.xz, 3) << "\n\n"
            << "Pictures\n"
            << "  " << written.curves.string() << "   loss while training\n"
            << "  " << written.patterns.string() << "   what each attention pattern reads\n\n"
            << "A sample (nucleus 0.8, temperature 1, seed 1), after " << std::min(kPromptBytes, scores.bytes)
            << " held-out bytes\n"
            << indented(scores.sample) << "\n\n"
            << "Go on with\n"
            << "  routing generate " << run << " --prompt \"A word is\" -n 500       more text from it\n"
            << "  routing eval " << run << " --split test --stride 512        more context for every byte\n"
            << "  routing train --out " << run << " --resume auto --steps " << 2 * config.train.steps
            << "   train longer\n"
            << "  routing train --preset tiny-enwik8 --data FILE --out runs/mine   train on your own text\n"
            << "  routing serve " << run
            << "                                see it in the browser: text, attention, training\n";
}

}  // namespace

int run_quickstart(const QuickstartOptions& options, const ProgramOptions& program) {
  TrainingDisplay display(program.quiet);
  const ExperimentConfig config = quickstart_config(options, display);
  const RunDirectory run_directory(options.out);
  {
    const InterruptGuard interrupts;
    Trainer trainer({.config = config,
                     .run = options.out,
                     .resume = true,
                     .version = program_version(),
                     .observer = display.observer()});
    display.say(describe_run(trainer));
    const TrainingResult result = trainer.run();
    display.finish();
    if (result.end == TrainingEnd::interrupted) {
      std::cerr << "routing: stopped at step " << result.state.step << ", state saved; the same command goes on\n";
      return kInterrupted;
    }
  }
  const QuickstartScores scores = quickstart_scores(config, run_directory, display);
  const Written written{run_directory.folder() / "curves.png", run_directory.folder() / "patterns.png"};
  write_curves_figure(curves_of(run_directory.metrics_file(), {{"gzip -9", scores.gzip}, {"xz -9", scores.xz}}),
                      written.curves);
  write_pattern_figure(pattern_gallery(64, 1), written.patterns);
  print_result(options, config, scores, written);
  return kDone;
}

}  // namespace routing
