#include "routing/kernels/centroids/commitment.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/lanes.h"
#include "routing/kernels/dispatch/simd_level.h"

#include <algorithm>
#include <vector>

namespace routing::kernels {
namespace {

constexpr std::int64_t kChunkRows = 256;

[[gnu::always_inline]] inline const float* chosen(const CommitmentInputs& inputs, std::int64_t row) {
  const std::int64_t head = row / inputs.rows_per_head % inputs.heads;
  return inputs.centroids + (head * inputs.clusters + inputs.choice[row]) * inputs.dim;
}

}  // namespace

CommitmentSum commitment_sum(const CommitmentInputs& inputs) {
  const std::int64_t chunks = (inputs.num_rows + kChunkRows - 1) / kChunkRows;
  std::vector<CommitmentSum> parts(static_cast<std::size_t>(chunks));
  parallel_for(0, chunks, 1, [&](std::int64_t chunk, std::int64_t) {
    const std::int64_t last = std::min(inputs.num_rows, (chunk + 1) * kChunkRows);
    CommitmentSum part;
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = chunk * kChunkRows; row < last; ++row) {
        if (inputs.choice[row] < 0) continue;
        const float* x = inputs.rows + row * inputs.dim;
        const float* centroid = chosen(inputs, row);
        part.squares += static_cast<double>(
            lane_sum(inputs.dim, [&](std::int64_t d) { return (x[d] - centroid[d]) * (x[d] - centroid[d]); }));
        ++part.rows;
      }
    });
    parts[static_cast<std::size_t>(chunk)] = part;
  });
  CommitmentSum total;
  for (const CommitmentSum& part : parts) {
    total.squares += part.squares;
    total.rows += part.rows;
  }
  return total;
}

void commitment_gradient(const CommitmentInputs& inputs, float factor, float* gradient) {
  parallel_for(0, inputs.num_rows, kChunkRows, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = first; row < last; ++row) {
        float* to = gradient + row * inputs.dim;
        if (inputs.choice[row] < 0) {
          std::fill_n(to, inputs.dim, 0.0F);
          continue;
        }
        const float* x = inputs.rows + row * inputs.dim;
        const float* centroid = chosen(inputs, row);
        for (std::int64_t d = 0; d < inputs.dim; ++d) to[d] = factor * (x[d] - centroid[d]);
      }
    });
  });
}

}  // namespace routing::kernels
