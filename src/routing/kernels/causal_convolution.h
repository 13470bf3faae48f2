// A short causal convolution of rows over time, channel by channel:
//
//   y[t][c] = sum over k < taps of weight[k][c] x[t - k][c]
//
// where rows before the first come from `before`, or are zero.
//
// Layout     rows [batch, tokens, channels], weight [taps, channels], before [batch, taps - 1, channels] with the row
//            right before token 0 last; all contiguous, results must not overlap inputs
// Precision  taps are added in their order, in float32; a row's bits depend on the rows it reads alone, so a sequence
//            that is cut anywhere gives the same ones
// Threads    parallel_for; the weights' gradient is summed over blocks of rows in a fixed order
#pragma once

#include <cstdint>

namespace routing::kernels {

struct ConvolutionShape {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t channels = 0;
  std::int64_t taps = 0;
};

// `before` may be null.
void causal_convolution(const ConvolutionShape& shape, const float* x, const float* weight, const float* before,
                        float* y);
// Of rows without `before`.
void causal_convolution_backward(const ConvolutionShape& shape, const float* x, const float* weight, const float* dy,
                                 float* dx, float* d_weight);

}  // namespace routing::kernels
