// Layer normalisation over the last dimension, differentiable.
//
//   y = (x - mean) / sqrt(variance + eps) * gain + bias
//
// On the CPU in float32 by kernels/pointwise/layer_norm.h: a row's bits depend on its row alone, gradients of gain and
// bias not on the threads. Double, other devices and meta tensors by the same formula on tensors.
#pragma once

#include <ATen/ATen.h>

namespace routing {

// input [..., width], float or double; gain and bias [width], either may be undefined (1 and 0). Differentiable once in
// all three. Throws an InputError if shapes, types or devices do not fit.
at::Tensor layer_norm(const at::Tensor& input, const at::Tensor& gain, const at::Tensor& bias, double eps);

// The same for an input that is also used as it is, as in x + f(layer_norm(x)): take both from here, and their
// gradients are summed where they meet.
struct NormAndInput {
  at::Tensor normalised;
  at::Tensor input;
};
NormAndInput layer_norm_and_input(const at::Tensor& input, const at::Tensor& gain, const at::Tensor& bias, double eps);

}  // namespace routing
