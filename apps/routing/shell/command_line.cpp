#include "shell/command_line.h"

#include "routing/config/keys.h"
#include "routing/core/nearest_name.h"
#include "shell/habits.h"
#include "shell/help_text.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace routing {
namespace {

std::string with_guess(const std::string& message, const std::string& name,
                       const std::vector<std::string>& candidates) {
  const std::string guess = did_you_mean(name, candidates);
  return guess.empty() ? message : message + "; " + guess;
}

// Begins a message: "analyze patterns: "; nothing for the program itself, which every message names already.
std::string message_start(const CLI::App& command) {
  const std::string name = full_name(command);
  return command.get_parent() == nullptr ? "" : name.substr(name.find(' ') + 1) + ": ";
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
  bare_candidates.reserve(candidates.size());
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
  for (const CLI::App* known : commands_of(command)) candidates.push_back(known->get_name());
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
