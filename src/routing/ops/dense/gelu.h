// The activation of feed-forward layers of the kind gelu as a differentiable operation; see kernels/pointwise/gelu.h
// for the formula.
#pragma once

#include <ATen/ATen.h>

namespace routing {

at::Tensor gelu(const at::Tensor& input);

}  // namespace routing
