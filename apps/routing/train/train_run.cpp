#include "ranks/rank_launcher.h"
#include "ranks/rank_process.h"
#include "routing/config/toml.h"
#include "routing/training/trainer.h"
#include "shell/engine.h"
#include "shell/interrupts.h"
#include "train/own_experiment.h"
#include "train/train_options.h"
#include "train/training_display.h"
#include "train/training_result.h"
#include "version.h"

#include <iostream>
#include <memory>
#include <optional>
#include <string>

namespace routing {
namespace {

struct OwnPlace {
  std::shared_ptr<RankGroup> group = nullptr;
  int local_rank = 0;
};

int train(const TrainOptions& options, const ProgramOptions& program, const OwnPlace& place) {
  const bool leads = !place.group || place.group->leads();
  const InterruptGuard interrupts;
  TrainingDisplay display(program.quiet || !leads);
  Trainer trainer({.config = options.config,
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

}  // namespace

int run_train(const TrainOptions& given, const ProgramOptions& program) {
  TrainOptions options = given;
  if (options.chooses_preset || options.fits_minutes) {
    TrainingDisplay display(program.quiet);
    options.config = options.chooses_preset ? experiment_for_data(options.experiment, display)
                                            : fitted_to_minutes(options.config, options.experiment, display);
  }
  if (options.dry_run) {
    std::cout << to_toml(options.config);
    return kDone;
  }
  if (options.ranks.count > 1 && !is_launched()) {
    return launch_ranks({.ranks = options.ranks.count,
                         .restarts = options.restarts,
                         .timeout = options.ranks.timeout(),
                         .run = options.out,
                         .arguments = program.arguments,
                         .quiet = program.quiet});
  }
  const std::optional<RankPlace> place = rank_place();
  if (!place || place->size == 1) return train(options, program, {});
  return run_as_rank(*place,
                     {.timeout = options.ranks.timeout(),
                      .restarts = options.restarts,
                      .run = options.out,
                      .arguments = program.arguments},
                     [&](const std::shared_ptr<RankGroup>& group, int local_rank) {
                       return train(options, program, {.group = group, .local_rank = local_rank});
                     });
}

}  // namespace routing
