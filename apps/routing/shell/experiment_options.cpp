#include "shell/experiment_options.h"

#include "routing/config/resolve.h"
#include "routing/data/prepared.h"
#include "shell/options.h"

#include <string>
#include <vector>

namespace routing {

void add_experiment_options(CLI::App& app, ExperimentOptions& options) {
  OptionGroup model(app, "Model");
  model.add({"--preset NAME", "named experiment to start from; `routing presets` lists them"}, options.preset);
  model.add({"--config FILE", "TOML file with configuration keys"}, options.file);
  model.add(kSettingsOption, options.settings);
  OptionGroup run_group(app, "Run");
  std::vector<std::string>& given = options.short_settings;
  run_group.add_paths(
      {"--data PATH",
       "any file, read as bytes; folder of texts; data set; 'code/**/*.c'; - for a pipe. Texts: repeatable"},
      options.data);
  run_group.flag(kRequireWholeFlag, options.require_whole);
  run_group.add_key({"--steps N", "optimiser steps"}, "train.steps", given);
  run_group.add_key({"--minutes M", "stop after M minutes, state saved"}, "train.minutes", given);
  run_group.add_key({"--seed N", "fixes weights, data order and dropout"}, "train.seed", given);
  run_group.add_key({"--precision P", "of matrix products: fp32, bf16, or auto for what is fastest here"},
                    "train.precision", given);
}

ExperimentConfig resolve_experiment(const ExperimentOptions& options) {
  ConfigSources sources{.preset = options.preset,
                        .file = options.file,
                        .environment = routing_environment(),
                        .settings = options.settings};
  if (options.require_whole) sources.settings.emplace_back("data.require_whole=true");
  if (!options.data.empty()) sources.settings.push_back("data.path=" + options.data);
  sources.settings.insert(sources.settings.end(), options.short_settings.begin(), options.short_settings.end());
  ExperimentConfig config = resolve(sources);
  for (std::string* path : {&config.data.path, &config.data.vocabulary, &config.data.cache}) *path = tidy_paths(*path);
  return config;
}

}  // namespace routing
