// The sum of a sub-layer and its input, differentiable.
//
// On the CPU in float32 by kernels/pointwise/residual.h, on all threads: libtorch's own sum runs on one, as we leave
// it. Double, other devices and other strides by the same formula on tensors.
#pragma once

#include <ATen/ATen.h>

namespace routing {

// x + y. Throws an InputError if their sizes differ.
at::Tensor residual_sum(const at::Tensor& x, const at::Tensor& y);

}  // namespace routing
