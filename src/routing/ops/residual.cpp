#include "routing/ops/residual.h"

#include "routing/core/error.h"
#include "routing/kernels/pointwise/residual.h"

#include <torch/csrc/autograd/custom_function.h>

namespace routing {
namespace {

bool takes_kernels(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

at::Tensor sum(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor result = at::empty_like(x);
  kernels::add(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), result.data_ptr<float>());
  return result;
}

class ResidualFunction : public torch::autograd::Function<ResidualFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* /*context*/, const at::Tensor& x, const at::Tensor& y) {
    return sum(x, y);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0], gradients[0]};
  }
};

}  // namespace

at::Tensor residual_sum(const at::Tensor& x, const at::Tensor& y) {
  require<InputError>(x.sizes() == y.sizes(), "residual_sum: x is ", x.sizes(), ", but y is ", y.sizes());
  if (!takes_kernels(x) || !takes_kernels(y)) return x + y;
  return at::GradMode::is_enabled() ? ResidualFunction::apply(x, y) : sum(x, y);
}

}  // namespace routing
