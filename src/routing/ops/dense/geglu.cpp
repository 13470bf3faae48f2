#include "routing/ops/dense/geglu.h"

#include "routing/core/error.h"
#include "routing/kernels/pointwise/geglu.h"

#include <torch/csrc/autograd/custom_function.h>

namespace routing {
namespace {

bool takes_kernel(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat;
}

class GegluFunction : public torch::autograd::Function<GegluFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& gate,
                            const at::Tensor& value) {
    const at::Tensor g = gate.contiguous();
    const at::Tensor v = value.contiguous();
    context->save_for_backward({g, v});
    at::Tensor result = at::empty_like(g);
    kernels::geglu_forward({.gate = g.data_ptr<float>(), .value = v.data_ptr<float>(), .count = g.numel()},
                           result.data_ptr<float>());
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor d_result = gradients[0].contiguous();
    at::Tensor d_gate = at::empty_like(saved[0]);
    at::Tensor d_value = at::empty_like(saved[1]);
    kernels::geglu_backward(
        {.gate = saved[0].data_ptr<float>(), .value = saved[1].data_ptr<float>(), .count = saved[0].numel()},
        d_result.data_ptr<float>(), d_gate.data_ptr<float>(), d_value.data_ptr<float>());
    return {d_gate, d_value};
  }
};

}  // namespace

at::Tensor geglu(const at::Tensor& gate, const at::Tensor& value) {
  require<InputError>(gate.sizes() == value.sizes() && gate.scalar_type() == value.scalar_type(), "geglu: gate is ",
                      gate.scalar_type(), " ", gate.sizes(), " and value ", value.scalar_type(), " ", value.sizes(),
                      "; they must agree");
  if (takes_kernel(gate)) return GegluFunction::apply(gate, value);
  return at::gelu(gate, "tanh") * value;
}

}  // namespace routing
