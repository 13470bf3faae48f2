#include "command_line.h"
#include "commands.h"
#include "experiment_options.h"
#include "interrupts.h"
#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/training/trainer.h"
#include "training_display.h"
#include "training_result.h"
#include "version.h"

#include <iostream>
#include <memory>
#include <string>

namespace routing {
namespace {

struct TrainOptions {
  ExperimentOptions experiment;
  std::string out;
  std::string resume;
  bool dry_run = false;
  bool json = false;
};

// A resumed run that names no base of its own goes on with what the run was made with.
ExperimentConfig config_of(TrainOptions options) {
  const RunDirectory run(options.out);
  if (!options.resume.empty() && !options.experiment.names_a_base() && run.exists()) {
    options.experiment.file = run.config_file().string();
  }
  return resolve_experiment(options.experiment);
}

int run(const TrainOptions& options, const ProgramOptions& program) {
  const ExperimentConfig config = config_of(options);
  if (options.dry_run) {
    std::cout << to_toml(config);
    return kDone;
  }
  if (options.out.empty()) throw UsageError("--out is required", "name a folder for the run, such as --out runs/first");
  const bool no_data = config.data.path.empty() && !is_made_up(config.data.format);
  if (no_data && !options.resume.empty()) {
    throw UsageError(options.out + ": holds no run to go on with",
                     "name its folder with --out, or start one with --data");
  }
  if (no_data) {
    throw UsageError("no data to train on",
                     "name a file or the folder of a data set with --data PATH; any file will do, it is read as bytes");
  }
  const InterruptGuard interrupts;
  TrainingDisplay display(program.quiet);
  Trainer trainer({.config = config,
                   .run = options.out,
                   .resume = !options.resume.empty(),
                   .version = program_version(),
                   .observer = display.observer(),
                   .notes = [&](const std::string& line) { display.say(line); }});
  display.say(describe_run(trainer));
  const TrainingResult result = trainer.run();
  display.finish();
  print_training_result(result, {.config = trainer.config(),
                                 .kind = trainer.data().kind,
                                 .data_label = trainer.data().label,
                                 .run = options.out,
                                 .json = options.json});
  return result.end == TrainingEnd::interrupted ? kInterrupted : kDone;
}

}  // namespace

Command add_train(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* app = program.add_subcommand("train",
                                         "Train a model on any file, as bytes, or on a data set\n\n"
                                         "Writes config.toml, metrics.jsonl, TensorBoard events and checkpoints to "
                                         "--out. Ctrl-C saves and stops; --resume\n"
                                         "auto goes on as if nothing had happened.");
  add_experiment_options(*app, options->experiment);
  app->add_option("--out", options->out, "folder of the run")->type_name("DIR")->group("Run");
  app->add_option("--resume", options->resume, "auto: go on from the newest whole checkpoint in --out")
      ->type_name("auto")
      ->check(CLI::IsMember({"auto"}))
      ->group("Run");
  app->add_flag("--dry-run", options->dry_run, "print the resolved configuration and stop")
      ->disable_flag_override()
      ->group("Output");
  app->add_flag("--json", options->json, "print the result as JSON")->disable_flag_override()->group("Output");
  app->footer("Example  routing train --preset tiny-enwik8 --data enwik8 --out runs/first --steps 200\n" +
              exit_code_line());
  return {app, [options, &program_options] { return run(*options, program_options); }};
}

}  // namespace routing
