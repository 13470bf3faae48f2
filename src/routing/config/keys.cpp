#include "routing/config/keys.h"

#include "routing/config/text/other_names.h"
#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#include <utility>

namespace routing {
namespace {

const std::string kRoutingPresetDescription =
    "resets all of routing.* except clusters and window: paper, code or ours; cannot be read";

const ConfigKey<ExperimentConfig>& known_key(std::string_view name) {
  if (const auto* const key = find_key(experiment_key_table(), name)) return *key;
  const std::string guess = did_you_mean_key(name);
  throw ConfigError("unknown configuration key '" + std::string(name) + "'; " +
                    (guess.empty() ? "docs/configuration.md lists them" : guess));
}

void apply_routing_preset(RoutingSettings& settings, const std::string& value) {
  const RoutingPreset preset = parse_word<RoutingPreset>(value, kRoutingPresetKey);
  settings = routing_preset(
      preset,
      {.heads = settings.group.heads, .clusters = settings.routing().clusters, .window = settings.routing().window});
  // As the window, which may still be set after this.
  settings.group.max_relative = 0;
}

}  // namespace

std::string did_you_mean_key(std::string_view name) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = experiment_keys();
    list.emplace_back(kRoutingPresetKey);
    return list;
  }();
  // Someone who writes `steps` or `model.steps` means train.steps, which is far away letter by letter.
  const std::string last = "." + std::string(name.substr(name.rfind('.') + 1));
  for (const std::string& key : names) {
    if (key.ends_with(last)) return did_you_mean(key, {key});
  }
  if (const std::string key(key_called(name)); !key.empty()) return did_you_mean(key, {key});
  const std::string guess = did_you_mean(name, names);
  return guess.empty() ? did_you_mean(last.substr(1), names) : guess;
}

const std::vector<std::string>& experiment_keys() {
  static const std::vector<std::string> names = names_of(experiment_key_table());
  return names;
}

std::string get_key(const ExperimentConfig& config, std::string_view key) {
  require<ConfigError>(key != kRoutingPresetKey, kRoutingPresetKey,
                       " cannot be read, because it stands for all of routing.*; read those");
  return known_key(key).get(config);
}

void set_key(ExperimentConfig& config, std::string_view key, const std::string& value) {
  if (key == kRoutingPresetKey) {
    apply_routing_preset(config.routing, value);
  } else {
    known_key(key).set(config, value);
  }
}

const std::string& key_description(std::string_view key) {
  return key == kRoutingPresetKey ? kRoutingPresetDescription : known_key(key).description;
}

void apply_settings(ExperimentConfig& config, const std::vector<KeySetting>& settings) {
  ExperimentConfig changed = config;
  const auto apply = [&](const KeySetting& setting) {
    try {
      set_key(changed, setting.key, setting.value);
    } catch (const ConfigError& error) {
      throw ConfigError(setting.origin + ": " + error.what());
    }
  };
  for (const KeySetting& setting : settings) {
    if (setting.key == kRoutingPresetKey) apply(setting);
  }
  for (const KeySetting& setting : settings) {
    if (setting.key != kRoutingPresetKey) apply(setting);
  }
  config = std::move(changed);
}

}  // namespace routing
