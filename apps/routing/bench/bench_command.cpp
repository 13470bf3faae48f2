#include "commands.h"

namespace routing {

std::vector<Command> add_bench(CLI::App& program, const ProgramOptions& options) {
  CLI::App* app = program.add_subcommand("bench",
                                         "Measure speed and memory\n\n"
                                         "Cases run in turns; rows give medians. docs/performance.md explains every "
                                         "column.");
  app->footer("Example  routing bench attention --pattern local,threshold\n" + exit_code_line());
  return {add_bench_attention(*app, options), add_bench_train(*app, options),  add_bench_scaling(*app, options),
          add_bench_layers(*app, options),    add_bench_decode(*app, options), add_bench_distributed(*app, options)};
}

}  // namespace routing
