#include "support/finite_differences.h"

#include "support/pattern_cases.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

namespace routing::support {
namespace {

// Truncation and rounding of central differences in double balance near the cube root of the machine epsilon.
constexpr double kStep = 1e-5;

std::vector<at::Tensor> leaves_of(const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.detach().clone().set_requires_grad(true));
  return leaves;
}

std::vector<at::Tensor> gradients_of(const at::Tensor& scalar, const std::vector<at::Tensor>& leaves) {
  auto gradients = torch::autograd::grad({scalar}, leaves, {}, /*retain_graph=*/true, /*create_graph=*/false,
                                         /*allow_unused=*/true);
  for (std::size_t index = 0; index < leaves.size(); ++index) {
    if (!gradients[index].defined()) gradients[index] = at::zeros_like(leaves[index]);
  }
  return gradients;
}

// `moved_by` gives the inputs a step along the direction.
template <class MovedBy>
at::Tensor central_difference(const VectorFunction& function, const MovedBy& moved_by) {
  const at::NoGradGuard no_gradient;
  return (function(moved_by(kStep)) - function(moved_by(-kStep))) / (2.0 * kStep);
}

double relative_difference(const at::Tensor& analytic, const at::Tensor& numeric) {
  if (analytic.numel() == 0) return 0.0;
  return ((analytic - numeric).abs() / analytic.abs().clamp_min(1.0)).max().item<double>();
}

}  // namespace

double jacobian_error(const VectorFunction& function, const std::vector<at::Tensor>& inputs) {
  const auto leaves = leaves_of(inputs);
  const at::Tensor outputs = function(leaves);
  // Of each input: [outputs, its elements].
  std::vector<std::vector<at::Tensor>> rows(leaves.size());
  for (std::int64_t row = 0; row < outputs.size(0); ++row) {
    const auto gradients = gradients_of(outputs[row], leaves);
    for (std::size_t index = 0; index < leaves.size(); ++index) rows[index].push_back(gradients[index].reshape({-1}));
  }
  double worst = 0.0;
  for (std::size_t index = 0; index < inputs.size() && outputs.size(0) > 0; ++index) {
    const at::Tensor analytic = at::stack(rows[index]);
    for (std::int64_t element = 0; element < inputs[index].numel(); ++element) {
      const auto moved_by = [&](double step) {
        std::vector<at::Tensor> moved = inputs;
        moved[index] = inputs[index].detach().clone(at::MemoryFormat::Contiguous);
        moved[index].data_ptr<double>()[element] += step;
        return moved;
      };
      worst = std::max(worst, relative_difference(analytic.select(1, element), central_difference(function, moved_by)));
    }
  }
  return worst;
}

double jacobian_error_in_copies(const VectorFunction& function, const std::vector<at::Tensor>& inputs) {
  const auto copies = [&](std::int64_t count) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& input : inputs) all.push_back(input.detach().repeat_interleave(count, 0));
    return all;
  };
  // Copy number o is asked for output o alone.
  const std::int64_t outputs = function(copies(1)).size(1);
  const auto leaves = leaves_of(copies(outputs));
  const auto gradients = gradients_of(function(leaves).diagonal().sum(), leaves);
  double worst = 0.0;
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    const std::int64_t elements = inputs[index].numel();
    const auto moved_by = [&](double step) {
      std::vector<at::Tensor> moved = copies(elements);
      moved[index].view({elements, elements}).diagonal().add_(step);
      return moved;
    };
    const at::Tensor analytic = gradients[index].reshape({outputs, elements}).t();
    worst = std::max(worst, relative_difference(analytic, central_difference(function, moved_by)));
  }
  return worst;
}

double directional_error(const VectorFunction& function, const std::vector<at::Tensor>& inputs, int directions) {
  const auto leaves = leaves_of(inputs);
  const at::Tensor outputs = function(leaves);
  const at::Tensor weights = random_tensor(outputs.sizes(), 77);
  const auto gradients = gradients_of((outputs * weights).sum(), leaves);
  double worst = 0.0;
  for (int number = 0; number < directions; ++number) {
    std::vector<at::Tensor> direction;
    at::Tensor analytic = at::zeros({}, at::kDouble);
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      direction.push_back(random_tensor(inputs[index].sizes(), 100 * static_cast<std::uint64_t>(number) + index + 1));
      analytic = analytic + (gradients[index] * direction[index]).sum();
    }
    const auto moved_by = [&](double step) {
      std::vector<at::Tensor> moved;
      for (std::size_t index = 0; index < inputs.size(); ++index) {
        moved.push_back(inputs[index].detach() + direction[index] * step);
      }
      return moved;
    };
    const at::Tensor numeric = (central_difference(function, moved_by) * weights).sum();
    worst = std::max(worst, relative_difference(analytic, numeric));
  }
  return worst;
}

}  // namespace routing::support
