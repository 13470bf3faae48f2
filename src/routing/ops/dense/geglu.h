// The gated activation of feed-forward layers as a differentiable operation; see kernels/pointwise/geglu.h for the
// formula.
#pragma once

#include <ATen/ATen.h>

namespace routing {

// gate and value of one shape; the result has it too.
at::Tensor geglu(const at::Tensor& gate, const at::Tensor& value);

}  // namespace routing
