// The gradient of a table of which rows were looked up.
//
//   gradient[id] = sum of outputs_gradient[position] over the positions that looked up id, in the order of positions
//
// Layout     ids [count], each in 0 … table_rows-1; outputs_gradient [count, width]; gradient [table_rows, width];
// every
//            row of it is written
// Threads    spread over parallel_for; a row of the table is summed by one thread
#pragma once

#include <cstdint>

namespace routing::kernels {

struct LookupShape {
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t table_rows = 0;
};

void embedding_gradient(const std::int64_t* ids, const float* outputs_gradient, const LookupShape& shape,
                        float* gradient);
void embedding_gradient(const std::int64_t* ids, const double* outputs_gradient, const LookupShape& shape,
                        double* gradient);

}  // namespace routing::kernels
