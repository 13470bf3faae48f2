#include "routing/optim/adam.h"

#include "routing/core/error.h"
#include "routing/kernels/adam_step.h"
#include "routing/optim/gradient_norm.h"

#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

namespace routing {
namespace {

void check(const AdamOptions& options) {
  const auto is_share = [](double beta) { return beta >= 0.0 && beta < 1.0; };
  require<ConfigError>(is_share(options.beta1), "train.beta1 is ", options.beta1, ", but must be in [0, 1)");
  require<ConfigError>(is_share(options.beta2), "train.beta2 is ", options.beta2, ", but must be in [0, 1)");
  require<ConfigError>(std::isfinite(options.epsilon) && options.epsilon >= 0.0, "train.epsilon is ", options.epsilon,
                       ", but must be finite and at least 0");
  require<ConfigError>(std::isfinite(options.weight_decay) && options.weight_decay >= 0.0, "train.weight_decay is ",
                       options.weight_decay, ", but must be finite and at least 0");
}

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

// Its memory is `count` float32 in order, where a kernel can reach it.
bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

void step_by_kernel(const at::Tensor& value, const at::Tensor& gradient, const at::Tensor& first,
                    const at::Tensor& second, const kernels::AdamFactors& factors) {
  kernels::adam_step({.value = value.data_ptr<float>(),
                      .gradient = gradient.data_ptr<float>(),
                      .first_moment = first.data_ptr<float>(),
                      .second_moment = second.data_ptr<float>(),
                      .count = value.numel()},
                     factors);
  // Torch has not seen that write.
  value.unsafeGetTensorImpl()->bump_version();
}

void step_by_tensors(const at::Tensor& value, const at::Tensor& gradient, const at::Tensor& first,
                     const at::Tensor& second, const kernels::AdamFactors& factors) {
  const at::Tensor scaled = gradient * factors.gradient_scale + value * factors.l2;
  first.mul_(factors.beta1).add_(scaled, factors.new_first);
  second.mul_(factors.beta2).addcmul_(scaled, scaled, factors.new_second);
  const at::Tensor deviation = (second.sqrt() * factors.deviation_scale).add_(factors.epsilon);
  value.mul_(factors.keep).addcdiv_(first, deviation, -factors.step_size);
}

std::string first_moment(const std::string& name) {
  return name + ".first_moment";
}
std::string second_moment(const std::string& name) {
  return name + ".second_moment";
}
constexpr const char* kSteps = "steps";

}  // namespace

AdamOptions adam_options(const TrainConfig& config) {
  return {.kind = config.optimizer,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon,
          .weight_decay = config.weight_decay};
}

Adam::Adam(std::vector<NamedParameter> parameters, const AdamOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  check(options_);
  check(parameters_);
  const at::NoGradGuard no_gradient;
  for (const NamedParameter& parameter : parameters_) {
    const auto zeros = [&] { return at::zeros(parameter.value.sizes(), parameter.value.options()); };
    moments_.push_back({.first = zeros(), .second = zeros()});
  }
}

void Adam::step(double learning_rate, double gradient_scale) {
  require<InputError>(std::isfinite(learning_rate) && learning_rate >= 0.0, "learning rate is ", learning_rate,
                      ", but must be finite and at least 0");
  require<InputError>(std::isfinite(gradient_scale), "gradient scale is ", gradient_scale,
                      ", but must be finite; skip a step whose gradients are not");
  const at::NoGradGuard no_gradient;
  kernels::AdamStep settings{.step = steps_ + 1,
                             .learning_rate = learning_rate,
                             .beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .epsilon = options_.epsilon,
                             .gradient_scale = gradient_scale};
  const kernels::AdamFactors without_decay = kernels::adam_factors(settings);
  (options_.kind == OptimizerKind::adamw ? settings.decoupled_decay : settings.l2) = options_.weight_decay;
  const kernels::AdamFactors with_decay = kernels::adam_factors(settings);
  // All gradients are looked at before the first value changes.
  std::vector<at::Tensor> gradients;
  for (const NamedParameter& parameter : parameters_) gradients.push_back(dense_gradient(parameter));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const at::Tensor& value = parameters_[i].value;
    const kernels::AdamFactors& factors = parameters_[i].decay ? with_decay : without_decay;
    if (is_plain(value) && gradients[i].scalar_type() == at::kFloat && gradients[i].device().is_cpu()) {
      step_by_kernel(value, gradients[i].contiguous(), moments_[i].first, moments_[i].second, factors);
    } else {
      step_by_tensors(value, gradients[i], moments_[i].first, moments_[i].second, factors);
    }
  }
  ++steps_;
}

void Adam::zero_gradients() {
  for (NamedParameter& parameter : parameters_) parameter.value.mutable_grad().reset();
}

std::map<std::string, at::Tensor> Adam::state() const {
  std::map<std::string, at::Tensor> state{{kSteps, at::full({}, steps_, at::kLong)}};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace(first_moment(parameters_[i].name), moments_[i].first);
    state.emplace(second_moment(parameters_[i].name), moments_[i].second);
  }
  return state;
}

void Adam::load_state(const std::map<std::string, at::Tensor>& state) {
  const at::NoGradGuard no_gradient;
  const std::map<std::string, at::Tensor> own = this->state();
  for (const auto& [name, tensor] : own) {
    const auto found = state.find(name);
    require<InputError>(found != state.end() && found->second.defined(), "optimiser state has no \"", name,
                        "\"; it belongs to another model");
    require<InputError>(found->second.sizes() == tensor.sizes(), "optimiser state \"", name, "\" is ",
                        found->second.sizes(), ", but must be ", tensor.sizes());
    require<InputError>(found->second.scalar_type() == tensor.scalar_type(), "optimiser state \"", name, "\" is ",
                        found->second.scalar_type(), ", but must be ", tensor.scalar_type());
  }
  for (const auto& [name, tensor] : state) {
    require<InputError>(own.contains(name), "optimiser state has \"", name,
                        "\", which no parameter of this model has; it belongs to another model");
  }
  const auto steps = state.at(kSteps).item<std::int64_t>();
  require<InputError>(steps >= 0, "optimiser state \"", kSteps, "\" is ", steps, ", but must be at least 0");
  steps_ = steps;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    moments_[i].first.copy_(state.at(first_moment(parameters_[i].name)));
    moments_[i].second.copy_(state.at(second_moment(parameters_[i].name)));
  }
}

}  // namespace routing
