#include "routing/optim/gradient_norm.h"

#include "routing/core/error.h"
#include "routing/kernels/optim/sum_of_squares.h"

#include <cmath>

namespace routing {
namespace {

// Of PyTorch's clip_grad_norm_.
constexpr double kNormEpsilon = 1e-6;

double squared_norm(const at::Tensor& gradient) {
  if (gradient.device().is_cpu() && gradient.scalar_type() == at::kFloat) {
    const at::Tensor numbers = gradient.contiguous();
    return kernels::sum_of_squares(numbers.data_ptr<float>(), numbers.numel());
  }
  const at::Tensor numbers = gradient.to(at::kCPU, at::kDouble).contiguous();
  return kernels::sum_of_squares(numbers.data_ptr<double>(), numbers.numel());
}

}  // namespace

at::Tensor dense_gradient(const NamedParameter& parameter) {
  const at::Tensor& gradient = parameter.value.grad();
  require<InputError>(!gradient.defined() || gradient.layout() == at::kStrided, "the gradient of \"", parameter.name,
                      "\" is sparse, but must be dense");
  return gradient;
}

double gradient_norm(const std::vector<NamedParameter>& parameters) {
  const at::NoGradGuard no_gradient;
  double sum = 0.0;
  for (const NamedParameter& parameter : parameters) {
    const at::Tensor gradient = dense_gradient(parameter);
    if (gradient.defined()) sum += squared_norm(gradient);
  }
  return std::sqrt(sum);
}

double clip_scale(double norm, double largest) {
  require<InputError>(largest >= 0.0, "largest gradient norm is ", largest,
                      ", but must be at least 0; 0 means no clipping");
  if (largest == 0.0) return 1.0;
  const double scale = largest / (norm + kNormEpsilon);
  // Written so that an undefined norm is not taken for a short one.
  return scale > 1.0 ? 1.0 : scale;
}

}  // namespace routing
