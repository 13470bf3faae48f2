#include "routing/kernels/optim/sum_of_squares.h"

#include "routing/core/parallel.h"

#include <array>
#include <cstddef>
#include <numeric>
#include <vector>

namespace routing::kernels {
namespace {

constexpr std::int64_t kChunk = 65536;
// Sums side by side, one for each place modulo 8: a single sum in order could not be vectorised.
constexpr std::size_t kLanes = 8;

template <class Number>
double sum_of_range(const Number* numbers, std::int64_t count) {
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= count; i += static_cast<std::int64_t>(kLanes)) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto number = static_cast<double>(numbers[i + static_cast<std::int64_t>(lane)]);
      sums[lane] += number * number;
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    const auto number = static_cast<double>(numbers[i]);
    sums[lane] += number * number;
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class Number>
double sum_of_chunks(const Number* numbers, std::int64_t count) {
  std::vector<double> sums(static_cast<std::size_t>((count + kChunk - 1) / kChunk));
  parallel_for(0, count, kChunk, [&](std::int64_t first, std::int64_t last) {
    sums[static_cast<std::size_t>(first / kChunk)] = sum_of_range(numbers + first, last - first);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

double sum_of_squares(const float* numbers, std::int64_t count) {
  return sum_of_chunks(numbers, count);
}

double sum_of_squares(const double* numbers, std::int64_t count) {
  return sum_of_chunks(numbers, count);
}

}  // namespace routing::kernels
