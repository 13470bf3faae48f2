#include "commands.h"
#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/training/trainer.h"
#include "shell/command_line.h"
#include "shell/experiment_options.h"
#include "shell/interrupts.h"
#include "shell/options.h"
#include "shell/piped_data.h"
#include "train/rank_launcher.h"
#include "train/rank_process.h"
#include "train/training_display.h"
#include "train/training_result.h"
#include "version.h"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

namespace routing {
namespace {

struct TrainOptions {
  ExperimentOptions experiment;
  std::string out;
  std::string resume;
  bool dry_run = false;
  bool json = false;
  // Of several ranks.
  int ranks = 1;
  int restarts = 0;
  int timeout_seconds = 60;
  bool shard_optimizer = false;
  std::int64_t check_every = 100;
  std::int64_t trace_steps = 0;

  std::chrono::milliseconds timeout() const { return std::chrono::seconds(timeout_seconds); }
  // Asked to, or started anew after a failure.
  bool resumes() const { return !resume.empty() || environment_variable(kAttemptVariable).value_or("0") != "0"; }
};

constexpr int kMostRanks = 4096;
constexpr int kLongestTimeout = 24 * 3600;

// A resumed run that names no base of its own goes on with what the run was made with.
ExperimentConfig config_of(TrainOptions options) {
  const RunDirectory run(options.out);
  if (options.resumes() && !options.experiment.names_a_base() && run.exists()) {
    options.experiment.file = run.config_file().string();
  }
  return resolve_experiment(options.experiment);
}

struct OwnPlace {
  std::shared_ptr<RankGroup> group = nullptr;
  int local_rank = 0;
};

int train(const TrainOptions& options, const ProgramOptions& program, const ExperimentConfig& config,
          const OwnPlace& place) {
  const bool leads = !place.group || place.group->leads();
  const InterruptGuard interrupts;
  TrainingDisplay display(program.quiet || !leads);
  Trainer trainer({.config = config,
                   .run = options.out,
                   .resume = options.resumes(),
                   .version = program_version(),
                   .observer = display.observer(),
                   .notes = [&](const std::string& line) { display.say(line); },
                   .ranks = place.group,
                   .local_rank = place.local_rank,
                   .shard_optimizer = options.shard_optimizer,
                   .check_every = options.check_every,
                   .trace_steps = options.trace_steps});
  display.say(describe_run(trainer));
  const TrainingResult result = trainer.run();
  display.finish();
  if (leads) {
    print_training_result(result, {.config = trainer.config(),
                                   .kind = trainer.data().kind,
                                   .data_label = trainer.data().label,
                                   .run = options.out,
                                   .ranks = trainer.rank_facts().ranks,
                                   .json = options.json});
  }
  return result.end == TrainingEnd::interrupted ? kInterrupted : kDone;
}

int run(const TrainOptions& options, const ProgramOptions& program) {
  ExperimentConfig config = config_of(options);
  if (options.dry_run) {
    if (!config.data.path.empty() && !is_made_up(config.data.format)) check_data(config.data);
    std::cout << to_toml(config);
    return kDone;
  }
  if (options.out.empty()) throw UsageError("--out is required", "name a folder for the run, such as --out runs/first");
  const std::optional<RankPlace> place = rank_place();
  if (options.ranks > 1 && place && !is_launched()) {
    throw UsageError("--ranks is " + std::to_string(options.ranks) + ", but RANK is set to " +
                         std::to_string(place->rank) + ": both say who the ranks are",
                     "leave --ranks out under torchrun, srun or mpirun; unset RANK and WORLD_SIZE otherwise");
  }
  if (options.ranks == 1 && !place && (options.restarts > 0 || options.shard_optimizer)) {
    throw UsageError(std::string(options.restarts > 0 ? "--restarts" : "--shard-optimizer") +
                         " is for several ranks, but there is one",
                     "start more with --ranks N, or leave it out");
  }
  const bool no_data = config.data.path.empty() && !is_made_up(config.data.format);
  if (no_data && options.resumes()) {
    throw UsageError(options.out + ": holds no run to go on with",
                     "name its folder with --out, or start one with --data");
  }
  if (no_data) {
    throw UsageError("no data to train on",
                     "name a file or the folder of a data set with --data PATH; any file will do, it is read as bytes");
  }
  keep_piped_data(config.data,
                  {.run = options.out, .resumes = options.resumes(), .is_lone_process = !place || place->size == 1});
  if (options.ranks > 1 && !is_launched()) {
    return launch_ranks({.ranks = options.ranks,
                         .restarts = options.restarts,
                         .timeout = options.timeout(),
                         .run = options.out,
                         .arguments = program.arguments,
                         .quiet = program.quiet});
  }
  if (!place || place->size == 1) return train(options, program, config, {});
  return run_as_rank(
      *place,
      {.timeout = options.timeout(), .restarts = options.restarts, .run = options.out, .arguments = program.arguments},
      [&](const std::shared_ptr<RankGroup>& group, int local_rank) {
        return train(options, program, config, {.group = group, .local_rank = local_rank});
      });
}

}  // namespace

Command add_train(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* app = add_command(program, "train",
                              "Train a model on any file, as bytes, or on a data set\n\n"
                              "Writes config.toml, metrics.jsonl, TensorBoard events and checkpoints to "
                              "--out. Ctrl-C saves and stops; --resume\n"
                              "auto goes on as if nothing had happened.",
                              "routing train --preset tiny-enwik8 --data enwik8 --out runs/first --steps 200");
  add_experiment_options(*app, options->experiment);
  OptionGroup run_group(*app, "Run");
  run_group.add({"--out DIR", "folder of the run"}, options->out);
  run_group.add({"--resume auto", "auto: go on from the newest whole checkpoint in --out"}, options->resume,
                one_of({"auto"}));
  OptionGroup ranks(*app, "Ranks");
  ranks.add({"--ranks N", "processes on this machine that train together; each takes its share of train.batch_size"},
            options->ranks, whole_number(1, kMostRanks));
  ranks.add({"--timeout S", "end the run if a rank is lost for S seconds"}, options->timeout_seconds,
            whole_number(1, kLongestTimeout));
  ranks.add({"--restarts K", "start again from the last checkpoint, up to K times"}, options->restarts,
            whole_number(0, kMostRanks));
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
  return {app, [options, &program_options] { return run(*options, program_options); }};
}

}  // namespace routing
