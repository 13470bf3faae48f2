#include "routing/ops/unit_length.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

namespace routing {
namespace {

constexpr double kSmallest = 1e-12;
constexpr std::int64_t kRowsPerChunk = 64;

// One sum after the other, in double: how a vector is cut into registers must not show.
template <class Number>
double dot(const Number* a, const Number* b, std::int64_t dim) {
  double sum = 0.0;
  for (std::int64_t d = 0; d < dim; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
  return sum;
}

template <class Number>
double length_of(const Number* x, std::int64_t dim) {
  return std::max(kSmallest, std::sqrt(dot(x, x, dim)));
}

template <class Number>
void forward_rows(const at::Tensor& rows, at::Tensor& result) {
  const std::int64_t dim = rows.size(1);
  parallel_for(0, rows.size(0), kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const Number* x = rows.data_ptr<Number>() + row * dim;
      Number* y = result.data_ptr<Number>() + row * dim;
      const double length = length_of(x, dim);
      for (std::int64_t d = 0; d < dim; ++d) y[d] = static_cast<Number>(static_cast<double>(x[d]) / length);
    }
  });
}

// dx = (dy - y (y . dy)) / |x|; for shorter vectors the length is a constant.
template <class Number>
void backward_rows(const at::Tensor& rows, const at::Tensor& d_result, at::Tensor& d_rows) {
  const std::int64_t dim = rows.size(1);
  parallel_for(0, rows.size(0), kRowsPerChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const Number* x = rows.data_ptr<Number>() + row * dim;
      const Number* dy = d_result.data_ptr<Number>() + row * dim;
      Number* dx = d_rows.data_ptr<Number>() + row * dim;
      const double length = length_of(x, dim);
      const double along = length > kSmallest ? dot(x, dy, dim) / (length * length) : 0.0;
      for (std::int64_t d = 0; d < dim; ++d) {
        dx[d] = static_cast<Number>((static_cast<double>(dy[d]) - along * static_cast<double>(x[d])) / length);
      }
    }
  });
}

class UnitLengthFunction : public torch::autograd::Function<UnitLengthFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows) {
    context->save_for_backward({rows});
    at::Tensor result = at::empty_like(rows);
    AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "unit_length", [&] { forward_rows<scalar_t>(rows, result); });
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("unit_length");
    const at::Tensor rows = context->get_saved_variables()[0];
    const at::Tensor d_result = gradients[0].contiguous();
    at::Tensor d_rows = at::empty_like(rows);
    AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "unit_length",
                               [&] { backward_rows<scalar_t>(rows, d_result, d_rows); });
    return {d_rows};
  }
};

}  // namespace

at::Tensor unit_length(const at::Tensor& vectors) {
  if (!vectors.device().is_cpu()) return vectors / vectors.norm(2, -1, /*keepdim=*/true).clamp_min(kSmallest);
  require<InputError>(
      vectors.dim() >= 1 && (vectors.scalar_type() == at::kFloat || vectors.scalar_type() == at::kDouble),
      "unit_length: vectors are ", vectors.scalar_type(), " ", vectors.sizes(),
      ", but must be Float or Double [..., dim]");
  const at::Tensor rows = vectors.reshape({-1, vectors.size(-1)}).contiguous();
  return UnitLengthFunction::apply(rows).view(vectors.sizes());
}

}  // namespace routing
