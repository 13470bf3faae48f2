#include "shell/experiment_options.h"

#include "routing/config/resolve.h"
#include "routing/data/prepared.h"
#include "shell/command_line.h"

#include <string>
#include <utility>

namespace routing {
namespace {

void add_short_name(CLI::App& app, ExperimentOptions& options, const std::string& name, const std::string& key,
                    const std::pair<const char*, const char*>& type_and_text) {
  app.add_option_function<std::string>(
         name, [&options, key](const std::string& value) { options.short_settings.push_back(key + "=" + value); },
         type_and_text.second)
      ->type_name(type_and_text.first)
      ->group("Run");
}

}  // namespace

void add_experiment_options(CLI::App& app, ExperimentOptions& options) {
  app.add_option("--preset", options.preset, "named experiment to start from; `routing presets` lists them")
      ->type_name("NAME")
      ->group("Model");
  app.add_option("--config", options.file, "TOML file with configuration keys")->type_name("FILE")->group("Model");
  app.add_option("--set", options.settings, "change one configuration key; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Model");
  add_short_name(app, options, "--data", "data.path",
                 {"PATH", "any file, read as bytes, or the folder of a data set: see routing data info"});
  app.add_flag("--require-whole", options.require_whole, "refuse a part of a data set instead of labelling its figures")
      ->disable_flag_override()
      ->group("Run");
  add_short_name(app, options, "--steps", "train.steps", {"N", "optimiser steps"});
  add_short_name(app, options, "--minutes", "train.minutes", {"M", "stop after M minutes, state saved"});
  add_short_name(app, options, "--seed", "train.seed", {"N", "fixes weights, data order and dropout"});
  add_short_name(app, options, "--precision", "train.precision",
                 {"P", "of matrix products: fp32, bf16, or auto for what is fastest here"});
}

ExperimentConfig resolve_experiment(const ExperimentOptions& options) {
  ConfigSources sources{.preset = options.preset,
                        .file = options.file,
                        .environment = routing_environment(),
                        .settings = options.settings};
  if (options.require_whole) sources.settings.emplace_back("data.require_whole=true");
  sources.settings.insert(sources.settings.end(), options.short_settings.begin(), options.short_settings.end());
  ExperimentConfig config = resolve(sources);
  for (std::string* path : {&config.data.path, &config.data.vocabulary, &config.data.cache}) {
    if (!path->empty()) *path = tidy_path(*path).string();
  }
  return config;
}

}  // namespace routing
