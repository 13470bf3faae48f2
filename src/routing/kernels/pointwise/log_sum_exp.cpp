#include "routing/kernels/pointwise/log_sum_exp.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/lanes.h"
#include "routing/kernels/dispatch/simd_level.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace routing::kernels {
namespace {

constexpr std::int64_t kGrain = 16;

[[gnu::always_inline]] inline float largest_of(const float* values, std::int64_t count) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) {
    lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
  }
  float largest = lanes[0];
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

}  // namespace

void add_panel(const float* logits, const LogitPanel& panel, const std::int64_t* targets, const RunningSums& sums,
               float* picked) {
  parallel_for(0, panel.num_rows, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = first; row < last; ++row) {
        const float* values = logits + row * panel.columns;
        const float before = sums.largest[row];
        const float here = largest_of(values, panel.columns);
        const float largest = here > before ? here : before;
        // Only a row of nothing but -infinity has none; it must not become infinity minus infinity.
        const float shift = largest == -std::numeric_limits<float>::infinity() ? 0.0F : largest;
        const float sum = lane_sum(panel.columns, [&](std::int64_t i) { return lane_exp(values[i] - shift); });
        const double earlier = sums.sum[row];
        sums.sum[row] = (earlier == 0.0 ? 0.0 : earlier * std::exp(static_cast<double>(before - shift))) + sum;
        sums.largest[row] = largest;
        const std::int64_t target = targets[row] - panel.first_column;
        if (target >= 0 && target < panel.columns) picked[row] = values[target];
      }
    });
  });
}

void logits_to_gradient(float* logits, const LogitPanel& panel, const RowGradients& rows) {
  parallel_for(0, panel.num_rows, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = first; row < last; ++row) {
        float* values = logits + row * panel.columns;
        if (rows.targets[row] < 0) {
          std::fill_n(values, panel.columns, 0.0F);
          continue;
        }
        const float shift = rows.log_sum_exp[row];
        const float gradient = rows.loss_gradient[row];
        for (std::int64_t i = 0; i < panel.columns; ++i) values[i] = lane_exp(values[i] - shift) * gradient;
        const std::int64_t target = rows.targets[row] - panel.first_column;
        if (target >= 0 && target < panel.columns) values[target] -= gradient;
      }
    });
  });
}

}  // namespace routing::kernels
