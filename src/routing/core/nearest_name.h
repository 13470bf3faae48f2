// "Did you mean …?": for unknown options and configuration keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// How many single-letter insertions, deletions, replacements and swaps of neighbours turn one word into the other.
std::size_t edit_distance(std::string_view first, std::string_view second);

// The candidate with the smallest edit distance to the name, the earlier one on a tie; empty if there is no candidate
// or none is nearer than writing the name anew.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace routing
