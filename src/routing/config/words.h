// Enumerations as words: one list of values gives parsing, and errors that name the nearest word.
#pragma once

#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// A ConfigError unless the word is one of the names: what was asked for, what there is and the nearest.
inline void require_word(std::string_view word, std::string_view what, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  const std::string nearest = nearest_name(word, names);
  throw ConfigError(std::string(what) + ": '" + std::string(word) + "' is not known; choose one of " + known +
                    (nearest.empty() ? "" : " (did you mean " + nearest + "?)"));
}

// The value whose to_string() is the word; otherwise an error as above.
template <class Enum, std::size_t N>
Enum parse_word(std::string_view word, std::string_view what, const std::array<Enum, N>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    if (to_string(value) == word) return value;
    names.emplace_back(to_string(value));
  }
  require_word(word, what, names);
  return values.front();
}

}  // namespace routing
