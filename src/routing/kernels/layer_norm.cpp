#include "routing/kernels/layer_norm.h"

#include "routing/core/parallel.h"
#include "routing/kernels/lanes.h"
#include "routing/kernels/simd_level.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace routing::kernels {
namespace {

constexpr std::int64_t kChunkRows = 256;

// Statistics only; the compiler may not merge this with the loop that writes, so rows are short enough to stay in
// cache.
[[gnu::always_inline]] inline void normalise_row(const NormInputs& inputs, std::int64_t row, double eps,
                                                 const NormStatistics& statistics, float* outputs) {
  const std::int64_t width = inputs.width;
  const float* x = inputs.rows + row * width;
  float* y = outputs + row * width;
  const float mean = lane_sum(width, [&](std::int64_t i) { return x[i]; }) / static_cast<float>(width);
  const float squares = lane_sum(width, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  const auto inverse =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(squares) / static_cast<double>(width) + eps));
  statistics.mean[row] = mean;
  statistics.inverse_deviation[row] = inverse;
  for (std::int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * inverse;
  if (const float* gain = inputs.gain) {
    for (std::int64_t i = 0; i < width; ++i) y[i] *= gain[i];
  }
  if (const float* bias = inputs.bias) {
    for (std::int64_t i = 0; i < width; ++i) y[i] += bias[i];
  }
}

// With x^ the normalised row and g = dy * gain:  dx = (g - mean of g - x^ * mean of (g x^)) / deviation.
[[gnu::always_inline]] inline void row_gradient(const NormInputs& inputs, std::int64_t row,
                                                const NormStatistics& statistics, const float* outputs_gradient,
                                                float* gradient) {
  const std::int64_t width = inputs.width;
  const float* x = inputs.rows + row * width;
  const float* dy = outputs_gradient + row * width;
  float* dx = gradient + row * width;
  const float mean = statistics.mean[row];
  const float inverse = statistics.inverse_deviation[row];
  if (const float* gain = inputs.gain) {
    for (std::int64_t i = 0; i < width; ++i) dx[i] = dy[i] * gain[i];
  } else {
    std::copy(dy, dy + width, dx);
  }
  const auto share = 1.0F / static_cast<float>(width);
  const float mean_g = lane_sum(width, [&](std::int64_t i) { return dx[i]; }) * share;
  const float mean_gx = lane_sum(width, [&](std::int64_t i) { return dx[i] * ((x[i] - mean) * inverse); }) * share;
  for (std::int64_t i = 0; i < width; ++i) {
    dx[i] = (dx[i] - mean_g - (x[i] - mean) * inverse * mean_gx) * inverse;
  }
}

}  // namespace

void layer_norm(const NormInputs& inputs, double eps, const NormStatistics& statistics, float* outputs) {
  constexpr std::int64_t kGrain = 32;
  parallel_for(0, inputs.num_rows, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = first; row < last; ++row) normalise_row(inputs, row, eps, statistics, outputs);
    });
  });
}

void layer_norm_gradient(const NormInputs& inputs, const NormStatistics& statistics, const float* outputs_gradient,
                         const NormGradients& gradients) {
  const std::int64_t width = inputs.width;
  const std::int64_t chunks = (inputs.num_rows + kChunkRows - 1) / kChunkRows;
  std::vector<float> partials(static_cast<std::size_t>(2 * chunks * width), 0.0F);
  parallel_for(0, chunks, 1, [&](std::int64_t chunk, std::int64_t) {
    float* gain_sum = partials.data() + 2 * chunk * width;
    float* bias_sum = gain_sum + width;
    const std::int64_t last = std::min(inputs.num_rows, (chunk + 1) * kChunkRows);
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = chunk * kChunkRows; row < last; ++row) {
        if (gradients.rows != nullptr) row_gradient(inputs, row, statistics, outputs_gradient, gradients.rows);
        const float* x = inputs.rows + row * width;
        const float* dy = outputs_gradient + row * width;
        const float mean = statistics.mean[row];
        const float inverse = statistics.inverse_deviation[row];
        if (gradients.gain != nullptr) {
          for (std::int64_t i = 0; i < width; ++i) gain_sum[i] += dy[i] * ((x[i] - mean) * inverse);
        }
        if (gradients.bias != nullptr) {
          for (std::int64_t i = 0; i < width; ++i) bias_sum[i] += dy[i];
        }
      }
    });
  });
  const auto add_chunks = [&](float* total, std::int64_t offset) {
    if (total == nullptr) return;
    std::fill_n(total, width, 0.0F);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const float* partial = partials.data() + 2 * chunk * width + offset;
      for (std::int64_t i = 0; i < width; ++i) total[i] += partial[i];
    }
  };
  add_chunks(gradients.gain, 0);
  add_chunks(gradients.bias, width);
}

}  // namespace routing::kernels
