#include "train/own_experiment.h"

#include "lab/measure/step_timer.h"
#include "routing/data/dataset.h"
#include "routing/data/formats.h"
#include "shell/output.h"
#include "train/preset_choice.h"
#include "train/step_estimate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

constexpr double kShareForTraining = 0.94;  // the rest is for timing and checkpoints
constexpr double kShareForEvaluations = 0.1;
constexpr double kMostEvaluations = 8.0;
constexpr double kShareForSamples = 0.05;
constexpr double kMostSamples = 10.0;
constexpr double kPatience = 1.25;
constexpr std::int64_t kUsualEvaluation = 16384;

PrepareOptions notes_of(TrainingDisplay& display) {
  return {.notes = [&](const std::string& line) { display.say(line); }};
}

ExperimentConfig resolved(ExperimentOptions options, const std::string& preset, std::vector<std::string> settings) {
  options.preset = preset;
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  options.settings = std::move(settings);
  ExperimentConfig config = resolve_experiment(options);
  if (config.train.minutes == 0.0 && !options.sets("train.steps")) config.train.minutes = kUsualMinutes;
  return config;
}

OwnData own_data(const Dataset& data, std::int64_t sequence_length) {
  return {.tokens = data.facts().tokens,
          .train_tokens = data.part("train").tokens.size(),
          .image_height = data.facts().image.height,
          .image_width = data.facts().image.width,
          .sequence_length = sequence_length};
}

std::string what_there_is(const OwnData& data) {
  std::string count = std::to_string(data.train_tokens) + " " + std::string(to_string(data.tokens));
  if (data.image_height == 0) return count;
  return count + " of images of " + std::to_string(data.image_height) + " x " + std::to_string(data.image_width);
}

// A run that is all warm-up would never learn at the rate that was chosen.
ExperimentConfig with_short_warmup(ExperimentConfig config, const ExperimentOptions& options) {
  if (options.sets("train.warmup_steps")) return config;
  config.train.warmup_steps = std::min(config.train.warmup_steps, config.train.steps / 5);
  return config;
}

// Steps of training, evaluations and samples that fit into the minutes.
struct Fit {
  std::int64_t steps = 0;
  std::int64_t evaluations = 0;
  std::int64_t samples = 0;
};

// How many pauses there are after which of the steps.
std::int64_t pause(std::int64_t steps, std::int64_t pauses) {
  return (steps + pauses - 1) / pauses;
}

Fit fit_of(const ExperimentConfig& config, TrainingDisplay& display) {
  const TrainConfig& train = config.train;
  const std::unique_ptr<TrainingData> data = open_training_data(config, notes_of(display));
  StepTimer timer(data->config(), data.get());
  const double step = seconds_per_step([&] { return timer.seconds_of_a_step(); }, timing_limits(train.minutes));
  const auto all = static_cast<double>(steps_that_fit(kShareForTraining * train.minutes, step));
  // Forward alone is a third of a step. Evaluations of a whole part may take long: one, at the end.
  const auto tokens = static_cast<double>(train.accumulation * train.batch_size * train.sequence_length);
  const double evaluation = static_cast<double>(std::max(kUsualEvaluation, train.eval_tokens)) / tokens / 3.0;
  const double most = train.eval_tokens == 0 ? 1.0 : kMostEvaluations;
  const double evaluations = std::clamp(std::floor(kShareForEvaluations * all / evaluation), 1.0, most);
  const double sample = train.sample_every > 0 ? timer.seconds_of_a_sample() / step : 0.0;
  const double samples =
      sample > 0.0 ? std::clamp(std::floor(kShareForSamples * all / sample), 1.0, kMostSamples) : 1.0;
  const auto left = static_cast<std::int64_t>(all - evaluations * evaluation - samples * sample);
  return {.steps = std::max<std::int64_t>(10, left),
          .evaluations = static_cast<std::int64_t>(evaluations),
          .samples = static_cast<std::int64_t>(samples)};
}

}  // namespace

ExperimentConfig fitted_to_minutes(ExperimentConfig config, const ExperimentOptions& options,
                                   TrainingDisplay& display) {
  TrainConfig& train = config.train;
  display.say("timing a few steps to see what fits into " + fixed_digits(train.minutes, train.minutes < 1.0 ? 2 : 1) +
              " minutes");
  const Fit fit = fit_of(config, display);
  train.steps = fit.steps;
  // A neighbour on the machine should not take the end of the schedule, where most is gained.
  train.minutes *= kPatience;
  config = with_short_warmup(config, options);
  if (!options.sets("train.decay_steps")) train.decay_steps = 0;
  const std::int64_t evaluation = pause(train.steps, fit.evaluations);
  if (!options.sets("train.eval_every") && train.eval_every > 0) train.eval_every = evaluation;
  if (!options.sets("train.checkpoint_every") && train.checkpoint_every > 0) train.checkpoint_every = evaluation;
  if (!options.sets("train.log_every")) train.log_every = std::max<std::int64_t>(1, train.steps / 100);
  if (!options.sets("train.clusters_every") && train.clusters_every > 0) train.clusters_every = train.log_every;
  if (!options.sets("train.sample_every") && train.sample_every > 0)
    train.sample_every = pause(train.steps, fit.samples);
  display.say(std::to_string(train.steps) + " steps of " +
              std::to_string(train.accumulation * train.batch_size * train.sequence_length) +
              " tokens; the learning rate falls to its end with them");
  return config;
}

ExperimentConfig experiment_for_data(const ExperimentOptions& options, TrainingDisplay& display) {
  std::vector<std::string> settings;
  const ExperimentConfig wishes = wanted_experiment(options);
  DataConfig wanted = wishes.data;
  // A single file is bytes; so are many.
  if (wanted.tokens == TokenKind::automatic && !is_prepared(wanted.path) &&
      look_at_data(wanted).format == DataFormat::text) {
    wanted.tokens = TokenKind::bytes;
    settings.emplace_back("data.tokens=bytes");
  }
  auto data = std::make_unique<Dataset>(wanted, notes_of(display));
  const ImageShape image = data->facts().image;
  if (std::max(image.height, image.width) > kLargestOwnImage && !options.sets("data.image_size")) {
    display.say("images of " + std::to_string(image.height) + " x " + std::to_string(image.width) + " are read as " +
                std::to_string(kShrunkOwnImage) + " x " + std::to_string(kShrunkOwnImage) +
                ", because each value is a token; data.image_size sets another size");
    settings.push_back("data.image_size=" + std::to_string(kShrunkOwnImage));
    wanted.image_size = kShrunkOwnImage;
    data = std::make_unique<Dataset>(wanted, notes_of(display));
  }
  const OwnData own = own_data(*data, options.sets("train.sequence_length") ? wishes.train.sequence_length : 0);
  PresetChoice choice = preset_for(own);
  settings.insert(settings.end(), choice.settings.begin(), choice.settings.end());

  const std::string& smallest = choice.sizes.front().preset;
  display.say(smallest + " is the preset for " + what_there_is(own) + " to train on; --preset names another");
  ExperimentConfig config = resolved(options, smallest, settings);
  if (options.sets("train.steps")) return with_short_warmup(config, options);
  config = fitted_to_minutes(config, options, display);
  if (choice.sizes.size() == 1) return config;
  const TrainConfig& train = config.train;
  const std::int64_t bytes = train.steps * train.accumulation * train.batch_size * train.sequence_length;
  const std::string& preset = size_that_pays(choice.sizes, bytes).preset;
  display.say(size_reason(choice.sizes, bytes));
  return preset == smallest ? config : fitted_to_minutes(resolved(options, preset, settings), options, display);
}

}  // namespace routing
