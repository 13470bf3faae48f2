#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "commands.h"
#include "lab/bench/attention_bench.h"

#include <memory>

namespace routing {

Command add_bench_attention(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<BenchOptions>();
  options->patterns = {"local", "nearest", "threshold"};
  options->passes = {"plan", "forward", "forward+backward"};
  CLI::App* app = bench_app.add_subcommand(
      "attention",
      "Plans and attention of every pattern, without projections\n\n"
      "ratio is seconds per pair relative to the first pattern, in the same precision and pass; docs/performance.md\n"
      "explains the columns.");
  add_word_list(*app, "--pattern", options->patterns,
                "local, nearest, threshold, balanced, full, strided, random, lsh");
  add_word_list(*app, "--pass", options->passes, "plan, forward, forward+backward");
  bench::AttentionSizes& sizes = options->sizes;
  add_size(*app, "-n,--tokens", sizes.n, "tokens of a sequence");
  add_size(*app, "--batch", sizes.batch, "sequences");
  add_size(*app, "--heads", sizes.heads, "heads, all of the same pattern");
  add_size(*app, "--dim", sizes.dim, "of a head");
  add_size(*app, "--window", sizes.window, "keys that a query sees in a group");
  add_size(*app, "--clusters", sizes.clusters, "clusters, buckets or random sets of a head");
  add_measuring_options(*app, *options);
  app->footer("Example  routing bench attention -n 1024 --pattern local,threshold --precision fp32\n" +
              exit_code_line());
  return {app, [options, &program] {
            BenchOutput output(program, options->json);
            output.print(
                bench::bench_attention({.sizes = options->sizes,
                                        .patterns = options->patterns,
                                        .precisions = chosen_precisions(*options),
                                        .passes = chosen_passes(*options),
                                        .seed = options->seed,
                                        .runner = {.repeats = options->repeats, .progress = bench_progress(program)}}));
            return kDone;
          }};
}

}  // namespace routing
