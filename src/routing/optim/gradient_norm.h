// How long is the gradient of all parameters taken together, and how much of it to keep.
#pragma once

#include "routing/optim/named_parameter.h"

#include <ATen/ATen.h>

#include <vector>

namespace routing {

// The gradient of a parameter, undefined if it has none; an InputError if it is sparse.
at::Tensor dense_gradient(const NamedParameter& parameter);

// sqrt of the sum of squares of all gradients, in double. Parameters without a gradient count as zero. The number of
// threads changes no bit. Infinite or undefined numbers in a gradient make it not finite.
double gradient_norm(const std::vector<NamedParameter>& parameters);

// What to multiply gradients of that norm with so that it is at most `largest`: PyTorch's min(1, largest / (norm +
// 1e-6)); 1 if `largest` is 0, which means no clipping. Of an undefined norm it is undefined, of an infinite one 0,
// which does not make the gradients finite: look at the norm before stepping.
double clip_scale(double norm, double largest);

}  // namespace routing
