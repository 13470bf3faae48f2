// How well does each token match each centroid?
//
//   scores[t][c] = sum over d of tokens[t][d] * columns[d][c]
//
// A row of scores depends on its token alone: the sum runs over d in order, whatever the number of rows, so that a
// token chooses the same clusters in a batch, in a prefix and one at a time.
//
// Layout     tokens [num_tokens, dim], columns [dim, num_columns] (centroids transposed), scores [num_tokens,
//            num_columns]; row-major, contiguous, float32
// Overlap    scores must not overlap an input
// Threads    single-threaded; callers split over tokens
#pragma once

#include <cstdint>

namespace routing::kernels {

struct ScoreSizes {
  std::int64_t num_tokens, dim, num_columns;
};

void centroid_scores(const float* tokens, const float* columns, const ScoreSizes& sizes, float* scores);
// The same in float64.
void centroid_scores(const double* tokens, const double* columns, const ScoreSizes& sizes, double* scores);

}  // namespace routing::kernels
