// How the program reads its arguments: every mistake is answered with one line and a hint.
#pragma once

#include "shell/usage_error.h"

#include <CLI/CLI.hpp>

#include <string>

namespace routing {

// The command that was given, as deep as it was given; the program itself if there was none.
CLI::App& given_command(CLI::App& program);

// Throws a UsageError for the first argument that nothing understood; it names the nearest option or command.
void refuse_unknown_arguments(CLI::App& program);

// A failed parse in our words. Unknown arguments come first, because they are often why something else is missing.
UsageError explain(const CLI::ParseError& error, CLI::App& program);

}  // namespace routing
