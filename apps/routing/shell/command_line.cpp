#include "shell/command_line.h"

#include "routing/config/keys.h"
#include "routing/core/nearest_name.h"
#include "shell/habits.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace routing {
namespace {

constexpr std::size_t kNameColumn = 24;
constexpr std::size_t kTextColumn = 50;
constexpr const char* kHelpGroup = "Help";

// From the program down to the command.
std::vector<const CLI::App*> chain_of(const CLI::App& app) {
  std::vector<const CLI::App*> chain;
  for (const CLI::App* link = &app; link != nullptr; link = link->get_parent()) chain.insert(chain.begin(), link);
  return chain;
}

bool is_help_or_version(const CLI::App& app, const CLI::Option* option) {
  return option == app.get_help_ptr() || option == app.get_version_ptr();
}

// The options that a command understands: its own, then those of the commands above it. Of the help options only its
// own.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (app == &command || !is_help_or_version(*app, option)) options.push_back(option);
    }
  }
  return options;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string names_and_value(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  std::string text;
  for (const std::string& name : option.get_snames()) text += (text.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) text += (text.empty() ? "--" : ", --") + name;
  // Behind a colon CLI11 lists the words that are allowed; the description says them already.
  const std::string type = option.get_type_name();
  const std::string value = type.substr(0, type.find(':'));
  return value.empty() ? text : text + " " + value;
}

std::string usage_line(const CLI::App& app) {
  std::string line = "Usage: " + full_name(app);
  if (!subcommands_of(app).empty()) line += " COMMAND";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required()) line += " " + names_and_value(*option);
  }
  return line + " [options]\n";
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string command_list(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : subcommands_of(app)) {
    text += "  " + padded(command->get_name(), kNameColumn) + first_line(command->get_description()) + "\n";
  }
  return text.empty() ? text : "\nCommands\n" + text;
}

std::string option_line(const CLI::Option& option) {
  std::string line = "  " + padded(names_and_value(option), kNameColumn);
  if (option.get_required()) return line + padded(option.get_description(), kTextColumn) + "(required)\n";
  const std::string default_value = option.get_default_str();
  if (default_value.empty()) return line + option.get_description() + "\n";
  return line + padded(option.get_description(), kTextColumn) + "(" + default_value + ")\n";
}

std::string option_groups(const CLI::App& app) {
  const std::vector<const CLI::Option*> options = options_of(app);
  const auto group_of = [&](const CLI::Option* option) {
    return is_help_or_version(app, option) ? std::string(kHelpGroup) : option->get_group();
  };
  std::vector<std::string> groups;
  for (const CLI::Option* option : options) {
    if (std::find(groups.begin(), groups.end(), group_of(option)) == groups.end()) groups.push_back(group_of(option));
  }
  // Help comes first in CLI11's order; readers look for it last.
  std::stable_partition(groups.begin(), groups.end(), [](const std::string& group) { return group != kHelpGroup; });
  std::string text;
  for (const std::string& group : groups) {
    text += "\n" + group + "\n";
    for (const CLI::Option* option : options) {
      if (group_of(option) == group) text += option_line(*option);
    }
  }
  return text;
}

std::string with_guess(const std::string& message, const std::string& name,
                       const std::vector<std::string>& candidates) {
  const std::string guess = did_you_mean(name, candidates);
  return guess.empty() ? message : message + "; " + guess;
}

std::string list_help_hint(const CLI::App& command) {
  return full_name(command) + " --help  lists what there is";
}

// Begins a message: "analyze patterns: "; nothing for the program itself, which every message names already.
std::string message_start(const CLI::App& command) {
  const std::string program = full_name(*chain_of(command).front());
  return command.get_parent() == nullptr ? "" : full_name(command).substr(program.size() + 1) + ": ";
}

const CLI::Option* find_option(const std::string& name, const CLI::App& command) {
  for (const CLI::App* app : chain_of(command)) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

UsageError unknown_option(const std::string& argument, const CLI::App& command) {
  const std::string name = argument.substr(0, argument.find('='));
  const std::string message = message_start(command) + "unknown option '" + name + "'";
  std::vector<std::string> candidates;
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& known : option->get_lnames()) candidates.push_back("--" + known);
  }
  const auto has = [&](const std::string& option) {
    return std::find(candidates.begin(), candidates.end(), option) != candidates.end();
  };
  if (const HabitAnswer answer = answer_to_habit(name, has); !answer.message.empty()) {
    return {message + "; " + answer.message, answer.hint.empty() ? list_help_hint(command) : answer.hint};
  }
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::vector<std::string> bare_candidates;
  for (const std::string& known : candidates) bare_candidates.push_back(known.substr(2));
  const std::vector<std::string> near = near_names(bare, bare_candidates);
  if (!near.empty()) return {message + "; did you mean '--" + near.front() + "'?", list_help_hint(command)};
  std::string key = bare;
  std::replace(key.begin(), key.end(), '-', '_');
  const std::string guess = has("--set") ? did_you_mean_key(key) : "";
  if (!guess.empty()) return {message + "; of the configuration keys, " + guess, "--set KEY=VALUE sets a key"};
  return {message, list_help_hint(command)};
}

UsageError unknown_word(const std::string& word, const CLI::App& command) {
  std::vector<std::string> candidates;
  for (const CLI::App* known : subcommands_of(command)) candidates.push_back(known->get_name());
  if (candidates.empty()) {
    const bool reads_data = find_option("--data", command) != nullptr;
    return {message_start(command) + "unexpected argument '" + word + "'",
            reads_data ? "data are named by --data PATH, several by one each" : list_help_hint(command)};
  }
  return {with_guess(message_start(command) + "unknown command '" + word + "'", word, candidates),
          list_help_hint(command)};
}

// CLI11 begins such messages with the name of the option: "--n: 1 required N missing"; in one of them without dashes.
// What is all in capitals has none: an argument such as RUN.
std::string option_in(const CLI::ParseError& error) {
  const std::string message = error.what();
  const std::string name = message.substr(0, message.find_first_of(": "));
  const bool is_argument =
      std::all_of(name.begin(), name.end(), [](char letter) { return letter >= 'A' && letter <= 'Z'; });
  return name.starts_with("-") || is_argument ? name : "--" + name;
}

std::string what_is_missing(const std::string& name, const CLI::Option* option) {
  if (name == "RUN") return name + " is missing: the folder that routing train --out wrote";
  if (name.starts_with("-") || option == nullptr) return name + " is missing";
  return name + " is missing: " + option->get_description();
}

std::string what_is_wrong_with_values(const CLI::Option* option) {
  if (option != nullptr && option->get_expected_max() == 0) return " takes no value";
  if (option != nullptr && option->count() > 1) {
    return " was given " + std::to_string(option->count()) + " times; give it once";
  }
  return " needs a value";
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/) const {
  std::string text = usage_line(*app) + "\n" + app->get_description() + "\n";
  text += command_list(*app) + option_groups(*app);
  const std::string footer = app->get_footer();
  return footer.empty() ? text : text + "\n" + footer + "\n";
}

std::string short_help(const CLI::App& app) {
  return usage_line(app) + command_list(app) + "\n" + list_help_hint(app) + "\n";
}

std::string full_name(const CLI::App& app) {
  std::string name;
  for (const CLI::App* link : chain_of(app)) name += (name.empty() ? "" : " ") + link->get_name();
  return name;
}

CLI::App& given_command(CLI::App& program) {
  CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

void refuse_unknown_arguments(CLI::App& program) {
  const std::vector<std::string> unknown = program.remaining(true);
  if (unknown.empty()) return;
  const CLI::App& command = given_command(program);
  const std::string& first = unknown.front();
  if (first.size() > 1 && first.front() == '-') throw unknown_option(first, command);
  throw unknown_word(first, command);
}

UsageError explain(const CLI::ParseError& error, CLI::App& program) {
  try {
    refuse_unknown_arguments(program);
  } catch (const UsageError& unknown) {
    return unknown;
  }
  const CLI::App& command = given_command(program);
  const std::string start = message_start(command);
  const std::string option = option_in(error);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return {start + what_is_missing(option, find_option(option, command)), list_help_hint(command)};
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return {start + option + what_is_wrong_with_values(find_option(option, command)), list_help_hint(command)};
  }
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return {start + message, list_help_hint(command)};
}

}  // namespace routing
