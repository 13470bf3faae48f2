// Enumerations as words. One table beside an enumeration gives its text, its parsing, the list of its values, and
// errors that name the nearest word:
//
//   enum class Merge { mean, lse };
//   constexpr auto words_of(Merge) {
//     return std::to_array<Word<Merge>>({{Merge::mean, "mean"}, {Merge::lse, "lse"}});
//   }
//   to_string(Merge::lse);                       // "lse"
//   parse_word<Merge>("lse", "routing.merge");   // Merge::lse
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

template <class Enum>
struct Word {
  Enum value;
  std::string_view word;
};

template <class Enum>
concept HasWords = requires(Enum value) {
  words_of(value);
};

// Its own namespace, because this header is widely included.
namespace word_table {

// The compiler writes an enumerator by its name and any other value as a cast: "(Merge)2".
template <auto value>
consteval bool is_enumerator() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr char after_cast = text[text.rfind(')') + 1];
  return after_cast < '0' || after_cast > '9';
}

// Does the table have every enumerator once? They count from 0. This does for a table what -Wswitch does for a switch.
template <class Enum>
consteval bool is_whole() {
  constexpr auto table = words_of(Enum{});
  std::array<int, table.size()> found{};
  for (const auto& entry : table) ++found.at(static_cast<std::size_t>(entry.value));
  for (const int times : found) {
    if (times != 1) return false;
  }
  return !is_enumerator<static_cast<Enum>(table.size())>();
}

template <class Enum>
consteval auto values() {
  constexpr auto table = words_of(Enum{});
  std::array<Enum, table.size()> result{};
  for (std::size_t i = 0; i < table.size(); ++i) result[i] = table[i].value;
  return result;
}

}  // namespace word_table

// All values, in the order of the table.
template <HasWords Enum>
inline constexpr auto kEvery = word_table::values<Enum>();

template <HasWords Enum>
constexpr std::string_view to_string(Enum value) {
  static_assert(word_table::is_whole<Enum>(), "words_of() must have every enumerator once");
  for (const Word<Enum>& entry : words_of(value)) {
    if (entry.value == value) return entry.word;
  }
  return "";
}

// A ConfigError unless the word is one of the names. It says what the word should name, which words there are and which
// is the nearest.
void require_word(std::string_view word, std::string_view what, const std::vector<std::string>& names);

// The value of the word among `values`; otherwise an error as above.
template <HasWords Enum, std::size_t N>
Enum parse_word(std::string_view word, std::string_view what, const std::array<Enum, N>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    if (to_string(value) == word) return value;
    names.emplace_back(to_string(value));
  }
  require_word(word, what, names);
  return values.front();
}
template <HasWords Enum>
Enum parse_word(std::string_view word, std::string_view what) {
  return parse_word(word, what, kEvery<Enum>);
}

}  // namespace routing
