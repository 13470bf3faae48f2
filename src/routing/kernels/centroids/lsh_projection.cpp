#include "routing/kernels/centroids/lsh_projection.h"

#include <algorithm>

namespace routing::kernels {

void lsh_projection(const double* tokens, const double* rotation, const ProjectionSizes& sizes, double* projected) {
  for (std::int64_t token = 0; token < sizes.num_tokens; ++token) {
    double* row = projected + token * sizes.num_columns;
    std::fill(row, row + sizes.num_columns, 0.0);
    for (std::int64_t d = 0; d < sizes.dim; ++d) {
      const double factor = tokens[token * sizes.dim + d];
      const double* column = rotation + d * sizes.num_columns;
      for (std::int64_t c = 0; c < sizes.num_columns; ++c) row[c] += factor * column[c];
    }
  }
}

}  // namespace routing::kernels
