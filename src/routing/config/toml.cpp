#include "routing/config/toml.h"

#include "routing/config/keys.h"
#include "routing/config/presets.h"
#include "routing/config/text/path_list.h"
#include "routing/config/text/toml_keys.h"
#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#define TOML_ENABLE_FORMATTERS 0
#include <algorithm>
#include <array>
#include <toml++/toml.h>
#include <utility>

namespace routing {
namespace {

const char* wanted(ValueKind kind) {
  switch (kind) {
    case ValueKind::integer:
      return "a whole number";
    case ValueKind::real:
      return "a number";
    case ValueKind::truth:
      return "true or false";
    case ValueKind::text:
    case ValueKind::path:
      return "text in quotes";
    case ValueKind::paths:
      return "text in quotes or a list of such";
    case ValueKind::scale:
      return "a number or \"1/sqrt(head_dim)\"";
  }
  return "";
}

const char* found(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::string:
      return "text";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a section";
    default:
      return "a date or time";
  }
}

bool fits(ValueKind kind, const toml::node& node) {
  switch (kind) {
    case ValueKind::integer:
      return node.is_integer();
    case ValueKind::real:
      return node.is_number();
    case ValueKind::truth:
      return node.is_boolean();
    case ValueKind::text:
    case ValueKind::path:
      return node.is_string();
    case ValueKind::paths:
      return node.is_string() || (node.is_array() && (node.as_array()->empty() ||
                                                      node.as_array()->is_homogeneous(toml::node_type::string)));
    case ValueKind::scale:
      return node.is_number() || node.is_string();
  }
  return false;
}

std::string text_of(const toml::node& node) {
  if (const auto* const text = node.as_string()) return text->get();
  if (const auto* const list = node.as_array()) {
    std::vector<std::string> paths;
    for (const toml::node& path : *list) paths.push_back(path.as_string()->get());
    return path_list(paths);
  }
  if (const auto* const whole = node.as_integer()) return key_text::text_of(whole->get());
  if (const auto* const real = node.as_floating_point()) return key_text::text_of(real->get());
  return key_text::text_of(node.as_boolean()->get());
}

// Keys that are gone, each with the only value that files may still give it: what the program does without the key.
struct RetiredKey {
  std::string_view name, value;
};
constexpr std::array kRetiredKeys{RetiredKey{"routing.fallback", "argmax"}, RetiredKey{"routing.commit_to", "argmax"},
                                  RetiredKey{"attention.convolution", "0"}};

std::string section_of(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

const std::vector<std::string>& sections() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const std::string& key : experiment_keys()) {
      const std::string section = section_of(key);
      if (!section.empty() && (list.empty() || list.back() != section)) list.push_back(section);
    }
    return list;
  }();
  return names;
}

bool is_section(const std::string& name) {
  return std::find(sections().begin(), sections().end(), name) != sections().end();
}

// Collects what the tables of one file set, in order of their names.
class Reader {
 public:
  // Relative paths are seen from `folder`; as they are if that is empty.
  Reader(std::string origin, std::filesystem::path folder) : origin_(std::move(origin)), folder_(std::move(folder)) {}

  void read(const toml::table& table, const std::string& section) {
    for (const auto& [key, node] : table) {
      const std::string name = (section.empty() ? "" : section + ".") + std::string(key.str());
      const std::string place = origin_ + ":" + std::to_string(key.source().begin.line);
      if (name == kBaseKey) {
        require<ConfigError>(node.is_string(), place, ": base must be text in quotes, the name of a preset, but is ",
                             found(node));
        base = text_of(node);
        base_place = place;
      } else if (const toml::table* const inner = node.as_table(); inner != nullptr && known_section(place, name)) {
        read(*inner, name);
      } else {
        read_value(place, name, node);
      }
    }
  }

  std::vector<KeySetting> settings;
  std::string base;  // the preset the file starts from; empty if it names none
  std::string base_place;

 private:
  static constexpr const char* kBaseKey = "base";

  static bool known_section(const std::string& place, const std::string& name) {
    if (is_section(name)) return true;
    if (find_key(experiment_key_table(), name) != nullptr) return false;
    const std::string guess = did_you_mean(name, sections());
    throw ConfigError(place + ": unknown section [" + name + "]; " +
                      (guess.empty() ? "docs/configuration.md lists them" : guess));
  }

  void read_value(const std::string& place, const std::string& name, const toml::node& node) {
    require<ConfigError>(!is_section(name), place, ": ", name, " is a section, but the file gives it ", found(node),
                         "; write [", name, "] and its keys below");
    const auto* const key = find_key(experiment_key_table(), name);
    if (key != nullptr || name == kRoutingPresetKey) {
      const ValueKind kind = key != nullptr ? key->kind : ValueKind::text;
      require<ConfigError>(fits(kind, node), place, ": ", name, " must be ", wanted(kind), ", but the file gives it ",
                           found(node));
      const bool from_folder = (kind == ValueKind::path || kind == ValueKind::paths) && !folder_.empty();
      settings.push_back({name, from_folder ? paths_from(text_of(node), folder_) : text_of(node), place});
    } else if (!is_retired(place, name, node)) {
      settings.push_back({name, "", place});  // unknown: setting it says so
    }
  }

  // Models that were saved with such a key still open, if they do not depend on it.
  static bool is_retired(const std::string& place, const std::string& name, const toml::node& node) {
    const auto* const key = std::find_if(kRetiredKeys.begin(), kRetiredKeys.end(),
                                         [&](const RetiredKey& retired) { return retired.name == name; });
    if (key == kRetiredKeys.end()) return false;
    const std::string value = node.is_string() || node.is_number() ? text_of(node) : found(node);
    require<ConfigError>(value == key->value, place, ": ", name, " is gone and was ", key->value,
                         " for all that is left, but the file gives it ", value, "; CHANGELOG.md says why");
    return true;
  }

  std::string origin_;
  std::filesystem::path folder_;
};

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result += {'\\', character};
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr std::array digits{'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
      result += {'\\', 'u', '0', '0', digits[byte / 16U], digits[byte % 16U]};
    } else {
      result += character;
    }
  }
  return result + "\"";
}

// TOML tells whole numbers from others by their looks.
std::string as_real(const std::string& number) {
  return number.find_first_of(".en") == std::string::npos ? number + ".0" : number;
}

std::string as_toml(ValueKind kind, const std::string& value) {
  if (kind == ValueKind::real) return as_real(value);
  if (kind == ValueKind::scale && value != kInverseRoot) return as_real(value);
  if (const std::vector<std::string> paths = paths_in(value); kind == ValueKind::paths && paths.size() > 1) {
    std::string list;
    for (const std::string& path : paths) list += (list.empty() ? "[" : ", ") + quoted(path);
    return list + "]";
  }
  return kind == ValueKind::integer || kind == ValueKind::truth ? value : quoted(value);
}

Reader read_file(const std::string& text, const std::string& origin, const std::filesystem::path& folder = {}) {
  Reader reader(origin, folder);
  constexpr std::size_t kDeepestKey = 64;
  const std::optional<std::size_t> deep = line_of_deep_key(text, kDeepestKey);
  require<ConfigError>(!deep, origin, ":", deep.value_or(0), ": a key has more than ", kDeepestKey,
                       " parts; no configuration has such keys");
  const std::optional<std::size_t> stray = line_of_stray_letter(text);
  require<ConfigError>(!stray, origin, ":", stray.value_or(0),
                       ": a letter that is not ASCII stands outside of quotes and comments, or in quotes behind a ",
                       "backslash; write it in quotes, with a text that goes on behind a backslash on one line");
  try {
    reader.read(toml::parse(text), "");
  } catch (const toml::parse_error& error) {
    throw ConfigError(origin + ":" + std::to_string(error.source().begin.line) +
                      ": not TOML: " + std::string(error.description()));
  }
  return reader;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " -> ") + name;
  return text;
}

}  // namespace

void apply_toml(ExperimentConfig& config, const std::string& text, const std::string& origin,
                const TomlSurroundings& around) {
  std::vector<Reader> chain{read_file(text, origin, around.folder)};
  std::vector<std::string> names;
  while (!chain.back().base.empty()) {
    const std::string name = chain.back().base;
    const std::string place = chain.back().base_place;
    const bool again = std::find(names.begin(), names.end(), name) != names.end();
    names.push_back(name);
    require<ConfigError>(!again, place, ": base = ", quoted(name), " leads back to itself (", joined(names),
                         "); one of them must start from nothing");
    std::string found_text;
    try {
      found_text = around.presets ? around.presets(name) : preset_text(name);
    } catch (const ConfigError& error) {
      throw ConfigError(place + ": base: " + error.what());
    }
    chain.push_back(read_file(found_text, "preset " + name));
  }
  ExperimentConfig changed = names.empty() ? config : ExperimentConfig{};
  for (auto file = chain.rbegin(); file != chain.rend(); ++file) apply_settings(changed, file->settings);
  config = std::move(changed);
}

std::string base_of_toml(const std::string& text, const std::string& origin) {
  return read_file(text, origin).base;
}

std::string to_toml(const ExperimentConfig& config) {
  std::string text;
  std::string section;
  for (const ConfigKey<ExperimentConfig>& key : experiment_key_table()) {
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      text += "\n[" + section + "]\n";
    }
    text +=
        key.name.substr(section.empty() ? 0 : section.size() + 1) + " = " + as_toml(key.kind, key.get(config)) + "\n";
  }
  return text;
}

}  // namespace routing
