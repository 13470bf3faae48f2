#include "commands.h"
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

namespace routing {
namespace {

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

int run(TrainOptions options, const ProgramOptions& program) {
  const ExperimentConfig config = config_of(options);
  if (options.dry_run) {
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
  options.config = config;
  return engine(program).train(options, program);
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
  output.flag({"--dry-run", "print the resolved configuration and stop"}, options->dry_run);
  output.flag(kJsonFlag, options->json);
  return {app, [options, &program_options] { return run(*options, program_options); }};
}

}  // namespace routing
