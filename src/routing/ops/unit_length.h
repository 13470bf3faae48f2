// Vectors divided by their length, differentiable.
#pragma once

#include <ATen/ATen.h>

namespace routing {

// x / max(|x|, 1e-12) over the last dimension of a float or double tensor on the CPU; elsewhere by tensor operations.
// On the CPU a vector of the result and of the gradient depends on its own alone, bit for bit, and the result is
// contiguous. Differentiable once.
at::Tensor unit_length(const at::Tensor& vectors);

}  // namespace routing
