// The options by which commands receive an experiment: preset, file, environment, --set, and short names for the keys
// that are typed most.
#pragma once

#include "routing/config/experiment.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct ExperimentOptions {
  std::string preset;
  std::string file;
  std::vector<std::string> settings;
  std::string data;  // a list of paths: config/text/path_list.h
  // Short names: "train.steps=…" and the like, in the order of the options; they come after --set.
  std::vector<std::string> short_settings;

  bool require_whole = false;

  bool names_a_base() const { return !preset.empty() || !file.empty(); }
  // Does --set, a short name or the environment set this key?
  bool sets(const std::string& key) const;
  // What a short name gives this key; empty if it was not given.
  std::string short_setting(const std::string& key) const;
};

// Adds --preset, --config, --set and the short names --data, --steps, --minutes, --seed, --precision.
void add_experiment_options(CLI::App& app, ExperimentOptions& options);

// Defaults < preset < file < environment < --set < short names. Relative paths of data become absolute, so that the run
// can be used from anywhere.
ExperimentConfig resolve_experiment(const ExperimentOptions& options);
// The same before a preset is chosen: only what is written is checked, not whether the keys fit each other.
ExperimentConfig wanted_experiment(const ExperimentOptions& options);

}  // namespace routing
