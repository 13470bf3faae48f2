#include "routing/ops/layer_norm.h"

#include "routing/core/error.h"
#include "routing/kernels/pointwise/layer_norm.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cstddef>
#include <vector>

namespace routing {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

OptionalTensor if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor.contiguous()) : c10::nullopt;
}

void check_call(const at::Tensor& input, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  require<InputError>(input.dim() >= 1 && input.size(-1) >= 1, "layer_norm: input is ", input.sizes(),
                      ", but must be [..., width] with a width of at least 1");
  require<InputError>(input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble,
                      "layer_norm: input holds ", input.scalar_type(), ", but must hold Float or Double");
  require<InputError>(eps >= 0.0, "layer_norm: eps is ", eps, ", but must not be negative");
  const auto check_vector = [&](const at::Tensor& vector, const char* name) {
    if (!vector.defined()) return;
    require<InputError>(vector.dim() == 1 && vector.size(0) == input.size(-1), "layer_norm: ", name, " is ",
                        vector.sizes(), ", but must be [", input.size(-1), "]");
    require<InputError>(vector.scalar_type() == input.scalar_type() && vector.device() == input.device(),
                        "layer_norm: ", name, " is ", vector.scalar_type(), " on ", vector.device().str(),
                        ", but input is ", input.scalar_type(), " on ", input.device().str());
  };
  check_vector(gain, "gain");
  check_vector(bias, "bias");
}

bool takes_kernels(const at::Tensor& input) {
  return input.device().is_cpu() && input.scalar_type() == at::kFloat;
}

float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

// Heads of a projection: [batch, heads, tokens, width] in any order in memory but for the last. Rows of the kernels.
bool has_placed_rows(const at::Tensor& input) {
  return takes_kernels(input) && input.dim() == 4 && input.stride(3) == 1 && input.numel() > 0;
}

std::int64_t num_rows(const at::Tensor& rows) {
  return rows.numel() / rows.size(-1);
}

// Of rows [rows, width], contiguous, or [batch, heads, tokens, width] with strides.
kernels::RowPlaces places_of(const at::Tensor& rows) {
  if (rows.dim() != 4) return {};
  return {rows.size(1), rows.size(2), rows.stride(0), rows.stride(1), rows.stride(2)};
}

kernels::NormInputs kernel_inputs(const at::Tensor& rows, const at::Tensor& gain, const at::Tensor& bias) {
  return {.rows = rows.data_ptr<float>(),
          .num_rows = num_rows(rows),
          .width = rows.size(-1),
          .places = places_of(rows),
          .gain = data_or_null(gain),
          .bias = data_or_null(bias)};
}

// The order in memory of `rows`, without gaps, so that gradients of transposed projections need no copy.
at::Tensor empty_in_order_of(const at::Tensor& rows) {
  at::Tensor dense = at::empty_like(rows, at::MemoryFormat::Preserve);
  return dense.stride(-1) == 1 ? dense : at::empty(rows.sizes(), rows.options());
}

// Do the heads of placed rows stand inside their tokens?
bool heads_are_inside(const at::Tensor& rows) {
  return rows.dim() == 4 && rows.stride(1) < rows.stride(2);
}

// The gradient of rows that were normalised without gain and bias, from what they became: contiguous, whatever the
// order of the rows was.
at::Tensor gradient_from_normalised(const at::Tensor& d_output, const at::Tensor& normalised, const at::Tensor& inverse,
                                    bool inside) {
  at::Tensor d = at::empty(normalised.sizes(), normalised.options());
  if (inside) {
    d = at::empty({normalised.size(0), normalised.size(2), normalised.size(1), normalised.size(3)}, d.options())
            .transpose(1, 2);
  }
  kernels::layer_norm_gradient({.rows = normalised.data_ptr<float>(),
                                .num_rows = num_rows(normalised),
                                .width = normalised.size(-1),
                                .places = places_of(d),
                                .normalised = true},
                               {.inverse_deviation = inverse.data_ptr<float>()}, d_output.data_ptr<float>(),
                               {.rows = d.data_ptr<float>(), .places = places_of(d)});
  return d;
}

struct Normalised {
  at::Tensor output, mean, inverse_deviation;
};

Normalised normalise(const at::Tensor& rows, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  if (takes_kernels(rows)) {
    Normalised result{at::empty(rows.sizes(), rows.options()), at::empty({num_rows(rows)}, rows.options()),
                      at::empty({num_rows(rows)}, rows.options())};
    kernels::layer_norm(kernel_inputs(rows, gain, bias), eps,
                        {result.mean.data_ptr<float>(), result.inverse_deviation.data_ptr<float>()},
                        result.output.data_ptr<float>());
    return result;
  }
  const at::Tensor mean = rows.mean(1);
  const at::Tensor centred = rows - mean.unsqueeze(1);
  const at::Tensor inverse = (centred.square().mean(1) + eps).rsqrt();
  at::Tensor output = centred * inverse.unsqueeze(1);
  if (gain.defined()) output = output * gain;
  if (bias.defined()) output = output + bias;
  return {output, mean, inverse};
}

// Of rows in any number of dimensions; contiguous, unless they are placed rows.
at::Tensor normalised_rows(const at::Tensor& rows, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  const auto contiguous = [](const at::Tensor& vector) { return vector.defined() ? vector.contiguous() : vector; };
  const at::Tensor gain_values = contiguous(gain);
  const at::Tensor bias_values = contiguous(bias);
  at::Tensor output = at::empty(rows.sizes(), rows.options());
  const auto count = static_cast<std::size_t>(num_rows(rows));
  std::vector<float> statistics(2 * count);
  kernels::layer_norm(kernel_inputs(rows, gain_values, bias_values), eps,
                      {statistics.data(), statistics.data() + count}, output.data_ptr<float>());
  return output;
}

struct Gradients {
  at::Tensor rows, gain, bias;
};

// `more` is added to the gradient of the rows; undefined means zero.
Gradients kernel_gradients(const at::Tensor& d_output, const at::Tensor& rows, const at::Tensor& gain,
                           const Normalised& saved, bool with_bias, const at::Tensor& more = {}) {
  Gradients d;
  d.rows = empty_in_order_of(rows);
  if (gain.defined()) d.gain = at::empty_like(gain);
  if (with_bias) d.bias = at::empty({rows.size(-1)}, rows.options());
  kernels::layer_norm_gradient(
      kernel_inputs(rows, gain, {}), {saved.mean.data_ptr<float>(), saved.inverse_deviation.data_ptr<float>()},
      d_output.data_ptr<float>(),
      {d.rows.data_ptr<float>(), data_or_null(d.gain), data_or_null(d.bias), places_of(d.rows), data_or_null(more)});
  return d;
}

Gradients tensor_gradients(const at::Tensor& d_output, const at::Tensor& rows, const at::Tensor& gain,
                           const Normalised& saved, bool with_bias) {
  const at::Tensor inverse = saved.inverse_deviation.unsqueeze(1);
  const at::Tensor normalised = (rows - saved.mean.unsqueeze(1)) * inverse;
  const at::Tensor g = gain.defined() ? d_output * gain : d_output;
  Gradients d;
  d.rows = (g - g.mean(1, /*keepdim=*/true) - normalised * (g * normalised).mean(1, /*keepdim=*/true)) * inverse;
  if (gain.defined()) d.gain = (d_output * normalised).sum(0);
  if (with_bias) d.bias = d_output.sum(0);
  return d;
}

// On rows: input [rows, width], contiguous, or placed rows.
class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows,
                            const OptionalTensor& optional_gain, const OptionalTensor& optional_bias, double eps) {
    const at::Tensor gain = optional_gain.value_or(at::Tensor());
    const at::Tensor bias = optional_bias.value_or(at::Tensor());
    const Normalised result = normalise(rows, gain, bias, eps);
    // Who reads the output keeps it anyway, and what the rows were cut from can go.
    const bool from_output = takes_kernels(rows) && !gain.defined() && !bias.defined();
    context->save_for_backward(
        {from_output ? result.output : rows, gain, from_output ? at::Tensor() : result.mean, result.inverse_deviation});
    context->saved_data["bias"] = bias.defined();
    context->saved_data["inside"] = heads_are_inside(rows);
    context->saved_data["from output"] = from_output;
    return result.output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("layer_norm");
    const auto saved = context->get_saved_variables();
    const Normalised statistics{{}, saved[2], saved[3]};
    const bool with_bias = context->saved_data["bias"].toBool();
    const at::Tensor d_output = gradients[0].contiguous();
    if (context->saved_data["from output"].toBool()) {
      const bool inside = context->saved_data["inside"].toBool();
      return {gradient_from_normalised(d_output, saved[0], saved[3], inside), at::Tensor(), at::Tensor(), at::Tensor()};
    }
    const Gradients d = takes_kernels(saved[0]) ? kernel_gradients(d_output, saved[0], saved[1], statistics, with_bias)
                                                : tensor_gradients(d_output, saved[0], saved[1], statistics, with_bias);
    return {d.rows, d.gain, d.bias, at::Tensor()};
  }
};

// On rows: input [rows, width], contiguous, by the kernels. Returns the rows as well.
class NormAndInputFunction : public torch::autograd::Function<NormAndInputFunction> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& rows,
                                                const OptionalTensor& optional_gain,
                                                const OptionalTensor& optional_bias, double eps) {
    const at::Tensor output = LayerNormFunction::forward(context, rows, optional_gain, optional_bias, eps);
    return {output, rows.detach()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("layer_norm_and_input");
    if (!gradients[0].defined()) return {gradients[1], at::Tensor(), at::Tensor(), at::Tensor()};
    if (!gradients[1].defined()) return LayerNormFunction::backward(context, {gradients[0]});
    const auto saved = context->get_saved_variables();
    const Gradients d = kernel_gradients(gradients[0].contiguous(), saved[0], saved[1], {{}, saved[2], saved[3]},
                                         context->saved_data["bias"].toBool(), gradients[1].contiguous());
    return {d.rows, d.gain, d.bias, at::Tensor()};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& input, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  check_call(input, gain, bias, eps);
  // Without a graph there is nothing to save for; a row at a time, that would cost more than the norm.
  if (!at::GradMode::is_enabled() && takes_kernels(input)) {
    return normalised_rows(has_placed_rows(input) ? input : input.contiguous(), gain, bias, eps);
  }
  if (has_placed_rows(input)) return LayerNormFunction::apply(input, if_defined(gain), if_defined(bias), eps);
  const at::Tensor rows = input.reshape({-1, input.size(-1)}).contiguous();
  return LayerNormFunction::apply(rows, if_defined(gain), if_defined(bias), eps).view(input.sizes());
}

NormAndInput layer_norm_and_input(const at::Tensor& input, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  if (!at::GradMode::is_enabled() || !takes_kernels(input) || !input.is_contiguous()) {
    return {layer_norm(input, gain, bias, eps), input};
  }
  check_call(input, gain, bias, eps);
  const at::Tensor rows = input.view({-1, input.size(-1)});
  const auto results = NormAndInputFunction::apply(rows, if_defined(gain), if_defined(bias), eps);
  return {results[0].view(input.sizes()), results[1].view(input.sizes())};
}

}  // namespace routing
