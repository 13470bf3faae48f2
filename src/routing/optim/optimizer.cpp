#include "routing/optim/optimizer.h"

#include "routing/core/error.h"
#include "routing/optim/gradient_norm.h"

#include <cmath>
#include <set>
#include <utility>

namespace routing {
namespace {

constexpr const char* kSteps = "steps";

void check(const std::vector<NamedParameter>& parameters) {
  std::set<std::string> names;
  std::map<const void*, std::string> tensors;
  for (const NamedParameter& parameter : parameters) {
    require<InputError>(names.insert(parameter.name).second, "parameter \"", parameter.name,
                        "\" is listed twice; names must differ");
    require<InputError>(parameter.value.defined(), "parameter \"", parameter.name, "\" has no tensor");
    require<InputError>(parameter.value.is_floating_point() && parameter.value.layout() == at::kStrided, "parameter \"",
                        parameter.name, "\" is ", parameter.value.toString(), ", but must be dense floating point");
    const auto [other, is_new] = tensors.emplace(parameter.value.unsafeGetTensorImpl(), parameter.name);
    require<InputError>(is_new, "parameters \"", other->second, "\" and \"", parameter.name,
                        "\" are one tensor; list it once or it would be stepped twice");
  }
}

}  // namespace

Optimizer::Optimizer(std::vector<NamedParameter> parameters) : parameters_(std::move(parameters)) {
  check(parameters_);
}

void Optimizer::step(double learning_rate, double gradient_scale) {
  require<InputError>(std::isfinite(learning_rate) && learning_rate >= 0.0, "learning rate is ", learning_rate,
                      ", but must be finite and at least 0");
  require<InputError>(std::isfinite(gradient_scale), "gradient scale is ", gradient_scale,
                      ", but must be finite; skip a step whose gradients are not");
  const at::NoGradGuard no_gradient;
  // All gradients are looked at before the first value changes.
  std::vector<at::Tensor> gradients;
  for (const NamedParameter& parameter : parameters_) gradients.push_back(dense_gradient(parameter));
  update({.gradients = gradients, .learning_rate = learning_rate, .gradient_scale = gradient_scale});
  ++steps_;
}

void Optimizer::zero_gradients() {
  for (NamedParameter& parameter : parameters_) parameter.value.mutable_grad().reset();
}

std::map<std::string, at::Tensor> Optimizer::state() const {
  std::map<std::string, at::Tensor> state = moments();
  state.emplace(kSteps, at::full({}, steps_, at::kLong));
  return state;
}

void Optimizer::load_state(const std::map<std::string, at::Tensor>& state) {
  const at::NoGradGuard no_gradient;
  const std::map<std::string, at::Tensor> own = this->state();
  for (const auto& [name, tensor] : own) {
    const auto found = state.find(name);
    require<InputError>(found != state.end() && found->second.defined(), "optimiser state has no \"", name,
                        "\"; it belongs to another model or optimiser");
    require<InputError>(found->second.sizes() == tensor.sizes(), "optimiser state \"", name, "\" is ",
                        found->second.sizes(), ", but must be ", tensor.sizes());
    require<InputError>(found->second.scalar_type() == tensor.scalar_type(), "optimiser state \"", name, "\" is ",
                        found->second.scalar_type(), ", but must be ", tensor.scalar_type());
  }
  for (const auto& [name, tensor] : state) {
    require<InputError>(own.contains(name), "optimiser state has \"", name,
                        "\", which this one does not have; it belongs to another model or optimiser");
  }
  const auto steps = state.at(kSteps).item<std::int64_t>();
  require<InputError>(steps >= 0, "optimiser state \"", kSteps, "\" is ", steps, ", but must be at least 0");
  steps_ = steps;
  for (const auto& [name, tensor] : moments()) tensor.copy_(state.at(name));
}

void check_weight_decay(double weight_decay) {
  require<ConfigError>(std::isfinite(weight_decay) && weight_decay >= 0.0, "train.weight_decay is ", weight_decay,
                       ", but must be finite and at least 0");
}

}  // namespace routing
