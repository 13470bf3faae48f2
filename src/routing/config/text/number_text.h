// Numbers as text, in the notation of C whatever the locale.
#pragma once

#include <array>
#include <charconv>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace routing {

// Shortest text that gives the same number back.
template <class Number>
std::string number_text(Number value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

// The number that is all of the text, without blanks; infinity and what is not a number give none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  // Not from_chars: clang's library, which make lint reads, has none for fractions.
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  Number value{};
  stream >> std::noskipws >> value;
  const bool whole = !stream.fail() && stream.peek() == std::istringstream::traits_type::eof();
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace routing
