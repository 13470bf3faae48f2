#include "commands.h"
#include "inform/inform_options.h"
#include "routing/core/error.h"
#include "shell/engine.h"
#include "shell/experiment_options.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_info(CLI::App& program, const ProgramOptions& options) {
  const auto experiment = std::make_shared<ExperimentOptions>();
  const auto given = std::make_shared<InfoOptions>();
  CLI::App* app = add_command(
      program, "info",
      "Print versions, processor, threads and memory, or what an experiment amounts to\n\n"
      "With a RUN, --preset, --config or --set: weights, heads of every layer, keys a token reads, validity of the\n"
      "likelihood, and an estimate of the memory that training takes. Nothing is trained or allocated. For a RUN also\n"
      "what `routing audit` found.",
      "routing info --preset tiny-enwik8");
  OptionGroup model(*app, "Model");
  model.add({"RUN", "folder of a run or checkpoint, or a model.safetensors"}, given->run);
  model.add(kCheckpointOption, given->checkpoint);
  add_experiment_options(*app, *experiment);
  OptionGroup(*app, "Output").flag(kJsonFlag, given->json);
  return {app, [given, experiment, &options] {
            const bool named = experiment->names_a_base() || !experiment->settings.empty();
            require<ConfigError>(given->run.empty() || !named, given->run,
                                 ": a run has its configuration; leave out --preset, --config and --set");
            if (named) given->experiment = resolve_experiment(*experiment);
            return engine(options).info(*given, options);
          }};
}

}  // namespace routing
