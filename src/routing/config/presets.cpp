#include "routing/config/presets.h"

#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#include <functional>
#include <map>

namespace routing {
namespace {

using PresetMap = std::map<std::string, std::string, std::less<>>;

const PresetMap& presets() {
  static const PresetMap map = [] {
    PresetMap result;
    for (auto& [name, text] : embedded_presets()) result.emplace(name, text);
    return result;
  }();
  return map;
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, text] : presets()) list.push_back(name);
    return list;
  }();
  return names;
}

const std::string& preset_text(std::string_view name) {
  const auto found = presets().find(name);
  if (found != presets().end()) return found->second;
  const std::string guess = did_you_mean(name, preset_names());
  throw ConfigError("preset: '" + std::string(name) + "' is not known; " + guess + (guess.empty() ? "" : " ") +
                    "`routing presets` lists all");
}

std::string preset_summary(std::string_view name) {
  const std::string& text = preset_text(name);
  const std::string line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : "";
}

}  // namespace routing
