// An experiment as a TOML file: a section a part, such as [train], with its keys.
#pragma once

#include "routing/config/experiment.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace routing {

// Writes the file's values over those of the configuration; what the file does not name stays. Unknown keys and
// sections, wrong types and wrong syntax are ConfigErrors that begin with origin:line, and nothing is changed.
//
// A file whose first key is base = "NAME" starts from that preset instead, which may have a base of its own: what it
// and its bases do not name is as the defaults have it, whatever the configuration was. Bases in a circle are a
// ConfigError that names them.
struct TomlSurroundings {
  // Gives the text of a preset, or throws a ConfigError; if empty, those of presets.h.
  std::function<std::string(std::string_view name)> presets = {};
  // What relative paths of the text, not of its bases, are seen from; if empty, they stay as they are.
  std::filesystem::path folder = {};
};
void apply_toml(ExperimentConfig& config, const std::string& text, const std::string& origin,
                const TomlSurroundings& around = {});

// The preset that a file starts from; empty if it names none. Throws as apply_toml does.
std::string base_of_toml(const std::string& text, const std::string& origin);

// Every key, section by section, and no base. Applied to any configuration it gives this one back, to the last bit.
std::string to_toml(const ExperimentConfig& config);

}  // namespace routing
