#include "routing/kernels/centroids/centroid_scores.h"

#include <algorithm>

namespace routing::kernels {
namespace {

template <class Number>
void scores_of_rows(const Number* tokens, const Number* columns, const ScoreSizes& sizes, Number* scores) {
  for (std::int64_t token = 0; token < sizes.num_tokens; ++token) {
    Number* row = scores + token * sizes.num_columns;
    std::fill(row, row + sizes.num_columns, Number{0});
    for (std::int64_t d = 0; d < sizes.dim; ++d) {
      const Number factor = tokens[token * sizes.dim + d];
      const Number* column = columns + d * sizes.num_columns;
      for (std::int64_t c = 0; c < sizes.num_columns; ++c) row[c] += factor * column[c];
    }
  }
}

}  // namespace

void centroid_scores(const float* tokens, const float* columns, const ScoreSizes& sizes, float* scores) {
  scores_of_rows(tokens, columns, sizes, scores);
}

void centroid_scores(const double* tokens, const double* columns, const ScoreSizes& sizes, double* scores) {
  scores_of_rows(tokens, columns, sizes, scores);
}

}  // namespace routing::kernels
