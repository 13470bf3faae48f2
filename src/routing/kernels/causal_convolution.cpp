#include "routing/kernels/causal_convolution.h"

#include "routing/core/parallel.h"
#include "routing/kernels/simd_level.h"

#include <algorithm>
#include <vector>

namespace routing::kernels {
namespace {

constexpr std::int64_t kRowsPerBlock = 64;

// out += factor * in, or out = factor * in for the first.
void add_product(const float* factor, const float* in, std::int64_t channels, bool first, float* out) {
  at_best_level([&]() __attribute__((always_inline)) {
    if (first) {
      for (std::int64_t c = 0; c < channels; ++c) out[c] = factor[c] * in[c];
    } else {
      for (std::int64_t c = 0; c < channels; ++c) out[c] += factor[c] * in[c];
    }
  });
}

}  // namespace

void causal_convolution(const ConvolutionShape& shape, const float* x, const float* weight, const float* before,
                        float* y) {
  const std::int64_t channels = shape.channels;
  const std::vector<float> zeros(static_cast<std::size_t>(channels), 0.0F);
  parallel_for(0, shape.batch * shape.tokens, kRowsPerBlock, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t sequence = row / shape.tokens;
      const std::int64_t token = row % shape.tokens;
      for (std::int64_t k = 0; k < shape.taps; ++k) {
        // A row that does not exist is added like any other, so that a sequence in pieces adds the same numbers.
        const float* in = zeros.data();
        if (token >= k) {
          in = x + (row - k) * channels;
        } else if (before != nullptr) {
          in = before + ((sequence + 1) * (shape.taps - 1) + token - k) * channels;
        }
        add_product(weight + k * channels, in, channels, k == 0, y + row * channels);
      }
    }
  });
}

void causal_convolution_backward(const ConvolutionShape& shape, const float* x, const float* weight, const float* dy,
                                 float* dx, float* d_weight) {
  const std::int64_t channels = shape.channels;
  const std::int64_t rows = shape.batch * shape.tokens;
  const std::int64_t size = shape.taps * channels;
  const std::int64_t blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  std::vector<float> partial(static_cast<std::size_t>(blocks * size), 0.0F);
  parallel_for(0, rows, kRowsPerBlock, [&](std::int64_t first, std::int64_t last) {
    float* of_block = partial.data() + first / kRowsPerBlock * size;
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t token = row % shape.tokens;
      for (std::int64_t k = 0; k < shape.taps; ++k) {
        if (token + k < shape.tokens) {
          add_product(weight + k * channels, dy + (row + k) * channels, channels, k == 0, dx + row * channels);
        }
        if (token >= k) {
          add_product(dy + row * channels, x + (row - k) * channels, channels, false, of_block + k * channels);
        }
      }
    }
  });
  std::fill_n(d_weight, size, 0.0F);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const float* of_block = partial.data() + block * size;
    for (std::int64_t i = 0; i < size; ++i) d_weight[i] += of_block[i];
  }
}

}  // namespace routing::kernels
