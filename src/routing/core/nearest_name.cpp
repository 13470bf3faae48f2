#include "routing/core/nearest_name.h"

#include <algorithm>
#include <array>

namespace routing {
namespace {

// Letters of one that the other lacks are as many changes at least; where they stand does not count. In 32 bins, which
// can only make it less.
std::size_t least_distance(std::string_view first, std::string_view second) {
  constexpr std::size_t kBins = 32;
  std::array<int, kBins> more{};
  for (const char letter : first) ++more[static_cast<unsigned char>(letter) % kBins];
  for (const char letter : second) --more[static_cast<unsigned char>(letter) % kBins];
  std::size_t lacking = 0, surplus = 0;
  for (const int count : more) (count > 0 ? surplus : lacking) += static_cast<std::size_t>(count > 0 ? count : -count);
  return std::max(lacking, surplus);
}

}  // namespace

std::size_t edit_distance(std::string_view first, std::string_view second) {
  const std::size_t rows = first.size() + 1;
  const std::size_t columns = second.size() + 1;
  std::vector<std::size_t> table(rows * columns);
  const auto at = [&](std::size_t row, std::size_t column) -> std::size_t& { return table[row * columns + column]; };
  for (std::size_t row = 0; row < rows; ++row) at(row, 0) = row;
  for (std::size_t column = 0; column < columns; ++column) at(0, column) = column;
  for (std::size_t row = 1; row < rows; ++row) {
    for (std::size_t column = 1; column < columns; ++column) {
      const bool same = first[row - 1] == second[column - 1];
      std::size_t best = std::min(at(row - 1, column), at(row, column - 1)) + 1;
      best = std::min(best, at(row - 1, column - 1) + (same ? 0 : 1));
      if (row > 1 && column > 1 && first[row - 1] == second[column - 2] && first[row - 2] == second[column - 1]) {
        best = std::min(best, at(row - 2, column - 2) + 1);
      }
      at(row, column) = best;
    }
  }
  return table.back();
}

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kShortestPart = 3;
  constexpr std::size_t kMostNames = 3;
  std::vector<std::string> near;
  std::size_t smallest = name.size();  // as many changes as letters would make anything of it
  for (const std::string& candidate : candidates) {
    // "routed" and "routing" differ in half of their letters; that they begin alike makes up for it.
    const bool begins_alike = name.substr(0, kShortestPart) == std::string_view(candidate).substr(0, kShortestPart);
    const std::size_t allowed = std::max<std::size_t>(1, name.size() / (begins_alike ? 2 : 3));
    // As many letters more or less are as many changes. A file may hold a name of any length, and the table of the
    // distance is as long.
    const std::size_t longer = std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    if (longer >= smallest || longer > allowed) continue;
    // Most candidates have other letters: the table, which takes a hundred times longer, is not made for them.
    const std::size_t least = least_distance(name, candidate);
    if (least >= smallest || least > allowed) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= smallest || distance > allowed) continue;
    smallest = distance;
    near = {candidate};
  }
  if (!near.empty() || name.size() < kShortestPart) return near;
  for (const std::string& candidate : candidates) {
    if (candidate.find(name) != std::string::npos && near.size() < kMostNames) near.push_back(candidate);
  }
  return near;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = near_names(name, candidates);
  if (near.empty()) return "";
  std::string text = "did you mean ";
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
    text += "'" + near[i] + "'";
  }
  return text + "?";
}

}  // namespace routing
