// Dense layers, differentiable.
//
//   y = x W^T + b
//
// On the CPU in float32, a row of the result and of the gradient of x depends on its own row alone, bit for bit,
// whatever the number of rows and threads; the gradients of W and b are summed over rows in a fixed order. See
// kernels/dense.h. Double, other devices and meta tensors are computed by the same formulas on tensors. With bf16, x is
// kept for the backward pass as it is multiplied, in two bytes a number.
#pragma once

#include "routing/ops/precision.h"

#include <ATen/ATen.h>

#include <vector>

namespace routing {

struct LinearOptions {
  MatmulPrecision precision = MatmulPrecision::fp32;
};

// input [..., in], weight [out, in], bias [out] or undefined -> [..., out]; float or double, all alike, on one device.
// Differentiable once in all three. Throws an InputError if shapes, types or devices do not fit.
// Call it as routing::linear: by its arguments' types, at::linear is a candidate too.
at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias = {},
                  const LinearOptions& options = {});

// Several layers without bias that read the same input: the gradients of the input are summed inside of
// the products. Otherwise as calls of linear, one per weight.
std::vector<at::Tensor> linear_branches(const at::Tensor& input, const std::vector<at::Tensor>& weights,
                                        MatmulPrecision precision = MatmulPrecision::fp32);

}  // namespace routing
