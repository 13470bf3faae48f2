#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "lab/bench/attention_bench.h"
#include "shell/engine.h"

namespace routing {

int run_bench_attention(const BenchOptions& options, const ProgramOptions& program) {
  BenchOutput output(program, options.json);
  output.print(bench::bench_attention({.sizes = options.sizes,
                                       .patterns = options.patterns,
                                       .precisions = chosen_precisions(options),
                                       .passes = chosen_passes(options),
                                       .seed = options.seed,
                                       .runner = {.repeats = options.repeats, .progress = bench_progress(program)}}));
  return kDone;
}

}  // namespace routing
