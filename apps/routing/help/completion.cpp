#include "help/completion.h"

#include "help/completion_values.h"
#include "shell/help_text.h"

#include <algorithm>

namespace routing {
namespace {

bool takes_a_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

bool may_be_repeated(const CLI::Option& option) {
  return option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
}

// What the words before the last one say.
struct Situation {
  const CLI::App* command = nullptr;
  std::vector<const CLI::Option*> given = {};
  std::size_t arguments = 0;             // without dashes
  const CLI::Option* awaited = nullptr;  // whose value comes next
  bool only_arguments = false;           // behind --
};

bool looks_like_an_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

void read_option(Situation& now, const std::string& word) {
  const std::size_t equals = word.find('=');
  const bool is_long = word.starts_with("--");
  // -n5 is -n with its value.
  const std::string name = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const CLI::Option* const option = find_option(name, *now.command);
  if (option == nullptr) return;
  now.given.push_back(option);
  const bool has_value = is_long ? equals != std::string::npos : word.size() > 2;
  if (!has_value && takes_a_value(*option)) now.awaited = option;
}

void read_word(Situation& now, const std::string& word) {
  const CLI::Option* const awaited = now.awaited;
  now.awaited = nullptr;
  if (awaited != nullptr && (awaited->get_expected_min() > 0 || !looks_like_an_option(word))) return;
  if (!now.only_arguments && word == "--") {
    now.only_arguments = true;
  } else if (!now.only_arguments && looks_like_an_option(word)) {
    read_option(now, word);
  } else {
    for (const CLI::App* below : commands_of(*now.command)) {
      if (below->get_name() != word) continue;
      now.command = below;
      return;
    }
    ++now.arguments;
  }
}

// The one at this place; of a list of them, all from its first on.
const CLI::Option* argument_at(const CLI::App& command, std::size_t place) {
  std::size_t next = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    if (next++ == place || option->get_items_expected_max() > 1) return option;
  }
  return nullptr;
}

std::vector<Completion> option_names(const Situation& now, const std::string& word) {
  std::vector<Completion> names;
  for (const CLI::Option* option : options_of(*now.command)) {
    const bool is_given = std::find(now.given.begin(), now.given.end(), option) != now.given.end();
    if (is_given && !may_be_repeated(*option)) continue;
    for (const std::string& name : dashed_names(*option)) {
      if (name.starts_with(word)) names.push_back({name, option->get_description()});
    }
  }
  return names;
}

std::vector<Completion> command_names(const CLI::App& command, const std::string& word) {
  std::vector<Completion> names;
  for (const CLI::App* below : commands_of(command)) {
    if (below->get_name().starts_with(word)) names.push_back({below->get_name(), summary_of(*below)});
  }
  return names;
}

Completions argument_or_command(const Situation& now, const std::string& word) {
  if (!commands_of(*now.command).empty()) return {.words = command_names(*now.command, word)};
  const CLI::Option* const argument = argument_at(*now.command, now.arguments);
  return argument == nullptr ? Completions{} : complete_value(*argument, "", word);
}

}  // namespace

Completions complete(const CLI::App& program, const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : words.back();
  Situation now{.command = &program};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) read_word(now, words[i]);
  const bool is_option = !now.only_arguments && word.starts_with("-");
  if (now.awaited != nullptr && (now.awaited->get_expected_min() > 0 || !is_option)) {
    Completions values = complete_value(*now.awaited, "", word);
    const bool may_be_left_out = now.awaited->get_expected_min() == 0;
    if (!may_be_left_out || !values.words.empty()) return values;
  }
  if (is_option) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return {.words = option_names(now, word)};
    const CLI::Option* const option = find_option(word.substr(0, equals), *now.command);
    if (option == nullptr || !takes_a_value(*option)) return {};
    return complete_value(*option, word.substr(0, equals + 1), word.substr(equals + 1));
  }
  Completions answer = argument_or_command(now, word);
  const bool nothing = answer.words.empty() && answer.paths == ShellPaths::none;
  if (nothing && word.empty() && !now.only_arguments) answer.words = option_names(now, "--");
  return answer;
}

std::string to_text(const Completions& completions) {
  std::string text;
  for (const Completion& each : completions.words) {
    text += each.word + (each.description.empty() ? "" : "\t" + each.description) + "\n";
  }
  switch (completions.paths) {
    case ShellPaths::files:
      return text + ":files\n";
    case ShellPaths::folders:
      return text + ":folders\n";
    case ShellPaths::none:
      break;
  }
  return text + ":none\n";
}

}  // namespace routing
