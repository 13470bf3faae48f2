#include "routing/ops/dense/linear.h"

#include "routing/core/error.h"
#include "routing/kernels/dense/dense.h"
#include "routing/ops/dense/dense_tensors.h"
#include "routing/ops/dense/packed_weights.h"
#include "routing/ops/one_derivative.h"

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

namespace routing {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

void check_call(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  require<InputError>(weight.dim() == 2 && weight.size(0) >= 1 && weight.size(1) >= 1, "linear: weight is ",
                      weight.sizes(), ", but must be [out, in], both at least 1");
  require<InputError>(input.dim() >= 1 && input.size(-1) == weight.size(1), "linear: input is ", input.sizes(),
                      ", but weight ", weight.sizes(), " takes rows of ", weight.size(1));
  require<InputError>(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), "linear: bias is ",
                      bias.defined() ? bias.sizes() : at::IntArrayRef(), ", but must be [", weight.size(0), "]");
  require<InputError>(input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble, "linear: input holds ",
                      input.scalar_type(), ", but must hold Float or Double");
  const auto check_alike = [&](const at::Tensor& tensor, const char* name) {
    require<InputError>(tensor.scalar_type() == input.scalar_type() && tensor.device() == input.device(),
                        "linear: ", name, " is ", tensor.scalar_type(), " on ", tensor.device().str(),
                        ", but input is ", input.scalar_type(), " on ", input.device().str());
  };
  check_alike(weight, "weight");
  if (bias.defined()) check_alike(bias, "bias");
}

struct LinearGradients {
  at::Tensor input, weight, bias;
};
// Which gradients are wanted.
struct Wanted {
  bool input = true;
  bool weight = true;
  bool bias = true;
};
struct GradientCall {
  LinearOptions options;
  Wanted wanted;
  at::Tensor sum = {};  // if defined, the gradient of the input is added to it and returned as this tensor
};

// input [..., in], contiguous, Float or as it is multiplied.
at::Tensor kernel_forward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                          const LinearOptions& options) {
  c10::SmallVector<std::int64_t, 4> sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = weight.size(0);
  at::Tensor output = at::empty(sizes, weight.options().requires_grad(false));
  const at::Tensor bias_values = bias.defined() ? bias.contiguous() : bias;
  kernels::dense_product(dense_rows(input), input.numel() / weight.size(1),
                         packed_weight(weight, WeightUse::forward, dense_type(options.precision)),
                         {.bias = bias.defined() ? bias_values.data_ptr<float>() : nullptr}, output.data_ptr<float>());
  return output;
}

// input as it is multiplied.
LinearGradients kernel_backward(const at::Tensor& d_output, const at::Tensor& input, const at::Tensor& weight,
                                const GradientCall& call) {
  const auto& [options, wanted, sum] = call;
  const kernels::DenseType type = dense_type(options.precision);
  const std::int64_t rows = input.size(0);
  LinearGradients d;
  if (wanted.input) {
    d.input = sum.defined() ? sum : at::empty(input.sizes(), d_output.options());
    kernels::dense_product(d_output.data_ptr<float>(), rows, packed_weight(weight, WeightUse::data_gradient, type),
                           {.accumulate = sum.defined()}, d.input.data_ptr<float>());
  }
  if (wanted.weight) d.weight = at::empty(weight.sizes(), weight.options());
  if (wanted.bias) d.bias = at::empty({weight.size(0)}, weight.options());
  if (wanted.weight || wanted.bias) {
    kernels::weight_gradient({d_output.data_ptr<float>(), dense_rows(input), rows},
                             {.out = weight.size(0), .in = weight.size(1)}, {.type = type},
                             {.weight = wanted.weight ? d.weight.data_ptr<float>() : nullptr,
                              .bias = wanted.bias ? d.bias.data_ptr<float>() : nullptr});
  }
  return d;
}

// Factors as they are multiplied.
at::Tensor factor(const at::Tensor& values, const LinearOptions& options) {
  const bool rounded = options.precision == MatmulPrecision::bf16 && values.scalar_type() == at::kFloat;
  return rounded ? values.to(at::kBFloat16).to(at::kFloat) : values;
}

at::Tensor reference_forward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                             const LinearOptions& options) {
  const at::Tensor output = at::mm(factor(input, options), factor(weight, options).t());
  return bias.defined() ? output + bias : output;
}

LinearGradients reference_backward(const at::Tensor& d_output, const at::Tensor& input, const at::Tensor& weight,
                                   const LinearOptions& options, const Wanted& wanted) {
  LinearGradients d;
  const at::Tensor d_factor = factor(d_output, options);
  if (wanted.input) d.input = at::mm(d_factor, factor(weight, options));
  if (wanted.weight) d.weight = at::mm(d_factor.t(), factor(input, options));
  if (wanted.bias) d.bias = d_output.sum(0);
  return d;
}

// On rows: input [rows, in], contiguous.
class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const OptionalTensor& optional_bias,
                            const LinearOptions& options) {
    const at::Tensor bias = optional_bias.value_or(at::Tensor());
    const bool by_kernels = takes_dense_kernels(input);
    const at::Tensor kept = by_kernels ? rows_as_multiplied(input, options.precision) : input;
    const at::Tensor output =
        by_kernels ? kernel_forward(kept, weight, bias, options) : reference_forward(input, weight, bias, options);
    context->save_for_backward({kept, weight});
    context->saved_data["bf16"] = options.precision == MatmulPrecision::bf16;
    context->saved_data["bias"] = bias.defined();
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("linear");
    const auto saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const LinearOptions options{.precision = context->saved_data["bf16"].toBool() ? MatmulPrecision::bf16
                                                                                  : MatmulPrecision::fp32};
    const bool has_bias = context->saved_data["bias"].toBool();
    // An absent bias has no edge of its own in the graph.
    const Wanted wanted{.input = context->needs_input_grad(0),
                        .weight = context->needs_input_grad(1),
                        .bias = has_bias && context->needs_input_grad(2)};
    const at::Tensor d_output = gradients[0].contiguous();
    const LinearGradients d = takes_dense_kernels(d_output)
                                  ? kernel_backward(d_output, input, weight, {.options = options, .wanted = wanted})
                                  : reference_backward(d_output, input, weight, options, wanted);
    return {d.input, d.weight, d.bias, at::Tensor()};
  }
};

// On rows: input [rows, in], contiguous, by the kernels.
class BranchesFunction : public torch::autograd::Function<BranchesFunction> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                                                at::TensorList weights, MatmulPrecision precision) {
    torch::autograd::variable_list saved{rows_as_multiplied(input, precision)};
    torch::autograd::variable_list outputs;
    for (const at::Tensor& weight : weights) {
      outputs.push_back(kernel_forward(saved[0], weight, {}, {.precision = precision}));
      saved.push_back(weight);
    }
    context->save_for_backward(saved);
    context->saved_data["bf16"] = precision == MatmulPrecision::bf16;
    return outputs;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("linear_branches");
    const auto saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const LinearOptions options{.precision = context->saved_data["bf16"].toBool() ? MatmulPrecision::bf16
                                                                                  : MatmulPrecision::fp32};
    torch::autograd::variable_list results(gradients.size() + 2);
    for (std::size_t branch = 0; branch < gradients.size(); ++branch) {
      if (!gradients[branch].defined()) continue;
      const Wanted wanted{
          .input = context->needs_input_grad(0), .weight = context->needs_input_grad(branch + 1), .bias = false};
      const LinearGradients d = kernel_backward(gradients[branch].contiguous(), input, saved[branch + 1],
                                                {.options = options, .wanted = wanted, .sum = results[0]});
      results[0] = d.input;
      results[branch + 1] = d.weight;
    }
    return results;
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                  const LinearOptions& options) {
  check_call(input, weight, bias);
  // Without a graph there is nothing to save for; a row at a time, that would cost more than the product.
  if (!at::GradMode::is_enabled() && takes_dense_kernels(input)) {
    return kernel_forward(input.contiguous(), weight, bias, options);
  }
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  const at::Tensor rows = input.reshape({-1, weight.size(1)}).contiguous();
  return LinearFunction::apply(rows, weight, bias.defined() ? OptionalTensor(bias) : c10::nullopt, options).view(sizes);
}

std::vector<at::Tensor> linear_branches(const at::Tensor& input, const std::vector<at::Tensor>& weights,
                                        MatmulPrecision precision) {
  std::vector<at::Tensor> outputs;
  if (weights.size() < 2 || !at::GradMode::is_enabled() || !takes_dense_kernels(input)) {
    for (const at::Tensor& weight : weights) outputs.push_back(linear(input, weight, {}, {.precision = precision}));
    return outputs;
  }
  for (const at::Tensor& weight : weights) check_call(input, weight, {});
  const at::Tensor rows = input.reshape({-1, input.size(-1)}).contiguous();
  outputs = BranchesFunction::apply(rows, at::TensorList(weights), precision);
  std::vector<std::int64_t> sizes = input.sizes().vec();
  for (std::size_t branch = 0; branch < weights.size(); ++branch) {
    sizes.back() = weights[branch].size(0);
    outputs[branch] = outputs[branch].view(sizes);
  }
  return outputs;
}

}  // namespace routing
