// How the program reads its arguments: help in one layout, and every mistake answered with one line and a hint.
#pragma once

#include "shell/usage_error.h"

#include <CLI/CLI.hpp>

#include <string>

namespace routing {

// The one layout of all help texts: usage, description, commands, options in groups with their defaults, footer. A
// command's help also lists the options of the program, which it understands too.
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// Usage and commands only: the answer to a program started without any argument.
std::string short_help(const CLI::App& app);

// "routing analyze patterns".
std::string full_name(const CLI::App& app);

// The command that was given, as deep as it was given; the program itself if there was none.
CLI::App& given_command(CLI::App& program);

// Throws a UsageError for the first argument that nothing understood; it names the nearest option or command.
void refuse_unknown_arguments(CLI::App& program);

// A failed parse in our words. Unknown arguments come first, because they are often why something else is missing.
UsageError explain(const CLI::ParseError& error, CLI::App& program);

}  // namespace routing
