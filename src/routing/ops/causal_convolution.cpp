#include "routing/ops/causal_convolution.h"

#include "routing/core/error.h"
#include "routing/kernels/causal_convolution.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace routing {
namespace {

kernels::ConvolutionShape shape_of(const at::Tensor& rows, const at::Tensor& weight) {
  return {.batch = rows.size(0), .tokens = rows.size(1), .channels = rows.size(2), .taps = weight.size(0)};
}

at::Tensor convolve(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& before) {
  const at::Tensor x = rows.contiguous();
  const at::Tensor w = weight.contiguous();
  const at::Tensor past = before.defined() ? before.contiguous() : before;
  at::Tensor result = at::empty_like(x);
  kernels::causal_convolution(shape_of(x, w), x.data_ptr<float>(), w.data_ptr<float>(),
                              past.defined() ? past.data_ptr<float>() : nullptr, result.data_ptr<float>());
  return result;
}

class ConvolutionFunction : public torch::autograd::Function<ConvolutionFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows,
                            const at::Tensor& weight) {
    context->save_for_backward({rows, weight});
    return convolve(rows, weight, {});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor x = saved[0].contiguous();
    const at::Tensor w = saved[1].contiguous();
    const at::Tensor dy = gradients[0].contiguous();
    at::Tensor dx = at::empty_like(x);
    at::Tensor d_weight = at::empty_like(w);
    kernels::causal_convolution_backward(shape_of(x, w), x.data_ptr<float>(), w.data_ptr<float>(), dy.data_ptr<float>(),
                                         dx.data_ptr<float>(), d_weight.data_ptr<float>());
    return {dx, d_weight};
  }
};

at::Tensor convolve_tensors(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& before) {
  const std::int64_t past = weight.size(0) - 1;
  const at::Tensor all = before.defined() ? at::cat({before, rows}, 1) : at::constant_pad_nd(rows, {0, 0, past, 0});
  at::Tensor result = rows * weight[0];
  for (std::int64_t k = 1; k <= past; ++k) result = result + all.narrow(1, past - k, rows.size(1)) * weight[k];
  return result;
}

}  // namespace

at::Tensor causal_convolution(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& before) {
  require<InputError>(rows.dim() == 3 && weight.dim() == 2 && weight.size(0) >= 1 && weight.size(1) == rows.size(2) &&
                          rows.scalar_type() == weight.scalar_type(),
                      "causal_convolution: rows are ", rows.scalar_type(), " ", rows.sizes(), " and weights ",
                      weight.scalar_type(), " ", weight.sizes(),
                      "; they must be [batch, tokens, channels] and [taps, channels] of one type");
  if (before.defined()) {
    const std::vector<std::int64_t> expected{rows.size(0), weight.size(0) - 1, rows.size(2)};
    require<InputError>(before.sizes() == at::IntArrayRef(expected) && before.scalar_type() == rows.scalar_type(),
                        "causal_convolution: the rows before are ", before.scalar_type(), " ", before.sizes(),
                        ", but must be ", rows.scalar_type(), " ", at::IntArrayRef(expected));
    const bool differentiated =
        at::GradMode::is_enabled() && (rows.requires_grad() || weight.requires_grad() || before.requires_grad());
    require<InputError>(!differentiated,
                        "causal_convolution: rows before the first were given where gradients are "
                        "wanted; differentiate whole sequences");
  }
  if (!rows.device().is_cpu() || rows.scalar_type() != at::kFloat) return convolve_tensors(rows, weight, before);
  return before.defined() ? convolve(rows, weight, before) : ConvolutionFunction::apply(rows, weight);
}

}  // namespace routing
