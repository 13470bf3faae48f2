#include "help/completion_values.h"

#include "help/run_paths.h"
#include "routing/config/keys.h"
#include "routing/config/presets.h"
#include "shell/help_text.h"
#include "shell/key_values.h"
#include "shell/options.h"

#include <algorithm>

namespace routing {
namespace {

std::vector<Completion> words_from(const std::vector<std::string>& words, const std::string& before,
                                   const std::string& typed) {
  std::vector<Completion> found;
  for (const std::string& word : words) {
    if (word.starts_with(typed)) found.push_back({before + word, ""});
  }
  return found;
}

std::vector<Completion> presets_from(const std::string& before, const std::string& typed) {
  std::vector<Completion> found = words_from(preset_names(), before, typed);
  for (Completion& each : found) each.description = preset_summary(each.word.substr(before.size()));
  return found;
}

std::string section_of(const std::string& key) {
  return key.substr(0, key.find('.') + 1);
}

// "train." first, because all keys are more than a screen; then "train.steps="; then values.
Completions complete_setting(const std::string& before, const std::string& typed) {
  if (const std::size_t equals = typed.find('='); equals != std::string::npos) {
    const std::string name = typed.substr(0, equals);
    const auto* const key = find_key(experiment_key_table(), name);
    const bool path = key != nullptr && (key->kind == ValueKind::path || key->kind == ValueKind::paths);
    return {.words = words_from(key_values(name), before + name + "=", typed.substr(equals + 1)),
            .paths = path ? ShellPaths::files : ShellPaths::none};
  }
  std::vector<std::string> keys = experiment_keys();
  keys.emplace_back(kRoutingPresetKey);
  const bool in_section = typed.find('.') != std::string::npos;
  Completions answer;
  std::vector<std::string> sections;
  for (const std::string& key : keys) {
    if (!key.starts_with(typed)) continue;
    const std::string section = section_of(key);
    if (in_section || section.empty()) {
      answer.words.push_back({before + key + "=", key_description(key)});
    } else if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      sections.push_back(section);
      answer.words.push_back({before + section, ""});
    }
  }
  return answer;
}

Completions complete_run(const std::string& before, const std::string& typed) {
  Completions answer;
  for (const std::string& path : run_paths(typed)) answer.words.push_back({before + path, ""});
  // Where no run is found, the way to one may still be typed.
  if (answer.words.empty()) answer.paths = ShellPaths::folders;
  return answer;
}

}  // namespace

Completions complete_value(const CLI::Option& option, const std::string& before, const std::string& typed) {
  if (const std::vector<std::string> words = offered_words(option); !words.empty()) {
    const std::size_t start = option.get_delimiter() == ',' ? typed.rfind(',') + 1 : 0;
    return {.words = words_from(words, before + typed.substr(0, start), typed.substr(start))};
  }
  const std::string value = value_name(option);
  if (value == "KEY=VALUE") return complete_setting(before, typed);
  if (value == "PRESET") return {.words = presets_from(before, typed)};
  if (value == "RUN" || value == "RUN2") return complete_run(before, typed);
  if (value == "FILE" || value == "PATH") return {.paths = ShellPaths::files};
  if (value == "DIR") return {.paths = ShellPaths::folders};
  return {};
}

}  // namespace routing
