#include "routing/optim/adam.h"

#include "routing/core/error.h"
#include "routing/kernels/optim/adam_step.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace routing {
namespace {

void check(const AdamOptions& options) {
  const auto is_share = [](double beta) { return beta >= 0.0 && beta < 1.0; };
  require<ConfigError>(is_share(options.beta1), "train.beta1 is ", options.beta1, ", but must be in [0, 1)");
  require<ConfigError>(is_share(options.beta2), "train.beta2 is ", options.beta2, ", but must be in [0, 1)");
  require<ConfigError>(std::isfinite(options.epsilon) && options.epsilon >= 0.0, "train.epsilon is ", options.epsilon,
                       ", but must be finite and at least 0");
  check_weight_decay(options.weight_decay);
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

}  // namespace

AdamOptions adam_options(const TrainConfig& config) {
  require<ConfigError>(config.optimizer == OptimizerKind::adam || config.optimizer == OptimizerKind::adamw,
                       "train.optimizer is ", to_string(config.optimizer), ", but Adam is adam or adamw");
  return {.kind = config.optimizer,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon,
          .weight_decay = config.weight_decay};
}

Adam::Adam(std::vector<NamedParameter> parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  check(options_);
  const at::NoGradGuard no_gradient;
  for (const NamedParameter& parameter : this->parameters()) {
    const auto zeros = [&] { return at::zeros(parameter.value.sizes(), parameter.value.options()); };
    moments_.push_back({.first = zeros(), .second = zeros()});
  }
}

void Adam::update(const Step& step) {
  kernels::AdamStep settings{.step = steps() + 1,
                             .learning_rate = step.learning_rate,
                             .beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .epsilon = options_.epsilon,
                             .gradient_scale = step.gradient_scale};
  const kernels::AdamFactors without_decay = kernels::adam_factors(settings);
  (options_.kind == OptimizerKind::adamw ? settings.decoupled_decay : settings.l2) = options_.weight_decay;
  const kernels::AdamFactors with_decay = kernels::adam_factors(settings);
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const at::Tensor& gradient = step.gradients[i];
    if (!gradient.defined()) continue;
    const at::Tensor& value = parameters()[i].value;
    const kernels::AdamFactors& factors = parameters()[i].decay ? with_decay : without_decay;
    if (is_plain(value) && gradient.scalar_type() == at::kFloat && gradient.device().is_cpu()) {
      step_by_kernel(value, gradient.contiguous(), moments_[i].first, moments_[i].second, factors);
    } else {
      step_by_tensors(value, gradient, moments_[i].first, moments_[i].second, factors);
    }
  }
}

std::map<std::string, at::Tensor> Adam::moments() const {
  std::map<std::string, at::Tensor> result;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    result.emplace(parameters()[i].name + ".first_moment", moments_[i].first);
    result.emplace(parameters()[i].name + ".second_moment", moments_[i].second);
  }
  return result;
}

}  // namespace routing
