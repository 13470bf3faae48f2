#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "commands.h"
#include "lab/bench/layers_bench.h"

#include <memory>

namespace routing {
namespace {

struct LayersOptions : BenchOptions {
  bench::LayersBench layers;
};

}  // namespace

Command add_bench_layers(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<LayersOptions>();
  CLI::App* app = bench_app.add_subcommand("layers",
                                           "Every operation of a training step by itself\n\n"
                                           "ratio is seconds relative to the forward pass of the first linear layer, "
                                           "in the same precision; operations whose\n"
                                           "time does not depend on the precision stand under the first one.");
  bench::AttentionSizes& sizes = options->layers.attention;
  add_size(*app, "-n,--tokens", sizes.n, "tokens of a sequence");
  add_size(*app, "--batch", sizes.batch, "sequences");
  add_size(*app, "--heads", sizes.heads, "heads of attention");
  add_size(*app, "--dim", sizes.dim, "of a head; heads times dim is the width");
  add_size(*app, "--window", sizes.window, "keys that a query sees in a group");
  add_size(*app, "--clusters", sizes.clusters, "clusters of a routed head");
  add_size(*app, "--feedforward-width", options->layers.feedforward_width, "of the feed-forward layer");
  add_size(*app, "--vocabulary", options->layers.vocabulary, "different tokens");
  add_size(*app, "--layers", options->layers.layers, "whose weights the optimiser moves");
  add_measuring_options(*app, *options);
  app->footer("Example  routing bench layers -n 512 --heads 2 --window 64 --clusters 8 --feedforward-width 512\n" +
              exit_code_line());
  return {app, [options, &program] {
            BenchOutput output(program, options->json);
            bench::LayersBench layers = options->layers;
            layers.precisions = chosen_precisions(*options);
            layers.seed = options->seed;
            layers.runner = {.repeats = options->repeats, .progress = bench_progress(program)};
            output.print(bench::bench_layers(layers));
            return kDone;
          }};
}

}  // namespace routing
