// Is it UTF-8?
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace routing {

// Where the text stops being UTF-8; nothing if it is UTF-8 to its end. Characters written longer than needed, halves of
// surrogate pairs and what lies beyond U+10FFFF are not UTF-8; NUL is.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace routing
