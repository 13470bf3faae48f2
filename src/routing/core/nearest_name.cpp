#include "routing/core/nearest_name.h"

#include <algorithm>

namespace routing {

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

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = name.size();
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace routing
