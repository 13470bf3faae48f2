#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "lab/bench/layers_bench.h"
#include "shell/engine.h"

namespace routing {

int run_bench_layers(const LayersOptions& options, const ProgramOptions& program) {
  BenchOutput output(program, options.json);
  bench::LayersBench layers = options.layers;
  layers.precisions = chosen_precisions(options);
  layers.seed = options.seed;
  layers.runner = {.repeats = options.repeats, .progress = bench_progress(program)};
  output.print(bench::bench_layers(layers));
  return kDone;
}

}  // namespace routing
