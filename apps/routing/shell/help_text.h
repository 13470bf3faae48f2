// What the program says of its commands and options, and the one layout of help. The manual and the completion of
// shells are made of the same texts.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace routing {

// The one layout of all help texts: usage, description, commands, options in groups with their defaults, footer. A
// command's help also lists the options of the program, which it understands too.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// Usage and commands only: the answer to a program started without any argument.
std::string short_help(const CLI::App& app);
// Where the help is.
std::string list_help_hint(const CLI::App& command);

// "routing analyze patterns".
std::string full_name(const CLI::App& app);
// "routing eval RUN [options]".
std::string usage(const CLI::App& app);
// The first line of the description.
std::string summary_of(const CLI::App& app);

// Those below this one, in the order of the help.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
// The options that a command understands: its own, then those of the commands above it. Of the help options only its
// own.
std::vector<const CLI::Option*> options_of(const CLI::App& command);

struct TitledOptions {
  std::string title;
  std::vector<const CLI::Option*> options;
};
// The same in groups, as the help shows them.
std::vector<TitledOptions> option_groups(const CLI::App& app);

// By its name with dashes, of a command or of those above it; nullptr if there is none.
const CLI::Option* find_option(const std::string& name, const CLI::App& command);
// "-n", "--tokens".
std::vector<std::string> dashed_names(const CLI::Option& option);
// "N", the RUN of an argument without dashes, or nothing for a flag.
std::string value_name(const CLI::Option& option);
// "-n, --tokens N".
std::string names_and_value(const CLI::Option& option);

}  // namespace routing
