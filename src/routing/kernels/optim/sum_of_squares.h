// The sum of squares of many numbers, in double: for norms of gradients.
//
// Chunks of fixed length are summed in parallel and their sums added in order, so the number of threads changes no bit.
// Squares of float32 are exact in double and cannot overflow. A number that is not finite makes the sum not finite.
#pragma once

#include <cstdint>

namespace routing::kernels {

double sum_of_squares(const float* numbers, std::int64_t count);
double sum_of_squares(const double* numbers, std::int64_t count);

}  // namespace routing::kernels
