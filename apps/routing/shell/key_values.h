// The words that a configuration key may have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace routing {

// "true" and "false", or the words of an enumeration, in its order. Empty for numbers, paths and free text, and for
// what is no key.
std::vector<std::string> key_values(std::string_view name);

}  // namespace routing
