// "Did you mean …?": for unknown options, configuration keys and words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// How many single-letter insertions, deletions, replacements and swaps of neighbours turn one word into the other.
std::size_t edit_distance(std::string_view first, std::string_view second);

// What somebody who wrote `name` may have meant: the candidate with the smallest edit distance if that is small against
// the name (a third of its letters, half if both begin alike), the earlier one on a tie; otherwise up to three
// candidates that have the name in them. Nothing is better than a guess that leads astray.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& candidates);

// "did you mean 'a'?", "did you mean 'a', 'b' or 'c'?"; empty if nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace routing
