// Weights in the layout that products like best, kept until the weight changes.
//
// A weight counts as unchanged while it is the same tensor with the same storage and the same version. Torch's own
// in-place operations raise the version; code that writes through data_ptr() or data() must do so itself
// (tensor.unsafeGetTensorImpl()->bump_version()) or forget the weight, or products go on with the old values.
#pragma once

#include "routing/kernels/dense/dense.h"

#include <ATen/ATen.h>

#include <cstddef>

namespace routing {

enum class WeightUse { forward, data_gradient };

// weight: float32 on the CPU, [out, in]. Any thread may call.
kernels::PackedMatrix packed_weight(const at::Tensor& weight, WeightUse use, kernels::DenseType type);

// What is kept of this weight goes: its numbers are others, though its version is not.
void forget_packed_weight(const at::Tensor& weight);

struct PackedWeightsState {
  std::size_t entries = 0;
  std::size_t bytes = 0;
};
PackedWeightsState packed_weights_state();

// What is kept at most; starts at 1 GiB. The least recently used go first. 0 keeps nothing.
void set_packed_weights_limit(std::size_t bytes);
std::size_t packed_weights_limit();

}  // namespace routing
