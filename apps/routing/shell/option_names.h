// What the library's errors call options, in the words of the command line.
//
// The library knows no command line: its messages name the option that was handed over, in backticks, as in "go on with
// it by `resume`". Before the program shows a message it puts the flag there: "go on with it by --resume".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace routing {

struct OptionName {
  std::string_view in_library;  // without the backticks
  std::string_view flag;
};

std::span<const OptionName> option_names();

// The message with flags; what else stands in backticks stays.
std::string with_flags(std::string message);

}  // namespace routing
