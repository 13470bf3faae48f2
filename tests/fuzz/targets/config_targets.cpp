// Configurations: TOML, settings and the texts inside of values.
#include "fuzz/targets.h"
#include "routing/config/keys.h"
#include "routing/config/resolve.h"
#include "routing/config/text/path_list.h"
#include "routing/config/text/split_text.h"
#include "routing/config/text/toml_keys.h"
#include "routing/config/text/vocabulary_bands.h"
#include "routing/config/toml.h"

#include <sstream>

namespace routing::fuzz {
namespace {

const ExperimentConfig& defaults() {
  static const ExperimentConfig config;
  return config;
}

// By their texts where they differ: NaN is no number, not even itself.
bool same(const ExperimentConfig& one, const ExperimentConfig& other) {
  return one == other || to_toml(one) == to_toml(other);
}

void run_toml(Bytes bytes) {
  const std::string text(text_of(bytes));
  ExperimentConfig config = defaults();
  const bool taken = takes([&] { apply_toml(config, text, "mine.toml"); });
  if (one_in(8, bytes)) {
    line_of_deep_key(text, 16);
    const bool has_base = takes([&] { base_of_toml(text, "mine.toml"); });
    hold(has_base || !taken, "a file that was taken is none for who looks for its base");
  }
  if (!taken) {
    hold(same(config, defaults()), "a refused file has changed the configuration");
    return;
  }
  // Any configuration, written and read, is itself. Writing and reading all keys takes fifty times as long as a small
  // file.
  if (one_in(64, bytes)) {
    const std::string written = to_toml(config);
    ExperimentConfig again = defaults();
    apply_toml(again, written, "written.toml");
    hold(same(again, config), "what was written reads as something else:\n" + written);
  }
  takes([&] { validate(config); });
}

// Lines: KEY=VALUE as --set has it, or ROUTING_KEY=VALUE as the environment.
void run_settings(Bytes bytes) {
  std::istringstream lines{std::string(text_of(bytes))};
  ConfigSources sources;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (line.starts_with("ROUTING_") && equals != std::string::npos) {
      sources.environment.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    } else {
      sources.settings.push_back(line);
    }
    const std::string value = equals == std::string::npos ? line : line.substr(equals + 1);
    takes([&] { parse_split(value); });
    takes([&] { vocabulary_bands({.ends = value, .vocab_size = 100'000, .width = 64}); });
    hold(path_list(paths_in(value)) == value || value.ends_with('\n') || value.find("\n\n") != std::string::npos,
         "paths come back otherwise");
  }
  ExperimentConfig config;
  if (!takes([&] { config = read_sources(sources); })) return;
  takes([&] { validate(config); });
  if (!one_in(16, bytes)) return;
  ExperimentConfig other = config;
  for (const std::string& key : experiment_keys()) {
    const std::string value = get_key(config, key);
    set_key(other, key, value);
    hold(get_key(other, key) == value, key + " = " + value + " reads as " + get_key(other, key));
  }
  hold(same(config, other), "a key that was set to what it is has changed another");
}

std::vector<std::string> toml_seeds() {
  return {
      to_toml(ExperimentConfig{}),
      "base = \"tiny-enwik8\"\n[train]\nsteps = 7\nlearning_rate = 1e-3\n",
      "# a comment\nname = 'x'\n[model]\nlayers = 0x10\nwidth = 1_000\n[attention]\n[routing]\npreset = \"paper\"\n",
      "train.steps = 5\ntrain.seed = 9223372036854775807\ndata.path = \"\"\"\na\nb\"\"\"\n",
      "[train]\nprecision = \"bf16\"\nlearning_rate = inf\nclip = nan\n",
      "base = \"no-such\"\n",
      "[model]\nbands = \"20000,60000\"\n[data]\nsplit = \"90%/5%/rest\"\npath = \"/a/\\u00e9\"\n"};
}

std::vector<std::string> settings_seeds() {
  std::string all;
  const ExperimentConfig config;
  for (const std::string& key : experiment_keys()) all += key + "=" + get_key(config, key) + "\n";
  return {all,
          "train.steps=10\nmodel.layers=2\n",
          "routing.preset=paper\nmodel.heads=4\n",
          "lr=1e-3\n",
          "ROUTING_TRAIN_STEPS=5\nROUTING_ISA=avx2\ndata.split=90%/5%/rest\n",
          "data.split=90000000/5000000/5000000\nmodel.bands=20000,60000\ndata.path=a\n"};
}

}  // namespace

FuzzTarget toml_target() {
  return {"toml", run_toml, toml_seeds, 512};
}
FuzzTarget settings_target() {
  return {"settings", run_settings, settings_seeds, 256};
}

}  // namespace routing::fuzz
