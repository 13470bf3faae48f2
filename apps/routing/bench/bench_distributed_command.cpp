#include "bench/bench_options.h"
#include "commands.h"
#include "routing/core/error.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_bench_distributed(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<DistributedOptions>();
  CLI::App* app = add_command(bench_app, "distributed",
                              "Training over several ranks of this machine against one with as many threads\n\n"
                              "Trains the same model with the same global batch in turns: one rank, then --ranks "
                              "ranks that share its threads.\n"
                              "Then says on paper what measured steps and bytes give on more ranks over a network.",
                              "routing bench distributed --ranks 2 --steps 20 --repeats 5");
  OptionGroup model(*app, "Model");
  model.add({"--preset PRESET", "named experiment to train"}, options->preset);
  model.add(kSettingsOption, options->settings);
  OptionGroup run_group(*app, "Run");
  run_group.add({"--data PATH", "what to train on; default: made-up words"}, options->data);
  run_group.add({"--ranks N", "ranks to compare with one"}, options->ranks, whole_number(2, 64));
  run_group.add({"--steps N", "of each training; the first two are not measured"}, options->steps, whole_number(1));
  run_group.add({"--repeats N", "trainings of each kind"}, options->repeats, whole_number(1, 1000));
  OptionGroup(*app, "Output").flag({"--json", "one JSON object per line"}, options->json);
  return {app, [options, &program] {
            require<ConfigError>(options->steps > kSkippedSteps, "--steps is ", options->steps, ", but the first ",
                                 kSkippedSteps, " are not measured; ask for more");
            return engine(program).bench_distributed(*options, program);
          }};
}

}  // namespace routing
