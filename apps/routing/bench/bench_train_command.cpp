#include "bench/bench_options.h"
#include "commands.h"
#include "routing/config/resolve.h"
#include "shell/engine.h"
#include "shell/key_values.h"
#include "shell/options.h"

#include <fmt/core.h>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

// The sizes of the benchmark, key by key; what stands here is the default where no preset is named.
struct SizeOption {
  const char* name;
  std::vector<std::string> keys;
  const char* value;
  const char* text;
};

const std::vector<SizeOption>& size_options() {
  static const std::vector<SizeOption> all{
      {"-n,--tokens", {"train.sequence_length"}, "8192", "tokens of a sequence"},
      {"--batch", {"train.batch_size"}, "1", "sequences"},
      {"--layers", {"model.layers"}, "6", "layers"},
      {"--width", {"model.width"}, "512", "of the model; feed-forward layers are four times as wide"},
      {"--heads", {"attention.heads"}, "8", "heads; half of them follow the content"},
      {"--window",
       {"local.window", "routing.window", "random.window", "lsh.window", "span.limit"},
       "256",
       "of all patterns"},
      {"--clusters", {"routing.clusters", "random.groups", "lsh.buckets"}, "32", "clusters of a routed head"},
  };
  return all;
}

struct TrainBenchArguments : TrainBenchOptions {
  std::vector<std::int64_t> values = std::vector<std::int64_t>(size_options().size(), 0);  // 0: not given
  std::int64_t dim = 0;
  std::string preset;
  std::vector<std::string> settings;
  bool relative = false;
};

// What no preset says: no relative tables, and an even share of heads for the content.
std::vector<std::string> settings_of(const TrainBenchArguments& options) {
  std::vector<std::string> settings;
  const bool plain = options.preset.empty();
  if (plain && !options.relative) settings.insert(settings.end(), {"local.relative=none", "span.relative=none"});
  if (plain) settings.emplace_back("span.initial=1");
  if (plain) settings.emplace_back("train.schedule=constant");
  for (std::size_t index = 0; index < size_options().size(); ++index) {
    const SizeOption& option = size_options()[index];
    const bool given = options.values[index] > 0;
    if (!given && !plain) continue;
    const std::string value = given ? std::to_string(options.values[index]) : option.value;
    const std::int64_t number = std::stoll(value);
    for (const std::string& key : option.keys) settings.push_back(fmt::format("{}={}", key, value));
    if (option.keys[0] == "model.width") settings.push_back("model.feedforward_width=" + std::to_string(4 * number));
    if (option.keys[0] == "attention.heads") {
      settings.push_back("attention.content_heads=" + std::to_string((number + 1) / 2));
    }
  }
  if (options.dim > 0) settings.push_back("model.head_dim=" + std::to_string(options.dim));
  settings.push_back("train.seed=" + std::to_string(options.seed));
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  return settings;
}

}  // namespace

Command add_bench_train(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<TrainBenchArguments>();
  CLI::App* app = add_command(
      bench_app, "train",
      "Whole training steps: tokens per second, peak memory, share of the GEMM rate\n\n"
      "A byte-level model on random bytes. ratio is the time of a step relative to the first content, in the same\n"
      "precision; docs/performance.md explains the columns.",
      "routing bench train -n 512 --layers 2 --width 128 --window 64 --clusters 8");
  OptionGroup cases(*app, "Cases");
  cases.add_list({"--content LIST", "what content heads read: local, routing, lsh …"}, options->contents,
                 offers([] { return key_values("attention.content"); }));
  OptionGroup sizes(*app, "Sizes");
  for (std::size_t index = 0; index < size_options().size(); ++index) {
    const SizeOption& option = size_options()[index];
    sizes.add({std::string(option.name) + " N", option.text}, options->values[index], whole_number(1))
        ->default_str(option.value);
  }
  sizes.add({"--dim N", "of a head; default: width / heads"}, options->dim, whole_number(1));
  sizes.flag({"--relative", "local heads and those with a span have relative tables"}, options->relative);
  OptionGroup model(*app, "Model");
  model.add({"--preset PRESET", "sizes and all else from a preset; `routing presets` lists them"}, options->preset);
  model.add(kSettingsOption, options->settings);
  model.add({"--data FILE", "train on the first bytes of a file instead"}, options->data);
  add_measuring_options(*app, *options);
  return {app, [options, &program] {
            chosen_precisions(*options);
            options->config = resolve({.preset = options->preset, .settings = settings_of(*options)});
            return engine(program).bench_train(*options, program);
          }};
}

}  // namespace routing
