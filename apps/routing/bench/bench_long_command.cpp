#include "bench/bench_options.h"
#include "commands.h"
#include "routing/core/error.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <algorithm>
#include <memory>

namespace routing {

Command add_bench_long(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<LongOptions>();
  CLI::App* app = add_command(bench_app, "long",
                              "Training with one sequence over several ranks of this machine, by its length\n\n"
                              "Trains the same model with sequences of --from to --to tokens, whole and split over "
                              "--ranks ranks that share the\n"
                              "threads: time, the memory of the largest rank and the bytes of keys and values that are "
                              "sent, how all of it\n"
                              "grows, and what it gives on paper over 8 to 128 machines.",
                              "routing bench long --to 131072 --ranks 1 --ranks 2");
  OptionGroup model(*app, "Model");
  model.add({"--preset PRESET", "named experiment to train"}, options->preset);
  model.add(kSettingsOption, options->settings);
  model.add_list(
      {"--contents LIST", "kinds of content heads whose bytes are compared, at --from tokens over two ranks, or none"},
      options->contents);
  OptionGroup run_group(*app, "Run");
  run_group.add({"--data PATH", "what to train on; default: made-up words"}, options->data);
  run_group.add({"--from N", "tokens of the shortest sequence"}, options->from, whole_number(64));
  run_group.add({"--to N", "no sequence is longer; each is twice as long as the one before"}, options->to,
                whole_number(64));
  run_group.add({"--fit-from N", "shorter sequences are left out of exponents"}, options->fit_from, whole_number(1));
  run_group.add_list({"--ranks LIST", "that share a sequence"}, options->ranks, whole_number(1, 64));
  OptionGroup(*app, "Output").flag({"--json", "one JSON object per line"}, options->json);
  return {app, [options, &program] {
            require<ConfigError>(options->from <= options->to, "--from is ", options->from, ", but --to ", options->to,
                                 "; nothing lies between them");
            return engine(program).bench_long(*options, program);
          }};
}

}  // namespace routing
