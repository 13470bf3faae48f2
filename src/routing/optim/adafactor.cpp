#include "routing/optim/adafactor.h"

#include "routing/core/error.h"
#include "routing/kernels/optim/adafactor_step.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace routing {
namespace {

void check(const AdafactorOptions& options) {
  require<ConfigError>(std::isfinite(options.decay_exponent) && options.decay_exponent > 0.0,
                       "train.decay_exponent is ", options.decay_exponent, ", but must be finite and above 0");
  require<ConfigError>(std::isfinite(options.update_clip) && options.update_clip >= 0.0, "train.update_clip is ",
                       options.update_clip, ", but must be finite and at least 0; 0 means no clipping");
  check_weight_decay(options.weight_decay);
}

bool is_float_on_cpu(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat;
}

double mean_square(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).square().mean().item<double>();
}

// moment <- k moment + (1 - k) squares.
void mix_in(const at::Tensor& moment, const at::Tensor& squares, double keep) {
  moment.mul_(keep).add_(squares, 1.0 - keep);
}

}  // namespace

AdafactorOptions adafactor_options(const TrainConfig& config) {
  require<ConfigError>(config.optimizer == OptimizerKind::adafactor || config.optimizer == OptimizerKind::adafactorw,
                       "train.optimizer is ", to_string(config.optimizer),
                       ", but Adafactor is adafactor or adafactorw");
  return {.kind = config.optimizer,
          .decay_exponent = config.decay_exponent,
          .update_clip = config.update_clip,
          .relative_step = config.relative_step,
          .weight_decay = config.weight_decay};
}

Adafactor::Adafactor(std::vector<NamedParameter> parameters, const AdafactorOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  check(options_);
  const at::NoGradGuard no_gradient;
  for (const NamedParameter& parameter : this->parameters()) {
    const at::Tensor& value = parameter.value;
    // 1e-30 is nothing in float16.
    const auto type = value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto zeros = [&](at::IntArrayRef sizes) { return at::zeros(sizes, value.options().dtype(type)); };
    if (value.dim() < 2) {
      moments_.push_back({.row = {}, .column = {}, .second = zeros(value.sizes())});
      continue;
    }
    std::vector<std::int64_t> row_sizes = value.sizes().vec();
    std::vector<std::int64_t> column_sizes = row_sizes;
    row_sizes.pop_back();
    column_sizes.erase(column_sizes.end() - 2);
    moments_.push_back({.row = zeros(row_sizes), .column = zeros(column_sizes), .second = {}});
  }
}

// The kernel reads plain memory: a value that is not in order goes there and back as a copy.
void Adafactor::step_by_kernel(const at::Tensor& value, const at::Tensor& gradient, const Moments& moments,
                               const kernels::AdafactorStep& step) {
  const at::Tensor numbers = value.contiguous();
  const at::Tensor gradients = gradient.contiguous();
  if (moments.second.defined()) {
    kernels::adafactor_step(kernels::AdafactorVector{.value = numbers.data_ptr<float>(),
                                                     .gradient = gradients.data_ptr<float>(),
                                                     .second_moment = moments.second.data_ptr<float>(),
                                                     .count = numbers.numel()},
                            step);
  } else {
    const std::int64_t rows = value.size(-2);
    const std::int64_t columns = value.size(-1);
    kernels::adafactor_step(
        kernels::AdafactorMatrices{.value = numbers.data_ptr<float>(),
                                   .gradient = gradients.data_ptr<float>(),
                                   .row_moment = moments.row.data_ptr<float>(),
                                   .column_moment = moments.column.data_ptr<float>(),
                                   .matrices = rows * columns == 0 ? 0 : value.numel() / (rows * columns),
                                   .rows = rows,
                                   .columns = columns},
        step);
  }
  if (numbers.is_same(value)) {
    // Torch has not seen that write.
    value.unsafeGetTensorImpl()->bump_version();
  } else {
    value.copy_(numbers);
  }
}

void Adafactor::step_by_tensors(const at::Tensor& value, const at::Tensor& gradient, const Moments& moments,
                                const kernels::AdafactorStep& step) {
  if (value.numel() == 0) return;
  const double keep = kernels::adafactor_keep(step);
  const auto type = (moments.second.defined() ? moments.second : moments.row).scalar_type();
  const at::Tensor p = value.to(type);
  const at::Tensor g = gradient.to(type) * step.gradient_scale + p * step.l2;
  const at::Tensor squares = g.square().add_(kernels::kAdafactorSquareFloor);
  at::Tensor update;
  if (moments.second.defined()) {
    mix_in(moments.second, squares, keep);
    update = g / moments.second.sqrt();
  } else {
    mix_in(moments.row, squares.mean(-1), keep);
    mix_in(moments.column, squares.mean(-2), keep);
    const at::Tensor row = (moments.row / moments.row.mean(-1, /*keepdim=*/true)).sqrt();
    update = g / row.unsqueeze(-1) / moments.column.sqrt().unsqueeze(-2);
  }
  const double size = kernels::adafactor_step_size(step, mean_square(p), mean_square(update));
  value.copy_(p * (1.0 - step.learning_rate * step.decoupled_decay) - update * size);
}

void Adafactor::update(const Step& step) {
  const kernels::AdafactorStep settings{.step = steps() + 1,
                                        .learning_rate = step.learning_rate,
                                        .decay_exponent = options_.decay_exponent,
                                        .update_clip = options_.update_clip,
                                        .relative_step = options_.relative_step,
                                        .gradient_scale = step.gradient_scale};
  kernels::AdafactorStep with_decay = settings;
  (options_.kind == OptimizerKind::adafactorw ? with_decay.decoupled_decay : with_decay.l2) = options_.weight_decay;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const at::Tensor& gradient = step.gradients[i];
    if (!gradient.defined()) continue;
    const at::Tensor& value = parameters()[i].value;
    const kernels::AdafactorStep& own = parameters()[i].decay ? with_decay : settings;
    if (is_float_on_cpu(value) && is_float_on_cpu(gradient)) {
      step_by_kernel(value, gradient, moments_[i], own);
    } else {
      step_by_tensors(value, gradient, moments_[i], own);
    }
  }
}

std::map<std::string, at::Tensor> Adafactor::moments() const {
  std::map<std::string, at::Tensor> result;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const std::string& name = parameters()[i].name;
    if (moments_[i].second.defined()) {
      result.emplace(name + ".second_moment", moments_[i].second);
    } else {
      result.emplace(name + ".row_moment", moments_[i].row);
      result.emplace(name + ".column_moment", moments_[i].column);
    }
  }
  return result;
}

}  // namespace routing
