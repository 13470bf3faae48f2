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

void run_toml(Bytes bytes) {
  const std::string text(text_of(bytes));
  static const std::string before = to_toml(ExperimentConfig());
  ExperimentConfig config;
  line_of_deep_key(text, 16);
  takes([&] { base_of_toml(text, "mine.toml"); });
  if (!takes([&] { apply_toml(config, text, "mine.toml"); })) {
    hold(to_toml(config) == before, "a refused file has changed the configuration");
    return;
  }
  // Any configuration, written and read, is itself.
  const std::string written = to_toml(config);
  ExperimentConfig again;
  apply_toml(again, written, "written.toml");
  hold(to_toml(again) == written, "what was written reads as something else:\n" + written);
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
  for (const std::string& key : experiment_keys()) {
    ExperimentConfig other = config;
    const std::string value = get_key(config, key);
    set_key(other, key, value);
    hold(get_key(other, key) == value, key + " = " + value + " reads as " + get_key(other, key));
  }
  takes([&] { validate(config); });
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
  return {"toml", run_toml, toml_seeds};
}
FuzzTarget settings_target() {
  return {"settings", run_settings, settings_seeds};
}

}  // namespace routing::fuzz
