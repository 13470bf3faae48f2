// Gradients against central differences, in double.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace routing::support {

// Any number of outputs, flattened to one vector.
using VectorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Both return the largest difference between autograd and central differences, relative to max(1, |derivative|).

// Every output against every element of every input.
double jacobian_error(const VectorFunction& function, const std::vector<at::Tensor>& inputs);

// A random combination of the outputs along random directions of all inputs together.
double directional_error(const VectorFunction& function, const std::vector<at::Tensor>& inputs, int directions);

}  // namespace routing::support
