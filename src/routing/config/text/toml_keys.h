// How deep the keys of a TOML text nest, seen before the text is parsed: "[a.b]" and "a.b = 1" are tables in tables,
// and the parser's own tables are taken down by recursion, so that a key of some ten thousand parts would end the
// process.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace routing {

// The first line, counted from 1, on which a key has more than `most` parts; nothing if there is none. Dots in texts,
// in comments and of numbers do not count. What is no TOML may give either answer.
std::optional<std::size_t> line_of_deep_key(std::string_view toml, std::size_t most);

// The first line on which a letter beyond ASCII stands outside of texts and comments, or in a text behind a backslash,
// with white space between or without; nothing if there is none. TOML has no letters there, but for a text that goes on
// behind a backslash at the end of a line; toml++ 3.3 asks in all of these places whether they are spaces, by a
// function that is undefined for most of them. A byte order mark at the beginning does not count.
std::optional<std::size_t> line_of_stray_letter(std::string_view toml);

}  // namespace routing
