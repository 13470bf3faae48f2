#include "routing/ops/commitment.h"

#include "routing/core/error.h"
#include "routing/kernels/centroids/commitment.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace routing {
namespace {

kernels::CommitmentInputs kernel_inputs(const at::Tensor& vectors, const at::Tensor& choice,
                                        const at::Tensor& centroids) {
  return {.rows = vectors.data_ptr<float>(),
          .choice = choice.data_ptr<std::int32_t>(),
          .centroids = centroids.data_ptr<float>(),
          .num_rows = choice.numel(),
          .rows_per_head = vectors.size(2),
          .heads = vectors.size(1),
          .clusters = centroids.size(1),
          .dim = vectors.size(3)};
}

// All three contiguous.
class CommitmentFunction : public torch::autograd::Function<CommitmentFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& vectors,
                            const at::Tensor& choice, const at::Tensor& centroids) {
    const kernels::CommitmentSum sum = kernels::commitment_sum(kernel_inputs(vectors, choice, centroids));
    const double numbers = static_cast<double>(std::max<std::int64_t>(1, sum.rows) * vectors.size(3));
    context->save_for_backward({vectors, choice, centroids});
    context->saved_data["numbers"] = numbers;
    return at::scalar_tensor(sum.squares / numbers, vectors.options());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("commitment_loss");
    const auto saved = context->get_saved_variables();
    const double factor = 2.0 * gradients[0].item<double>() / context->saved_data["numbers"].toDouble();
    at::Tensor gradient = at::empty_like(saved[0]);
    kernels::commitment_gradient(kernel_inputs(saved[0], saved[1], saved[2]), static_cast<float>(factor),
                                 gradient.data_ptr<float>());
    return {gradient, at::Tensor(), at::Tensor()};
  }
};

at::Tensor loss_of_tensors(const at::Tensor& vectors, const at::Tensor& choice, const at::Tensor& centroids) {
  const at::Tensor real = (choice >= 0).to(vectors.device());
  const at::Tensor index = choice.to(vectors.device(), at::kLong).clamp_min(0);
  const std::int64_t heads = vectors.size(1);
  const at::Tensor first = at::arange(heads, index.options()).view({1, heads, 1}) * centroids.size(1);
  const at::Tensor chosen = centroids.to(vectors.options()).flatten(0, 1).index_select(0, (index + first).flatten());
  const at::Tensor squares = (vectors - chosen.view(vectors.sizes())).square().sum(3);
  const at::Tensor count = real.sum().clamp_min(1) * vectors.size(3);
  // Sequence by sequence first: one sum over everything would be cut by the number of threads.
  return at::where(real, squares, at::zeros_like(squares)).sum(2).sum() / count;
}

}  // namespace

at::Tensor commitment_loss(const at::Tensor& vectors, const at::Tensor& choice, const at::Tensor& centroids) {
  require<InputError>(vectors.dim() == 4 && choice.sizes() == vectors.sizes().slice(0, 3),
                      "commitment_loss: vectors are ", vectors.sizes(), " and choices ", choice.sizes(),
                      ", but must be [batch, heads, tokens, dim] and [batch, heads, tokens]");
  require<InputError>(
      centroids.dim() == 3 && centroids.size(0) == vectors.size(1) && centroids.size(2) == vectors.size(3),
      "commitment_loss: centroids are ", centroids.sizes(), ", but vectors of ", vectors.sizes(), " need [",
      vectors.size(1), ", clusters, ", vectors.size(3), "]");
  require<InputError>(choice.scalar_type() == at::kInt && choice.device().is_cpu(), "commitment_loss: choices are ",
                      choice.scalar_type(), " on ", choice.device().str(), ", but must be Int on the CPU");
  if (!vectors.device().is_cpu() || vectors.scalar_type() != at::kFloat) {
    return loss_of_tensors(vectors, choice, centroids);
  }
  // A copy: centroids may move before the gradient is asked for.
  const at::Tensor now = at::empty(centroids.sizes(), vectors.options().requires_grad(false)).copy_(centroids.detach());
  return CommitmentFunction::apply(vectors.contiguous(), choice.contiguous(), now);
}

}  // namespace routing
