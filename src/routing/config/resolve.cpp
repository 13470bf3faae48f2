#include "routing/config/resolve.h"

#include "routing/config/keys.h"
#include "routing/config/presets.h"
#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <unistd.h>

namespace routing {
namespace {

constexpr std::string_view kPrefix = "ROUTING_";

std::string contents_of(const std::filesystem::path& path) {
  require<FileError>(!std::filesystem::is_directory(path), path.string(),
                     ": a folder, but a configuration is a TOML file; name the file");
  std::ifstream file(path, std::ios::binary);
  require<FileError>(file.is_open(), path.string(), ": cannot be opened; name a TOML file that exists and may be read");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  require<FileError>(!file.bad(), path.string(), ": cannot be read to its end");
  return text;
}

const std::vector<std::string>& settable_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> list = experiment_keys();
    list.emplace_back(kRoutingPresetKey);
    return list;
  }();
  return keys;
}

// Of settable_keys(), in their order.
const std::vector<std::string>& variables_of_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const std::string& key : settable_keys()) list.push_back(variable_of_key(key));
    return list;
  }();
  return names;
}

std::string key_of_variable(const std::string& variable) {
  const std::vector<std::string>& variables = variables_of_keys();
  const auto known = std::find(variables.begin(), variables.end(), variable);
  if (known != variables.end()) return settable_keys()[static_cast<std::size_t>(known - variables.begin())];
  // The section routing is easily taken for the prefix, which looks the same.
  const std::string with_section = std::string(kPrefix) + variable;
  const bool lacks_section = std::find(variables.begin(), variables.end(), with_section) != variables.end();
  const std::string guess = lacks_section ? "did you mean '" + with_section + "'?" : did_you_mean(variable, variables);
  throw ConfigError("environment: " + variable + " is not the variable of a configuration key; " + guess +
                    (guess.empty() ? "unset it" : " Otherwise unset it"));
}

std::vector<KeySetting> settings_of_environment(const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<KeySetting> settings;
  for (const auto& [variable, value] : environment) {
    const auto& reserved = reserved_variables();
    if (!variable.starts_with(kPrefix)) continue;
    if (std::find(reserved.begin(), reserved.end(), variable) != reserved.end()) continue;
    settings.push_back({key_of_variable(variable), value, "environment " + variable});
  }
  return settings;
}

std::vector<KeySetting> settings_of_options(const std::vector<std::string>& options) {
  std::vector<KeySetting> settings;
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    require<ConfigError>(equals != std::string::npos, "`settings` ", option,
                         ": there is no '='; write KEY=VALUE, such as train.steps=200");
    settings.push_back({option.substr(0, equals), option.substr(equals + 1), "`settings` " + option});
  }
  return settings;
}

}  // namespace

std::string variable_of_key(const std::string& key) {
  std::string variable(kPrefix);
  for (const char letter : key) {
    const bool small = letter >= 'a' && letter <= 'z';
    variable += letter == '.' ? '_' : small ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return variable;
}

const std::vector<std::string>& reserved_variables() {
  static const std::vector<std::string> names{"ROUTING_ISA", "ROUTING_TEST_DATA", "ROUTING_LAUNCHED", "ROUTING_ATTEMPT",
                                              "ROUTING_KEPT_DATA"};
  return names;
}

std::vector<std::pair<std::string, std::string>> routing_environment() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(found.begin(), found.end());
  return found;
}

ExperimentConfig read_sources(const ConfigSources& sources) {
  ExperimentConfig config;
  if (!sources.preset.empty()) apply_toml(config, preset_text(sources.preset), "preset " + sources.preset);
  if (!sources.file.empty()) {
    const std::string text = contents_of(sources.file);
    const std::string base = base_of_toml(text, sources.file.string());
    require<ConfigError>(base.empty() || sources.preset.empty(), sources.file.string(), ": base = \"", base,
                         "\", but `preset` ", sources.preset, " was given too; a run starts from one of them");
    // What came through a pipe, as in --config <(…), lies nowhere.
    const bool lies_somewhere = std::filesystem::is_regular_file(sources.file);
    const std::filesystem::path folder = std::filesystem::absolute(sources.file).parent_path();
    apply_toml(config, text, sources.file.string(), {.folder = lies_somewhere ? folder : ""});
  }
  apply_settings(config, settings_of_environment(sources.environment));
  apply_settings(config, settings_of_options(sources.settings));
  return config;
}

ExperimentConfig resolve(const ConfigSources& sources) {
  ExperimentConfig config = read_sources(sources);
  validate(config);
  return config;
}

}  // namespace routing
