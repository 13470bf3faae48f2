// LSH: tokens projected by a random rotation, whose largest coordinate then names the bucket.
//
//   projected[t][c] = sum over d of tokens[t][d] * rotation[d][c]
//
// A row depends on its token alone: the sum runs over d in order, whatever the number of rows, so that a token falls
// into the same bucket in a batch, in a prefix and one at a time. In float64, so that hardly any two coordinates tie.
//
// Layout     tokens [num_tokens, dim], rotation [dim, num_columns], projected [num_tokens, num_columns]; row-major,
//            contiguous
// Overlap    projected must not overlap an input
// Threads    single-threaded; callers split over tokens
#pragma once

#include <cstdint>

namespace routing::kernels {

struct ProjectionSizes {
  std::int64_t num_tokens, dim, num_columns;
};

void lsh_projection(const double* tokens, const double* rotation, const ProjectionSizes& sizes, double* projected);

}  // namespace routing::kernels
