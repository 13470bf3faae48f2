// The values that an option or an argument may have, by its words and by the name of its value.
#pragma once

#include "help/completion.h"

#include <string>

namespace routing {

// What begins with `typed`. `before` is what stands before the value in the same word, such as "--data=": it begins
// every answer.
Completions complete_value(const CLI::Option& option, const std::string& before, const std::string& typed);

}  // namespace routing
