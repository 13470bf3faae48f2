#include "routing/kernels/pointwise/layer_norm.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/lanes.h"
#include "routing/kernels/dispatch/simd_level.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace routing::kernels {
namespace {

constexpr std::int64_t kChunkRows = 256;

// Walks over the rows in the order of memory, without dividing for each: heads that stand inside of tokens come first.
class RowWalk {
 public:
  [[gnu::always_inline]] RowWalk(const NormInputs& inputs, std::int64_t step)
      : width_(inputs.width),
        heads_(inputs.places.heads),
        tokens_(inputs.places.tokens == 0 ? inputs.num_rows : inputs.places.tokens),
        heads_inside_(inputs.places.tokens != 0 && inputs.places.head_stride < inputs.places.token_stride) {
    sequence_ = step / (tokens_ * heads_);
    const std::int64_t rest = step % (tokens_ * heads_);
    head_ = heads_inside_ ? rest % heads_ : rest / tokens_;
    token_ = heads_inside_ ? rest / heads_ : rest % tokens_;
  }
  [[gnu::always_inline]] std::int64_t row() const { return (sequence_ * heads_ + head_) * tokens_ + token_; }
  [[gnu::always_inline]] std::int64_t offset(const RowPlaces& places) const {
    if (places.tokens == 0) return row() * width_;
    return sequence_ * places.batch_stride + head_ * places.head_stride + token_ * places.token_stride;
  }
  [[gnu::always_inline]] void next() {
    std::int64_t& inner = heads_inside_ ? head_ : token_;
    std::int64_t& outer = heads_inside_ ? token_ : head_;
    if (++inner < (heads_inside_ ? heads_ : tokens_)) return;
    inner = 0;
    if (++outer < (heads_inside_ ? tokens_ : heads_)) return;
    outer = 0;
    ++sequence_;
  }

 private:
  std::int64_t width_, heads_, tokens_;
  bool heads_inside_;
  std::int64_t sequence_, head_, token_;
};

// Statistics only; the compiler may not merge this with the loop that writes, so rows are short enough to stay in
// cache.
[[gnu::always_inline]] inline void normalise_row(const NormInputs& inputs, const float* x, std::int64_t row, double eps,
                                                 const NormStatistics& statistics, float* outputs) {
  const std::int64_t width = inputs.width;
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
[[gnu::always_inline]] inline void row_gradient(const NormInputs& inputs, const float* x, std::int64_t row,
                                                const NormStatistics& statistics, const float* dy, float* dx) {
  const std::int64_t width = inputs.width;
  const float inverse = statistics.inverse_deviation[row];
  const float centre = inputs.normalised ? 0.0F : statistics.mean[row];
  const float factor = inputs.normalised ? 1.0F : inverse;
  if (const float* gain = inputs.gain) {
    for (std::int64_t i = 0; i < width; ++i) dx[i] = dy[i] * gain[i];
  } else {
    std::copy(dy, dy + width, dx);
  }
  const auto share = 1.0F / static_cast<float>(width);
  const float mean_g = lane_sum(width, [&](std::int64_t i) { return dx[i]; }) * share;
  const float mean_gx = lane_sum(width, [&](std::int64_t i) { return dx[i] * ((x[i] - centre) * factor); }) * share;
  for (std::int64_t i = 0; i < width; ++i) {
    dx[i] = (dx[i] - mean_g - (x[i] - centre) * factor * mean_gx) * inverse;
  }
}

}  // namespace

void layer_norm(const NormInputs& inputs, double eps, const NormStatistics& statistics, float* outputs) {
  constexpr std::int64_t kGrain = 32;
  parallel_for(0, inputs.num_rows, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      RowWalk walk(inputs, first);
      for (std::int64_t step = first; step < last; ++step, walk.next()) {
        normalise_row(inputs, inputs.rows + walk.offset(inputs.places), walk.row(), eps, statistics, outputs);
      }
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
      RowWalk walk(inputs, chunk * kChunkRows);
      for (std::int64_t step = chunk * kChunkRows; step < last; ++step, walk.next()) {
        const std::int64_t row = walk.row();
        const float* x = inputs.rows + (inputs.normalised ? row * width : walk.offset(inputs.places));
        const float* dy = outputs_gradient + row * width;
        if (gradients.rows != nullptr) {
          float* dx = gradients.rows + walk.offset(gradients.places);
          row_gradient(inputs, x, row, statistics, dy, dx);
          if (gradients.more != nullptr) {
            const float* more = gradients.more + row * width;
            for (std::int64_t i = 0; i < width; ++i) dx[i] += more[i];
          }
        }
        if (gradients.gain != nullptr) {
          const float mean = statistics.mean[row];
          const float inverse = statistics.inverse_deviation[row];
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
