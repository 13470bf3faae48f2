// From all places where a configuration is written to the one that runs.
#pragma once

#include "routing/config/experiment.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace routing {

// Later ones win: defaults < preset < file < environment < settings.
struct ConfigSources {
  std::string preset = {};                                            // a name of presets/; empty means none
  std::filesystem::path file = {};                                    // TOML; empty means none; its base: toml.h
  std::vector<std::pair<std::string, std::string>> environment = {};  // as from routing_environment()
  std::vector<std::string> settings = {};                             // such as "train.steps=200"
};

// The resolved and validated configuration. Relative paths in the file are seen from its folder; those of the other
// sources stay as they are. Inside each source routing.preset goes first. Errors begin with the source:
// a ConfigError for what is written there, a FileError for a file that cannot be read.
ExperimentConfig resolve(const ConfigSources& sources);
// The same, but whether the keys fit each other is not looked at: something is still missing.
ExperimentConfig read_sources(const ConfigSources& sources);

// The variable of a key: ROUTING_, then the key in capitals with underscores for dots. train.steps ->
// ROUTING_TRAIN_STEPS.
std::string variable_of_key(const std::string& key);
// Variables that begin with ROUTING_ and are not keys, such as ROUTING_ISA; resolve() passes over them.
const std::vector<std::string>& reserved_variables();
// All variables of this process that begin with ROUTING_, by name.
std::vector<std::pair<std::string, std::string>> routing_environment();

}  // namespace routing
