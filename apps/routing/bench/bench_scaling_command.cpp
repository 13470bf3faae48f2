#include "bench/bench_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_bench_scaling(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<ScalingOptions>();
  options->patterns = {"threshold", "local"};
  options->precisions = {"fp32"};
  CLI::App* app = add_command(
      bench_app, "scaling",
      "How time and memory of attention grow with the sequence\n\n"
      "Forward and backward with the plan, sqrt(n) clusters and a window of n / clusters, then fitted exponents of n.\n"
      "With --sweep-clusters the length is fixed and the number of clusters doubles instead.",
      "routing bench scaling --from 512 --to 2048 --fit-from 512 --heads 2");
  OptionGroup cases(*app, "Cases");
  cases.add_list({"--pattern LIST", "as in bench attention; a sweep takes the first", offered_patterns()},
                 options->patterns);
  OptionGroup sizes(*app, "Sizes");
  sizes.add({"--from N", "shortest sequence"}, options->scaling.from, whole_number(1));
  sizes.add({"--to N", "longest sequence; lengths double"}, options->scaling.to, whole_number(1));
  sizes.add({"--fit-from N", "shortest sequence of the fit"}, options->scaling.fit_from, whole_number(1));
  sizes.add({"--full-to N", "longest sequence of full attention"}, options->scaling.full_to, whole_number(1));
  sizes.add({"--batch N", "sequences"}, options->scaling.batch, whole_number(1));
  sizes.add({"--heads N", "heads"}, options->scaling.heads, whole_number(1));
  sizes.add({"--dim N", "of a head"}, options->scaling.dim, whole_number(1));
  OptionGroup sweep(*app, "Sweep");
  sweep.flag({"--sweep-clusters", "vary the clusters at one length"}, options->sweep_clusters);
  sweep.add({"--sweep-tokens N", "tokens of a sequence"}, options->sweep.n, whole_number(1));
  sweep.add({"--clusters-from N", "fewest clusters"}, options->sweep.from, whole_number(1));
  sweep.add({"--clusters-to N", "most clusters; they double"}, options->sweep.to, whole_number(1));
  add_measuring_options(*app, *options);
  return {app, [options, &program] {
            chosen_precisions(*options);
            return engine(program).bench_scaling(*options, program);
          }};
}

}  // namespace routing
