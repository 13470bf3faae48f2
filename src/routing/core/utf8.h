// Is it UTF-8, and does it end with a whole character?
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace routing {

// Where the text stops being UTF-8; nothing if it is UTF-8 to its end. Characters written longer than needed, halves of
// surrogate pairs and what lies beyond U+10FFFF are not UTF-8; NUL is.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// How many bytes at the end of the text, 0 to 3, are the beginning of a character whose other bytes are still to come.
// Bytes that no character begins with are not: what follows cannot make them valid.
std::size_t incomplete_utf8_tail(std::string_view text);

}  // namespace routing
