#include "shell/help_text.h"

#include <algorithm>

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

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string usage_line(const CLI::App& app) {
  return "Usage: " + usage(app) + "\n";
}

std::string command_list(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : commands_of(app)) {
    text += "  " + padded(command->get_name(), kNameColumn) + summary_of(*command) + "\n";
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

std::string option_list(const CLI::App& app) {
  std::string text;
  for (const TitledOptions& group : option_groups(app)) {
    text += "\n" + group.title + "\n";
    for (const CLI::Option* option : group.options) text += option_line(*option);
  }
  return text;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/) const {
  std::string text = usage_line(*app) + "\n" + app->get_description() + "\n";
  text += command_list(*app) + option_list(*app);
  const std::string footer = app->get_footer();
  return footer.empty() ? text : text + "\n" + footer + "\n";
}

std::string short_help(const CLI::App& app) {
  return usage_line(app) + command_list(app) + "\n" + list_help_hint(app) + "\n";
}

std::string list_help_hint(const CLI::App& command) {
  return full_name(command) + " --help  lists what there is";
}

std::string full_name(const CLI::App& app) {
  std::string name;
  for (const CLI::App* link : chain_of(app)) name += (name.empty() ? "" : " ") + link->get_name();
  return name;
}

std::string usage(const CLI::App& app) {
  std::string line = full_name(app);
  if (!commands_of(app).empty()) line += " COMMAND";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required()) line += " " + names_and_value(*option);
  }
  return line + " [options]";
}

std::string summary_of(const CLI::App& app) {
  const std::string text = app.get_description();
  return text.substr(0, text.find('\n'));
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (app == &command || !is_help_or_version(*app, option)) options.push_back(option);
    }
  }
  return options;
}

std::vector<TitledOptions> option_groups(const CLI::App& app) {
  std::vector<TitledOptions> groups;
  for (const CLI::Option* option : options_of(app)) {
    const std::string title = is_help_or_version(app, option) ? std::string(kHelpGroup) : option->get_group();
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const TitledOptions& group) { return group.title == title; });
    if (known != groups.end()) {
      known->options.push_back(option);
    } else {
      groups.push_back({title, {option}});
    }
  }
  // Help comes first in CLI11's order; readers look for it last.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const TitledOptions& group) { return group.title != kHelpGroup; });
  return groups;
}

const CLI::Option* find_option(const std::string& name, const CLI::App& command) {
  for (const CLI::App* app : chain_of(command)) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

std::vector<std::string> dashed_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string value_name(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  // Behind a colon CLI11 lists the words that are allowed; the description says them already.
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string names_and_value(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  const std::string value = value_name(option);
  return CLI::detail::join(dashed_names(option), ", ") + (value.empty() ? "" : " " + value);
}

}  // namespace routing
