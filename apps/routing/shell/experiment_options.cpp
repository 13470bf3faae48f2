#include "shell/experiment_options.h"

#include "routing/config/resolve.h"
#include "routing/data/prepared.h"
#include "shell/options.h"

#include <algorithm>
#include <string>
#include <vector>

namespace routing {

void add_experiment_options(CLI::App& app, ExperimentOptions& options) {
  OptionGroup model(app, "Model");
  model.add({"--preset PRESET", "named experiment to start from; `routing presets` lists them"}, options.preset);
  model.add({"--config FILE", "TOML file with configuration keys"}, options.file);
  model.add(kSettingsOption, options.settings);
  OptionGroup run_group(app, "Run");
  std::vector<std::string>& given = options.short_settings;
  run_group.add_paths(
      {"--data PATH",
       "any file, read as bytes; folder of texts; data set; 'code/**/*.c'; - for a pipe. Texts: repeatable"},
      options.data);
  run_group.flag(kRequireWholeFlag, options.require_whole);
  run_group.add_key({"--steps N", "optimiser steps of the whole run"}, "train.steps", given);
  run_group.add_key({"--minutes M", "end after M minutes of the whole run, resumed parts included"}, "train.minutes",
                    given);
  run_group.add_key({"--seed N", "fixes weights, data order and dropout"}, "train.seed", given);
  run_group.add_key({"--precision P", "of matrix products: fp32, bf16, or auto for what is fastest here"},
                    "train.precision", given);
}

bool ExperimentOptions::sets(const std::string& key) const {
  const auto names_it = [&](const std::string& setting) { return setting.starts_with(key + "="); };
  const auto environment = routing_environment();
  return std::any_of(settings.begin(), settings.end(), names_it) ||
         std::any_of(short_settings.begin(), short_settings.end(), names_it) ||
         std::any_of(environment.begin(), environment.end(),
                     [&](const auto& variable) { return variable.first == variable_of_key(key); });
}

std::string ExperimentOptions::short_setting(const std::string& key) const {
  for (const std::string& setting : short_settings) {
    if (setting.starts_with(key + "=")) return setting.substr(key.size() + 1);
  }
  return "";
}

namespace {

ConfigSources sources_of(const ExperimentOptions& options) {
  ConfigSources sources{.preset = options.preset,
                        .file = options.file,
                        .environment = routing_environment(),
                        .settings = options.settings};
  // Who widens a model by the short name wants it wider everywhere.
  const std::string width = options.short_setting("model.width");
  const bool is_number =
      !width.empty() && width.size() < 10 && width.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && !options.sets("model.feedforward_width")) {
    sources.settings.push_back("model.feedforward_width=" + std::to_string(4 * std::stoll(width)));
  }
  if (options.require_whole) sources.settings.emplace_back("data.require_whole=true");
  if (!options.data.empty()) sources.settings.push_back("data.path=" + options.data);
  sources.settings.insert(sources.settings.end(), options.short_settings.begin(), options.short_settings.end());
  return sources;
}

ExperimentConfig with_whole_paths(ExperimentConfig config) {
  for (std::string* path : {&config.data.path, &config.data.vocabulary, &config.data.cache}) *path = tidy_paths(*path);
  return config;
}

}  // namespace

ExperimentConfig resolve_experiment(const ExperimentOptions& options) {
  return with_whole_paths(resolve(sources_of(options)));
}

ExperimentConfig wanted_experiment(const ExperimentOptions& options) {
  return with_whole_paths(read_sources(sources_of(options)));
}

}  // namespace routing
