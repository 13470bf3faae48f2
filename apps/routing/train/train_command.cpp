#include "commands.h"
#include "inputs/piped_data.h"
#include "ranks/rank_options.h"
#include "routing/config/toml.h"
#include "routing/data/formats.h"
#include "routing/training/run_directory.h"
#include "shell/command_line.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "train/train_options.h"

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace routing {
namespace {

constexpr int kMostRestarts = 4096;

// What is changed most, without --set.
void add_usual_keys(CLI::App& app, ExperimentOptions& options) {
  std::vector<std::string>& given = options.short_settings;
  OptionGroup model(app, "Model");
  model.add_key({"--layers N", "of the model"}, "model.layers", given);
  model.add_key({"--width N", "numbers per token; the feed-forward layer has four times as many unless set"},
                "model.width", given);
  OptionGroup data(app, "Data");
  data.add_key({"--format F", "of the data; default: what they look like. routing data info --help lists them"},
               "data.format", given);
  data.add_key({"--tokens T", "bytes, words or subwords; default: as the preset or the data have it"}, "data.tokens",
               given);
  OptionGroup learning(app, "Learning");
  learning.add_key({"--batch-size N", "sequences per step"}, "train.batch_size", given);
  learning.add_key({"--sequence-length N", "tokens per sequence"}, "train.sequence_length", given);
  learning.add_key({"--learning-rate R", "at its highest, after the warm-up"}, "train.learning_rate", given);
}

// A resumed run that names no base of its own goes on with what the run was made with.
ExperimentConfig config_of(TrainOptions options) {
  const RunDirectory run(options.out);
  if (options.resumes() && !options.experiment.names_a_base() && run.exists()) {
    options.experiment.file = run.config_file().string();
  }
  if (options.experiment.names_a_base()) return resolve_experiment(options.experiment);
  // Without a base the engine chooses one by the data, and only then do the keys have to fit each other.
  ExperimentConfig wanted = wanted_experiment(options.experiment);
  return is_made_up(wanted.data.format) ? resolve_experiment(options.experiment) : wanted;
}

// A new run of one process. Ranks of several would have to agree on what each has timed.
void decide_what_fits(TrainOptions& options, const ExperimentConfig& config) {
  const bool goes_on = options.resumes() && RunDirectory(options.out).exists();
  if (goes_on) return;
  const bool alone = options.ranks.count == 1 && !rank_place();
  const auto& given = options.experiment;
  if (!given.short_setting("train.minutes").empty() && config.train.minutes == 0.0) {
    throw UsageError("--minutes is 0", "give the minutes there are, or leave it out");
  }
  options.chooses_preset = !given.names_a_base() && !is_made_up(config.data.format) && !config.data.path.empty();
  if (options.chooses_preset && !alone) {
    throw UsageError("several ranks need to know the model",
                     "name it with --preset or --config; routing presets lists them");
  }
  options.fits_minutes = alone && !given.short_setting("train.minutes").empty() && !given.sets("train.steps");
}

int run(TrainOptions options, const ProgramOptions& program) {
  ExperimentConfig config = config_of(options);
  decide_what_fits(options, config);
  const bool reads_data = !config.data.path.empty() && !is_made_up(config.data.format);
  const bool goes_on = options.resumes() && RunDirectory(options.out).exists();
  // What can be seen at once is said before anything is timed. Ranks start while the first one makes the folder.
  const bool alone = !is_launched() && !rank_place();
  if (reads_data && (options.dry_run || (alone && !goes_on))) check_data(config.data);
  if (alone && !options.dry_run && !options.resumes() && !options.out.empty()) RunDirectory(options.out).require_new();
  if (options.dry_run && !options.chooses_preset) {
    std::cout << to_toml(config);
    return kDone;
  }
  if (options.out.empty() && !options.dry_run)
    throw UsageError("--out is required", "name a folder for the run, such as --out runs/first");
  const std::optional<RankPlace> place = rank_place();
  refuse_two_sets_of_ranks(options.ranks);
  if (options.ranks.count == 1 && !place && (options.restarts > 0 || options.shard_optimizer)) {
    throw UsageError(std::string(options.restarts > 0 ? "--restarts" : "--shard-optimizer") +
                         " is for several ranks, but there is one",
                     "start more with --ranks N, or leave it out");
  }
  const bool no_data = config.data.path.empty() && !is_made_up(config.data.format);
  if (no_data && options.resumes()) {
    throw UsageError(options.out + ": holds no run to go on with",
                     "name its folder with --out, or start one with --data");
  }
  if (!config.data.path.empty() && is_made_up(config.data.format) && !options.resumes()) {
    throw UsageError("data.path is " + config.data.path + ", but data.format is " +
                         std::string(to_string(config.data.format)) + ", which makes up its data and reads none",
                     "leave --data out, or choose another preset");
  }
  if (no_data) {
    throw UsageError("no data to train on",
                     "name a file or the folder of a data set with --data PATH; any file will do, it is read as bytes");
  }
  if (!options.dry_run) {
    keep_piped_data(config.data,
                    {.run = options.out, .resumes = options.resumes(), .is_lone_process = !place || place->size == 1});
  }
  options.config = config;
  options.experiment.data = config.data.path;
  return engine(program).train(options, program);
}

}  // namespace

Command add_train(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* app = add_command(
      program, "train",
      "Train a model on any file, as bytes, or on a data set\n\n"
      "Without --preset and --config the model follows from the data and the speed of the "
      "machine, and training takes ten\n"
      "minutes. --minutes without --steps takes as many steps as fit, and lets the learning rate fall with them.\n\n"
      "Writes config.toml, metrics.jsonl, TensorBoard events and checkpoints to "
      "--out. Ctrl-C saves and stops;\n"
      "--resume goes on as if nothing had happened.",
      "routing train --data book.txt --out runs/book --minutes 3");
  add_experiment_options(*app, options->experiment);
  add_usual_keys(*app, options->experiment);
  OptionGroup run_group(*app, "Run");
  run_group.add({"--out DIR", "folder of the run"}, options->out);
  CLI::Option* const resume =
      run_group.add({"--resume [auto]", "go on from the newest whole checkpoint in --out", {"auto"}}, options->resume)
          ->expected(0, 1);
  OptionGroup ranks(*app, "Ranks");
  add_rank_options(ranks, options->ranks, "train together; each takes its share of train.batch_size");
  ranks.add({"--restarts K", "start again from the last checkpoint, up to K times"}, options->restarts,
            whole_number(0, kMostRestarts));
  ranks.flag({"--shard-optimizer", "each rank keeps its share of the optimiser's state (ZeRO stage 1)"},
             options->shard_optimizer);
  ranks.add({"--check-every N", "steps after which ranks compare hashes of their models"}, options->check_every,
            whole_number(1));
  ranks.add({"--trace N", "write a trace of the first N steps to ranks/, for Perfetto"}, options->trace_steps,
            whole_number(0));
  OptionGroup output(*app, "Output");
  output.flag({"--dry-run", "look whether the data are there, print the resolved configuration and stop"},
              options->dry_run);
  output.flag(kJsonFlag, options->json);
  return {app, [options, resume, &program_options] {
            options->resume_given = resume->count() > 0;
            if (!options->resume.empty() && options->resume != "auto") {
              throw UsageError("--resume is '" + options->resume + "', but it knows only auto",
                               "--resume alone goes on with the run in --out");
            }
            return run(*options, program_options);
          }};
}

}  // namespace routing
