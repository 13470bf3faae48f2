// A short causal convolution over time, channel by channel, as a differentiable operation; kernels/causal_convolution.h
// has the formula.
#pragma once

#include <ATen/ATen.h>

namespace routing {

// rows [batch, tokens, channels], weight [taps, channels] with the token itself first; the result has the shape of
// rows. `before` [batch, taps - 1, channels] are the rows before the first, zeros if undefined; with it there are no
// gradients. On the CPU in float32 by the kernel, elsewhere by tensor code. Throws an InputError if shapes or types do
// not fit.
at::Tensor causal_convolution(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& before = {});

}  // namespace routing
