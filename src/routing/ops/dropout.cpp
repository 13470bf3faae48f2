#include "routing/ops/dropout.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/kernels/pointwise/dropout.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <bit>
#include <vector>

namespace routing {
namespace {

void check_call(const at::Tensor& input, const DropoutDraw& draw) {
  require<InputError>(input.dim() == 3, "dropout: input is ", input.sizes(), ", but must be [batch, tokens, width]");
  require<InputError>(input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble, "dropout: input holds ",
                      input.scalar_type(), ", but must hold Float or Double");
  require<InputError>(draw.probability >= 0.0 && draw.probability < 1.0, "dropout: probability is ", draw.probability,
                      ", but must be at least 0 and below 1");
  const at::Tensor& ids = draw.sample_ids;
  if (!ids.defined()) return;
  require<InputError>(ids.scalar_type() == at::kLong && ids.dim() == 1 && ids.size(0) == input.size(0),
                      "dropout: sample_ids are ", ids.scalar_type(), " ", ids.sizes(), ", but must be Long [",
                      input.size(0), "]");
}

// As the bits of an int64 tensor on the CPU.
at::Tensor sample_keys(const at::Tensor& input, const DropoutDraw& draw) {
  at::Tensor keys = at::empty({input.size(0)}, at::kLong);
  if (input.is_meta()) return keys;
  auto* bits = keys.data_ptr<std::int64_t>();
  for (const std::uint64_t key : dropout_keys(draw, input.size(0))) *bits++ = std::bit_cast<std::int64_t>(key);
  return keys;
}

struct Draw {
  double probability = 0.0;
  std::int64_t first_token = 0;
};

at::Tensor drop(const at::Tensor& input, const at::Tensor& keys, const Draw& draw) {
  if (input.is_meta()) return at::empty_like(input);
  if (!input.device().is_cpu()) {
    const at::Tensor ones = at::ones(input.sizes(), at::TensorOptions(input.scalar_type()));
    return input * drop(ones, keys, draw).to(input.device());
  }
  const at::Tensor values = input.contiguous();
  at::Tensor output = at::empty_like(values);
  std::vector<std::uint64_t> unsigned_keys;
  for (std::int64_t sample = 0; sample < input.size(0); ++sample) {
    unsigned_keys.push_back(std::bit_cast<std::uint64_t>(keys.data_ptr<std::int64_t>()[sample]));
  }
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "dropout", [&] {
    kernels::dropout(values.data_ptr<scalar_t>(),
                     {.num_samples = input.size(0),
                      .num_tokens = input.size(1),
                      .width = input.size(2),
                      .first_token = draw.first_token},
                     unsigned_keys.data(), draw.probability, output.data_ptr<scalar_t>());
  });
  return output;
}

class DropoutFunction : public torch::autograd::Function<DropoutFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input, const at::Tensor& keys,
                            const Draw& draw) {
    context->save_for_backward({keys});
    context->saved_data["probability"] = draw.probability;
    context->saved_data["first_token"] = draw.first_token;
    return drop(input, keys, draw);
  }
  // Linear: the gradient goes through the very same elements, drawn anew instead of kept in memory.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("dropout");
    const Draw draw{.probability = context->saved_data["probability"].toDouble(),
                    .first_token = context->saved_data["first_token"].toInt()};
    return {drop(gradients[0], context->get_saved_variables()[0], draw), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

std::uint64_t dropout_sample_key(std::uint64_t key, std::int64_t sample_id) {
  return stream_key(key, "dropout", {static_cast<std::uint64_t>(sample_id)});
}

std::vector<std::uint64_t> dropout_keys(const DropoutDraw& draw, std::int64_t batch) {
  const at::Tensor ids = draw.sample_ids.defined() ? draw.sample_ids.cpu().contiguous() : at::arange(batch, at::kLong);
  std::vector<std::uint64_t> keys;
  for (std::int64_t sample = 0; sample < batch; ++sample) {
    keys.push_back(dropout_sample_key(draw.key, ids.data_ptr<std::int64_t>()[sample]));
  }
  return keys;
}

at::Tensor dropout(const at::Tensor& input, const DropoutDraw& draw) {
  check_call(input, draw);
  if (draw.probability == 0.0) return input;
  return DropoutFunction::apply(input, sample_keys(input, draw),
                                Draw{.probability = draw.probability, .first_token = draw.first_token});
}

}  // namespace routing
