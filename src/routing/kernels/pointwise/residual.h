// The sum of a sub-layer and its input.
//
// Overlap    sums may be a or b
// Threads    spread over parallel_for; bits do not depend on them
#pragma once

#include <cstdint>

namespace routing::kernels {

// sums[i] = a[i] + b[i], i < count
void add(const float* a, const float* b, std::int64_t count, float* sums);

}  // namespace routing::kernels
