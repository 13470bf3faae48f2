#include "routing/ops/dense/gelu.h"

#include "routing/kernels/pointwise/gelu.h"

#include <torch/csrc/autograd/custom_function.h>

namespace routing {
namespace {

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input) {
    const at::Tensor rows = input.contiguous();
    context->save_for_backward({rows});
    at::Tensor result = at::empty_like(rows);
    kernels::gelu_forward(rows.data_ptr<float>(), rows.numel(), result.data_ptr<float>());
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor rows = context->get_saved_variables()[0];
    const at::Tensor d_result = gradients[0].contiguous();
    at::Tensor d_input = at::empty_like(rows);
    kernels::gelu_backward(rows.data_ptr<float>(), d_result.data_ptr<float>(), rows.numel(), d_input.data_ptr<float>());
    return {d_input};
  }
};

}  // namespace

at::Tensor gelu(const at::Tensor& input) {
  if (input.device().is_cpu() && input.scalar_type() == at::kFloat) return GeluFunction::apply(input);
  return at::gelu(input);
}

}  // namespace routing
