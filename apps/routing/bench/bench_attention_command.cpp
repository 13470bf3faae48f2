#include "bench/bench_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_bench_attention(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<BenchOptions>();
  options->patterns = {"local", "nearest", "threshold"};
  options->passes = {"plan", "forward", "forward+backward"};
  CLI::App* app = add_command(
      bench_app, "attention",
      "Plans and attention of every pattern, without projections\n\n"
      "ratio is seconds per pair relative to the first pattern, in the same precision and pass; docs/performance.md\n"
      "explains the columns.",
      "routing bench attention -n 1024 --pattern local,threshold --precision fp32");
  OptionGroup cases(*app, "Cases");
  cases.add_list({"--pattern LIST", CLI::detail::join(offered_patterns(), ", "), offered_patterns()},
                 options->patterns);
  cases.add_list({"--pass LIST", "plan, forward, forward+backward", options->passes}, options->passes);
  bench::AttentionSizes& of = options->sizes;
  OptionGroup sizes(*app, "Sizes");
  sizes.add({"-n,--tokens N", "tokens of a sequence"}, of.n, whole_number(1));
  sizes.add({"--batch N", "sequences"}, of.batch, whole_number(1));
  sizes.add({"--heads N", "heads, all of the same pattern"}, of.heads, whole_number(1));
  sizes.add({"--dim N", "of a head"}, of.dim, whole_number(1));
  sizes.add({"--window N", "keys that a query sees in a group"}, of.window, whole_number(1));
  sizes.add({"--clusters N", "clusters, buckets or random sets of a head"}, of.clusters, whole_number(1));
  add_measuring_options(*app, *options);
  return {app, [options, &program] {
            chosen_precisions(*options);
            chosen_passes(*options);
            return engine(program).bench_attention(*options, program);
          }};
}

}  // namespace routing
