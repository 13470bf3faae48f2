// The parts of the extension module routing_transformer._core. What users see is in python/routing_transformer/*.py;
// here are the objects and functions that it is made of.
#pragma once

#include "routing/ops/attend/plan.h"
#include "routing/ops/precision.h"

#include <torch/csrc/utils/pybind.h>

#include <optional>
#include <string>

namespace routing::python {

namespace py = pybind11;

// Errors of the library as Python exceptions with the same words. First of all parts.
void bind_errors(py::module_& module);
void bind_plans(py::module_& module);
void bind_attend(py::module_& module);
void bind_layer(py::module_& module);
void bind_model(py::module_& module);
void bind_generation(py::module_& module);

// None is an undefined tensor, and the other way round.
inline at::Tensor tensor_or_none(const std::optional<at::Tensor>& tensor) {
  return tensor.value_or(at::Tensor());
}
inline std::optional<at::Tensor> none_or_tensor(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// "fp32" or "bf16".
MatmulPrecision precision_of(const std::string& word);

}  // namespace routing::python
