#include "routing/kernels/pointwise/residual.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/simd_level.h"

namespace routing::kernels {

void add(const float* a, const float* b, std::int64_t count, float* sums) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 15U;
  parallel_for(0, count, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t i = first; i < last; ++i) sums[i] = a[i] + b[i];
    });
  });
}

}  // namespace routing::kernels
