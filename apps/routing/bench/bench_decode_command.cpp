#include "bench/bench_options.h"
#include "commands.h"
#include "routing/config/resolve.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

// Of the passes that set centroids up; a window must fit.
constexpr std::int64_t kSetupTokens = 2048;

ExperimentConfig config_of(const DecodeOptions& options) {
  std::vector<std::string> settings;
  const auto set = [&](const char* key, std::int64_t value) {
    settings.push_back(std::string(key) + "=" + std::to_string(value));
  };
  set("model.layers", options.layers);
  set("model.width", options.width);
  set("model.feedforward_width", 4 * options.width);
  set("model.vocab_size", options.vocabulary);
  set("attention.heads", options.heads);
  set("attention.content_heads", (options.heads + 1) / 2);
  for (const char* key : {"local.window", "routing.window", "lsh.window", "span.limit"}) set(key, options.window);
  for (const char* key : {"routing.clusters", "lsh.buckets"}) set(key, options.clusters);
  settings.emplace_back("span.initial=1");
  set("train.sequence_length", std::max(kSetupTokens, options.window));
  set("train.seed", static_cast<std::int64_t>(options.seed));
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  return resolve({.settings = settings});
}

}  // namespace

Command add_bench_decode(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<DecodeOptions>();
  CLI::App* app = add_command(
      bench_app, "decode",
      "What one more token costs, early and late in a sequence\n\n"
      "A byte-level model with local and content heads decodes random bytes with its cache. ratio of a step is its\n"
      "time over that of reading the weights once from memory; docs/performance.md explains the other rows.",
      "routing bench decode --layers 2 --width 128 --positions 100,1000 --prefix 1024");
  OptionGroup cases(*app, "Cases");
  cases.add_list({"--content LIST",
                  "what content heads read: local, full, strided, fixed, lsh, routing, span",
                  {"local", "full", "strided", "fixed", "lsh", "routing", "span"}},
                 options->decode.contents);
  cases.add_list({"--positions LIST", "tokens read before the steps that are timed"}, options->decode.positions,
                 whole_number(1));
  cases.add_list({"--batch LIST", "sequences decoded together"}, options->decode.batches, whole_number(1));
  OptionGroup sizes(*app, "Sizes");
  sizes.add({"--layers N", "layers"}, options->layers, whole_number(1));
  sizes.add({"--width N", "of the model; feed-forward layers are four times as wide"}, options->width, whole_number(1));
  sizes.add({"--heads N", "heads; half of them follow the content"}, options->heads, whole_number(1));
  sizes.add({"--window N", "of all patterns"}, options->window, whole_number(1));
  sizes.add({"--clusters N", "clusters of a routed head"}, options->clusters, whole_number(1));
  sizes.add({"--vocab N", "different tokens"}, options->vocabulary, whole_number(1));
  sizes.add({"--prefix N", "tokens of prefill and re-run; 0 leaves both out"}, options->decode.prefix, whole_number(0));
  OptionGroup model(*app, "Model");
  model.add(kSettingsOption, options->settings);
  add_measuring_options(*app, *options);
  return {app, [options, &program] {
            chosen_precisions(*options);
            options->decode.config = config_of(*options);
            return engine(program).bench_decode(*options, program);
          }};
}

}  // namespace routing
