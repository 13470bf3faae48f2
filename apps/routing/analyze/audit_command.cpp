#include "analyze/audit_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/experiment_options.h"
#include "shell/options.h"
#include "shell/usage_error.h"

#include <memory>
#include <string>

namespace routing {
namespace {

void add_model_options(CLI::App& app, AuditOptions& options) {
  OptionGroup model(app, "Model");
  model.add({"RUN", "folder of a run or checkpoint, or a model.safetensors"}, options.run);
  model.add(kCheckpointOption, options.checkpoint);
  model.add({"--preset PRESET", "instead of a RUN: fresh weights of this experiment"}, options.preset);
  model.add({"--config FILE", "TOML file with configuration keys"}, options.file);
  model.add(kSettingsOption, options.settings);
  model.add(kPrecisionOption, options.precision);
}

void add_audit_options(CLI::App& app, AuditOptions& options) {
  OptionGroup audit(app, "Audit");
  audit.add_paths(
      {"--data PATH",
       "file or folder; may be repeated for texts; default: that of the experiment, or else made-up tokens"},
      options.data);
  audit.add(kVocabularyOption, options.vocabulary);
  audit.add({"--positions N", "positions from which on tokens are changed, three ways each"}, options.positions,
            whole_number(1));
  audit.add({"--sequence-length N", "tokens of a sequence; default: as trained"}, options.sequence_length,
            whole_number(2));
  audit.add({"--seed N", "of positions, changes and trained tasks"}, options.seed, whole_number(0));
  audit.add({"--task-seeds N", "train the tasks with N seeds each"}, options.task_seeds, whole_number(1));
  audit.flag({"--quick", "leave out the trained tasks"}, options.quick);
  OptionGroup output(app, "Output");
  output.flag({"--no-write", "leave the model file as it is"}, options.no_write);
  output.flag(kJsonFlag, options.json);
}

// The experiment whose weights are audited while they are fresh.
ExperimentConfig fresh_experiment(const AuditOptions& options) {
  ExperimentOptions experiment;
  experiment.preset = options.preset;
  experiment.file = options.file;
  experiment.settings = options.settings;
  return resolve_experiment(experiment);
}

}  // namespace

Command add_audit(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<AuditOptions>();
  CLI::App* app = add_command(
      program, "audit",
      "Find out whether predictions depend on later tokens\n\n"
      "Changes what comes after a position in several ways; every earlier logit must stay as it was, bit for bit.\n"
      "That alone decides the verdict, which is written into the metadata of the model file and printed by eval.\n"
      "As evidence beside it, decoding token by token is compared with one pass, and a small model with the same\n"
      "attention is trained on coin flips and on a secret that only the future tells. A bad verdict is a result,\n"
      "not a failure: the exit code is 0.",
      "routing audit runs/first --positions 64");
  add_model_options(*app, *options);
  add_audit_options(*app, *options);
  return {app, [options, app, &program_options] {
            if (options->quick && app->count("--task-seeds") > 0) {
              throw UsageError("--task-seeds is for the trained tasks, which --quick leaves out",
                               "give one of the two");
            }
            if (options->run.empty() && app->count("--checkpoint") > 0) {
              throw UsageError("--checkpoint is of a RUN, but fresh weights were asked for", "leave --checkpoint out");
            }
            const bool fresh = options->run.empty();
            const bool named = !options->preset.empty() || !options->file.empty() || !options->settings.empty();
            if (fresh != named) {
              throw UsageError(fresh ? "routing audit needs a RUN or --preset NAME"
                                     : "a RUN has its configuration; leave out --preset, --config and --set",
                               "routing audit --help  says more");
            }
            if (fresh) options->experiment = fresh_experiment(*options);
            return engine(program_options).audit(*options, program_options);
          }};
}

}  // namespace routing
