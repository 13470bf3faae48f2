// How far are tokens from the centroids they chose?
//
//   sum over rows with choice >= 0 of |x - centroid[choice]|^2,   and its gradient 2 (x - centroid[choice])
//
// Layout     rows [num_rows, dim] and their gradient contiguous; row r belongs to head r / rows_per_head % heads
// Sums       a row in float32, lane by lane; rows in float64 over chunks of 256, then chunk after chunk: they depend on
//            the rows, not on the threads
// Threads    spread over parallel_for
// Level      chosen by active_isa(); levels may differ in the last bits
#pragma once

#include <cstdint>

namespace routing::kernels {

struct CommitmentInputs {
  const float* rows = nullptr;
  const std::int32_t* choice = nullptr;  // [num_rows]; negative for padding
  const float* centroids = nullptr;      // [heads, clusters, dim]
  std::int64_t num_rows = 0;
  std::int64_t rows_per_head = 0;
  std::int64_t heads = 0;
  std::int64_t clusters = 0;
  std::int64_t dim = 0;
};

struct CommitmentSum {
  double squares = 0.0;
  std::int64_t rows = 0;  // that have a choice
};
CommitmentSum commitment_sum(const CommitmentInputs& inputs);

// gradient [num_rows, dim] = factor * (x - centroid[choice]); zero for padding.
void commitment_gradient(const CommitmentInputs& inputs, float factor, float* gradient);

}  // namespace routing::kernels
