// Gradients against central differences, in double.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace routing::support {

// Any number of outputs, flattened to one vector.
using VectorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// All return the largest difference between autograd and central differences, relative to max(1, |derivative|).

// Every output against every element of every input.
double jacobian_error(const VectorFunction& function, const std::vector<at::Tensor>& inputs);

// The same of inputs [1, …] and a function that takes any number of them as [copies, …], none of which may see another,
// and returns [copies, outputs]: every moved number is a copy of its own.
double jacobian_error_in_copies(const VectorFunction& function, const std::vector<at::Tensor>& inputs);

// A random combination of the outputs along random directions of all inputs together.
double directional_error(const VectorFunction& function, const std::vector<at::Tensor>& inputs, int directions);

}  // namespace routing::support
