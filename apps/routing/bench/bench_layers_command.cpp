#include "bench/bench_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_bench_layers(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<LayersOptions>();
  CLI::App* app = add_command(bench_app, "layers",
                              "Every operation of a training step by itself\n\n"
                              "ratio is seconds relative to the forward pass of the first linear layer, "
                              "in the same precision; operations whose\n"
                              "time does not depend on the precision stand under the first one.",
                              "routing bench layers -n 512 --heads 2 --window 64 --clusters 8 --feedforward-width 512");
  bench::AttentionSizes& of = options->layers.attention;
  OptionGroup sizes(*app, "Sizes");
  sizes.add({"-n,--tokens N", "tokens of a sequence"}, of.n, whole_number(1));
  sizes.add({"--batch N", "sequences"}, of.batch, whole_number(1));
  sizes.add({"--heads N", "heads of attention"}, of.heads, whole_number(1));
  sizes.add({"--dim N", "of a head; heads times dim is the width"}, of.dim, whole_number(1));
  sizes.add({"--window N", "keys that a query sees in a group"}, of.window, whole_number(1));
  sizes.add({"--clusters N", "clusters of a routed head"}, of.clusters, whole_number(1));
  sizes.add({"--feedforward-width N", "of the feed-forward layer"}, options->layers.feedforward_width, whole_number(1));
  sizes.add({"--vocabulary N", "different tokens"}, options->layers.vocabulary, whole_number(1));
  sizes.add({"--bands IDS", "where bands of the vocabulary end (20000,60000): measures them too"},
            options->layers.bands);
  sizes.add({"--band-factor X", "how many times narrower the vectors of each next band are"},
            options->layers.band_factor);
  sizes.add({"--layers N", "whose weights the optimiser moves"}, options->layers.layers, whole_number(1));
  add_measuring_options(*app, *options);
  return {app, [options, &program] {
            chosen_precisions(*options);
            return engine(program).bench_layers(*options, program);
          }};
}

}  // namespace routing
