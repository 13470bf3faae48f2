// Every field of an experiment as a dotted key with a text value, such as train.steps = "1000".
#pragma once

#include "routing/config/experiment.h"
#include "routing/config/key_table.h"

#include <string>
#include <string_view>
#include <vector>

namespace routing {

// In the order of a configuration file: keys of one section stand together.
const std::vector<ConfigKey<ExperimentConfig>>& experiment_key_table();
const std::vector<std::string>& experiment_keys();

// An unknown key is a ConfigError that names the nearest.
std::string get_key(const ExperimentConfig& config, std::string_view key);
// Throws a ConfigError that names the nearest key or word, or says what the value must be. One key more than can be
// read: routing.preset = paper, code or ours resets all of routing.* except clusters and window, for causal text.
void set_key(ExperimentConfig& config, std::string_view key, const std::string& value);
// "did you mean 'train.learning_rate'?" for `lr`, `learning_rate`, `model.learning_rat`; empty if no key is near.
std::string did_you_mean_key(std::string_view name);
// One line, for help and documents.
const std::string& key_description(std::string_view key);

inline constexpr const char* kRoutingPresetKey = "routing.preset";

// A key with its new value, and where that was written: errors begin with it.
struct KeySetting {
  std::string key;
  std::string value;
  std::string origin;
};

// Settings of one source. routing.preset goes first wherever it stands, then the others in order. If one is wrong,
// none is applied.
void apply_settings(ExperimentConfig& config, const std::vector<KeySetting>& settings);

}  // namespace routing
