#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "lab/bench/train_bench.h"
#include "shell/engine.h"

namespace routing {

int run_bench_train(const TrainBenchOptions& options, const ProgramOptions& program) {
  BenchOutput output(program, options.json);
  output.print(bench::bench_train({.config = options.config,
                                   .contents = options.contents,
                                   .precisions = options.precisions,
                                   .data = options.data,
                                   .runner = {.repeats = options.repeats, .progress = bench_progress(program)}}));
  return kDone;
}

}  // namespace routing
