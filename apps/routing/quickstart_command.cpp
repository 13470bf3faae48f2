#include "command_line.h"
#include "commands.h"
#include "experiment_options.h"
#include "interrupts.h"
#include "json_text.h"
#include "output.h"
#include "routing/analysis/curves_figure.h"
#include "routing/analysis/pattern_figure.h"
#include "routing/analysis/pattern_gallery.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "routing/data/byte_tokenizer.h"
#include "routing/data/compressors.h"
#include "routing/data/dataset.h"
#include "routing/evaluation/likelihood.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/generation/generate.h"
#include "routing/model/weights.h"
#include "routing/training/trainer.h"
#include "step_estimate.h"
#include "training_display.h"
#include "training_result.h"
#include "version.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultCorpus = "/usr/share/dictd/gcide.dict.dz";
// The first steps make matmuls and memory that later ones use again.
constexpr int kUntimedSteps = 2;
constexpr double kMostTimingShare = 0.05;   // of the minutes
constexpr std::int64_t kPromptBytes = 400;  // held-out text that the sample goes on from
constexpr std::int64_t kSampleBytes = 300;

struct QuickstartOptions {
  std::string out = "runs/quickstart";
  std::string data = kDefaultCorpus;
  double minutes = 3.0;
  std::vector<std::string> settings;
  bool any_given = false;  // of --data, --minutes, --set
  bool json = false;
};

// How many steps fit into the minutes on this machine, from some steps on scattered bytes. Fixing their number before
// the run lets the learning rate fall to its end in time, and keeps the run exactly resumable.
std::int64_t timed_number_of_steps(const ExperimentConfig& config, double minutes) {
  Learner learner(config);
  std::vector<TrainingBatch> batches;
  for (std::int64_t i = 0; i < config.train.accumulation; ++i) {
    const at::Tensor noise = at::arange(config.train.batch_size * config.train.sequence_length, at::kLong);
    batches.push_back({.tokens = noise.mul(2654435761L)
                                     .bitwise_right_shift(7)
                                     .remainder(config.model.vocab_size)
                                     .view({config.train.batch_size, config.train.sequence_length}),
                       .sample_ids = at::arange(config.train.batch_size, at::kLong)});
  }
  for (int i = 0; i < kUntimedSteps; ++i) learner.step(batches);
  const auto time_one_step = [&] {
    const auto begin = std::chrono::steady_clock::now();
    learner.step(batches);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  return steps_that_fit(minutes, seconds_per_step(time_one_step, kMostTimingShare * 60.0 * minutes));
}

ExperimentConfig resolved(const QuickstartOptions& options) {
  std::error_code ignored;
  require<ConfigError>(
      options.data != kDefaultCorpus || fs::exists(options.data, ignored), kDefaultCorpus,
      ": is not there; install it with  apt-get install dict-gcide  (make setup does), or name another "
      "text with --data FILE");
  // Unreadable data should not show only after the timing.
  const ByteCorpus corpus(options.data);
  ConfigSources sources{.preset = "quickstart", .environment = routing_environment(), .settings = options.settings};
  sources.settings.push_back("data.path=" + fs::absolute(options.data).string());
  return resolve(sources);
}

// Values that follow from the number of steps, unless --set names them.
void fit_to_steps(ExperimentConfig& config, const QuickstartOptions& options) {
  const auto is_free = [&](const std::string& key) {
    return std::none_of(options.settings.begin(), options.settings.end(),
                        [&](const std::string& setting) { return setting.rfind(key + "=", 0) == 0; });
  };
  TrainConfig& train = config.train;
  if (is_free("train.warmup_steps")) train.warmup_steps = std::min(train.warmup_steps, train.steps / 5);
  if (is_free("train.eval_every")) train.eval_every = std::max<std::int64_t>(1, train.steps / 8);
  if (is_free("train.checkpoint_every")) train.checkpoint_every = train.eval_every;
  if (is_free("train.log_every")) train.log_every = std::max<std::int64_t>(1, train.steps / 100);
}

ExperimentConfig quickstart_config(const QuickstartOptions& options, TrainingDisplay& display) {
  const RunDirectory run(options.out);
  // A run that is there goes on, or is shown again if it has ended.
  if (run.exists()) {
    require<ConfigError>(!options.any_given, options.out,
                         ": holds a run already, which goes on as it was begun; leave out --data, --minutes and --set, "
                         "or choose another --out");
    return run.read_config();
  }
  ExperimentConfig config = resolved(options);
  const bool steps_given =
      std::any_of(options.settings.begin(), options.settings.end(),
                  [](const std::string& setting) { return setting.rfind("train.steps=", 0) == 0; });
  if (!steps_given) {
    display.say("timing a few steps to see what fits into " + fixed_digits(options.minutes, 1) + " minutes");
    config.train.steps = timed_number_of_steps(config, options.minutes);
  }
  fit_to_steps(config, options);
  return config;
}

// The curves of metrics.jsonl beside what compressors do.
CurvesFigure curves_of(const fs::path& metrics, const std::vector<ReferenceLine>& references) {
  Curve train{.name = "training"};
  Curve valid{.name = "validation", .points = true};
  for (const auto& object : read_metrics(metrics)) {
    const auto add = [&](Curve& curve, const char* key) {
      if (!object.contains(key) || object.at(key).is_null()) return;
      curve.x.push_back(object.at("step").get<double>());
      curve.y.push_back(object.at(key).get<double>());
    };
    add(train, "train_bits_per_byte");
    add(valid, "eval_bits_per_byte");
  }
  return {.title = "Bits per byte while training",
          .x_label = "step",
          .y_label = "bits per byte",
          .curves = {train, valid},
          .references = references};
}

// What the model writes behind the beginning of a part: temperature 1, nucleus 0.8, seed 1.
std::string sample_of(const Transformer& model, TokenView part) {
  std::vector<std::vector<std::int32_t>> prompts(1);
  prompts.front().resize(static_cast<std::size_t>(std::min(kPromptBytes, part.size())));
  part.copy(0, std::span(prompts.front()));
  const auto decoder = make_decoder(model.ptr(), {.precision = matmul_precision(model->config().train.precision)});
  const GenerateOptions options{.sampling = {.temperature = 1.0, .top_p = 0.8, .seed = 1},
                                .max_new_tokens = kSampleBytes};
  return ByteTokenizer().decode(generate(*decoder, prompts, options).front().tokens);
}

struct Scores {
  Likelihood model;
  double gzip = 0.0;
  double xz = 0.0;
  std::string data_label = {};
  std::string sample = {};
};

Scores evaluate(const ExperimentConfig& config, const RunDirectory& run, TrainingDisplay& display) {
  const ByteCorpus corpus(config.data.path);
  const auto part = corpus.part(split_corpus(config.data.split, corpus.size(), config.data.path).test);
  display.say("evaluating on the last " + std::to_string(part.size()) + " bytes, which training never saw");
  Transformer model = load_model(run.find_checkpoint("best").model());
  Scores scores{.model = token_likelihood(*model, part,
                                          {.sequence_length = config.train.sequence_length,
                                           .stride = config.eval.stride,
                                           .batch_size = config.eval.batch_size,
                                           .precision = matmul_precision(config.train.precision),
                                           .progress = [&](std::int64_t done, std::int64_t all) {
                                             display.evaluation_progress(done, all);
                                           }})};
  display.finish();
  scores.data_label = Dataset(config.data).facts().label();
  scores.sample = sample_of(model, part);
  scores.gzip = gzip_bits_per_byte(part);
  scores.xz = xz_bits_per_byte(part);
  return scores;
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

void print_result(const QuickstartOptions& options, const ExperimentConfig& config, const Scores& scores,
                  const Written& written) {
  const std::string validity = validity_label(config) + (scores.data_label.empty() ? "" : ", " + scores.data_label);
  if (options.json) {
    const nlohmann::ordered_json object{{"run", options.out},
                                        {"bytes", scores.model.tokens},
                                        {"bits_per_byte", bits(scores.model.nats_per_token())},
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
  std::cout << "Bits per byte on the held-out " << scores.model.tokens << " bytes (smaller is better)\n"
            << "  this model   " << fixed_digits(bits(scores.model.nats_per_token()), 3) << "   " << validity << "\n"
            << "  gzip -9      " << fixed_digits(scores.gzip, 3) << "\n"
            << "  xz -9        " << fixed_digits(scores.xz, 3) << "\n\n"
            << "Pictures\n"
            << "  " << written.curves.string() << "   loss while training\n"
            << "  " << written.patterns.string() << "   what each attention pattern reads\n\n"
            << "A sample (nucleus 0.8, temperature 1, seed 1), behind " << std::min(kPromptBytes, scores.model.tokens)
            << " held-out bytes\n"
            << indented(scores.sample) << "\n\n"
            << "Go on with\n"
            << "  routing generate " << run << " --prompt \"A word is\" -n 500       more text from it\n"
            << "  routing eval " << run << " --split test --stride 512        more context for every byte\n"
            << "  routing train --out " << run << " --resume auto --steps " << 2 * config.train.steps
            << "   train longer\n"
            << "  routing train --preset tiny-enwik8 --data FILE --out runs/mine   train on your own text\n"
            << "  tensorboard --logdir " << run << "                         curves in a browser\n";
}

int run(const QuickstartOptions& options, const ProgramOptions& program) {
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
  const Scores scores = evaluate(config, run_directory, display);
  const Written written{run_directory.folder() / "curves.png", run_directory.folder() / "patterns.png"};
  write_curves_figure(curves_of(run_directory.metrics_file(), {{"gzip -9", scores.gzip}, {"xz -9", scores.xz}}),
                      written.curves);
  write_pattern_figure(pattern_gallery(64, 1), written.patterns);
  print_result(options, config, scores, written);
  return kDone;
}

}  // namespace

Command add_quickstart(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<QuickstartOptions>();
  CLI::App* app = program.add_subcommand(
      "quickstart",
      "Train a small model for a few minutes, evaluate it, draw pictures, sample text\n\n"
      "Half of its heads are routed, strictly causally. The text is Webster's dictionary (Debian's dict-gcide); its "
      "last\n"
      "2 MB are held out and compared with gzip and xz on the same bytes. Started again, it goes on where it stopped.");
  app->add_option("--out", options->out, "folder of the run")->type_name("DIR")->capture_default_str()->group("Run");
  app->add_option("--minutes", options->minutes, "time for training")
      ->type_name("M")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Run");
  app->add_option("--data", options->data, "another text, at least 4 MB")
      ->type_name("FILE")
      ->capture_default_str()
      ->group("Run");
  app->add_option("--set", options->settings, "change one configuration key; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Run");
  app->add_flag("--json", options->json, "print the result as JSON")->disable_flag_override()->group("Output");
  app->footer("Example  routing quickstart\n" + exit_code_line());
  return {app, [options, app, &program_options] {
            options->any_given = app->count("--data") + app->count("--minutes") + app->count("--set") > 0;
            return run(*options, program_options);
          }};
}

}  // namespace routing
