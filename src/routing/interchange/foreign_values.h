// Tensors of other programs' files as tensors of ours, and back.
#pragma once

#include "routing/interchange/bundle/tensor_bundle.h"
#include "routing/interchange/values/foreign_tensor.h"

#include <ATen/ATen.h>

#include <cstddef>
#include <span>
#include <string>

namespace routing {

// Throws an InputError for a type that the other side has not.
NumberType number_type(at::ScalarType type);
at::ScalarType scalar_type(NumberType type);

// A tensor of its own of these bytes, which must be those of the dimensions.
at::Tensor tensor_from(std::span<const std::byte> bytes, NumberType type, const Dimensions& dimensions);

// Lives as long as the tensor, which must be without gaps and on the CPU.
BundleTensor bundle_tensor(const std::string& name, const at::Tensor& tensor);

}  // namespace routing
