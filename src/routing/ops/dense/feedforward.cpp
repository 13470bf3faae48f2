#include "routing/ops/dense/feedforward.h"

#include "routing/core/error.h"
#include "routing/kernels/dense/dense.h"
#include "routing/kernels/pointwise/dropout.h"
#include "routing/ops/dense/dense_tensors.h"
#include "routing/ops/dense/linear.h"
#include "routing/ops/dense/packed_weights.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace routing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Hidden rows of one piece in float32: they should stay in the last-level cache between two products.
constexpr std::int64_t kPieceBytes = std::int64_t{8} << 20U;
// Pieces end where weight gradients end a sum of rows, so that cutting changes no bit of them.
constexpr std::int64_t kRowStep = 512;

void check_call(const at::Tensor& input, const FeedforwardWeights& weights) {
  require<InputError>(input.dim() == 3, "feedforward: input is ", input.sizes(),
                      ", but must be [batch, tokens, width]");
  require<InputError>(weights.in.dim() == 2 && weights.in.size(1) == input.size(2) && weights.in.size(0) >= 1 &&
                          weights.in.size(1) >= 1,
                      "feedforward: in is ", weights.in.sizes(), ", but must be [hidden, ", input.size(2), "]");
  const std::int64_t hidden = weights.in.size(0);
  const std::int64_t width = weights.in.size(1);
  require<InputError>(weights.out.dim() == 2 && weights.out.size(0) == width && weights.out.size(1) == hidden,
                      "feedforward: out is ", weights.out.sizes(), ", but must be [", width, ", ", hidden, "]");
  const auto check_bias = [](const at::Tensor& bias, const char* name, std::int64_t size) {
    require<InputError>(bias.defined() && bias.dim() == 1 && bias.size(0) == size, "feedforward: ", name, " is ",
                        bias.defined() ? bias.sizes() : at::IntArrayRef(), ", but must be [", size, "]");
  };
  check_bias(weights.in_bias, "in_bias", hidden);
  check_bias(weights.out_bias, "out_bias", width);
  for (const at::Tensor& weight : {weights.in, weights.in_bias, weights.out, weights.out_bias}) {
    require<InputError>(weight.scalar_type() == input.scalar_type() && weight.device() == input.device(),
                        "feedforward: a weight is ", weight.scalar_type(), " on ", weight.device().str(),
                        ", but input is ", input.scalar_type(), " on ", input.device().str());
  }
}

struct Piece {
  std::int64_t first = 0;
  std::int64_t rows = 0;
};

std::int64_t piece_rows(std::int64_t hidden) {
  const std::int64_t rows = kPieceBytes / static_cast<std::int64_t>(sizeof(float)) / hidden;
  return std::max(kRowStep, rows / kRowStep * kRowStep);
}

// At least one piece, even of no rows: gradients of weights are written by the first.
void for_each_piece(std::int64_t rows, std::int64_t hidden, const std::function<void(const Piece&)>& body) {
  const std::int64_t step = piece_rows(hidden);
  for (std::int64_t first = 0; first == 0 || first < rows; first += step) body({first, std::min(step, rows - first)});
}

at::Tensor empty_piece(std::int64_t rows, std::int64_t hidden, const at::Tensor& like) {
  return at::empty({std::min(rows, piece_rows(hidden)), hidden}, like.options().dtype(at::kFloat));
}

// One call on rows [rows, width], contiguous.
class Forward {
 public:
  Forward(const at::Tensor& rows, const FeedforwardWeights& weights, MatmulPrecision precision)
      : rows_(rows),
        in_bias_(weights.in_bias.contiguous()),
        out_bias_(weights.out_bias.contiguous()),
        in_(packed_weight(weights.in, WeightUse::forward, dense_type(precision))),
        out_(packed_weight(weights.out, WeightUse::forward, dense_type(precision))),
        hidden_(weights.in.size(0)),
        precision_(precision) {}

  void drop(const kernels::DropoutShape& shape, std::vector<std::uint64_t> keys, double probability) {
    shape_ = shape;
    keys_ = std::move(keys);
    probability_ = probability;
  }

  // From now on, run() leaves in these what the backward pass reads.
  void keep() {
    kept_input = rows_as_multiplied(rows_, precision_);
    const auto type = precision_ == MatmulPrecision::bf16 ? at::kBFloat16 : at::kFloat;
    kept_hidden = at::empty({rows_.size(0), hidden_}, rows_.options().dtype(type));
  }
  at::Tensor kept_input, kept_hidden;

  at::Tensor run() const {
    const std::int64_t width = rows_.size(1);
    const bool in_place = kept_hidden.defined() && kept_hidden.scalar_type() == at::kFloat;
    const at::Tensor scratch = in_place ? at::Tensor() : empty_piece(rows_.size(0), hidden_, rows_);
    const kernels::DenseRows input = dense_rows(kept_input.defined() ? kept_input : rows_);
    at::Tensor output = at::empty_like(rows_);
    for_each_piece(rows_.size(0), hidden_, [&](const Piece& piece) {
      float* hidden = in_place ? kept_hidden.data_ptr<float>() + piece.first * hidden_ : scratch.data_ptr<float>();
      kernels::dense_product(input.from(piece.first * width), piece.rows, in_,
                             {.bias = in_bias_.data_ptr<float>(), .relu = true}, hidden);
      if (probability_ > 0.0) {
        kernels::dropout_rows({piece.first, piece.rows}, shape_, keys_.data(), probability_, hidden);
      }
      kernels::DenseRows factor = hidden;
      if (kept_hidden.defined() && !in_place) {
        round_rows(hidden, piece.rows * hidden_, kept_hidden.data_ptr<at::BFloat16>() + piece.first * hidden_);
        factor = dense_rows(kept_hidden).from(piece.first * hidden_);
      }
      kernels::dense_product(factor, piece.rows, out_, {.bias = out_bias_.data_ptr<float>()},
                             output.data_ptr<float>() + piece.first * width);
    });
    return output;
  }

 private:
  at::Tensor rows_, in_bias_, out_bias_;
  kernels::PackedMatrix in_, out_;
  std::int64_t hidden_;
  MatmulPrecision precision_;
  kernels::DropoutShape shape_;
  std::vector<std::uint64_t> keys_;
  double probability_ = 0.0;
};

struct Kept {
  at::Tensor input, hidden, in, out;
  MatmulPrecision precision = MatmulPrecision::fp32;
  double probability = 0.0;
};

// Gradients of input, in, in_bias, out, out_bias; those that are not wanted stay undefined.
variable_list gradients_of(const at::Tensor& d_output, const Kept& kept, const std::vector<bool>& wanted) {
  const std::int64_t width = kept.in.size(1);
  const std::int64_t hidden = kept.in.size(0);
  const std::int64_t rows = kept.input.size(0);
  const std::vector<std::vector<std::int64_t>> shapes{
      {rows, width}, {hidden, width}, {hidden}, {width, hidden}, {width}};
  variable_list d(shapes.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (wanted[i]) d[i] = at::empty(shapes[i], d_output.options());
  }
  const auto numbers = [&](std::size_t i) { return d[i].defined() ? d[i].data_ptr<float>() : nullptr; };
  const kernels::DenseType type = dense_type(kept.precision);
  const at::Tensor scratch = empty_piece(rows, hidden, d_output);
  auto* d_hidden = scratch.data_ptr<float>();
  for_each_piece(rows, hidden, [&](const Piece& piece) {
    const float* d_rows = d_output.data_ptr<float>() + piece.first * width;
    const kernels::DenseRows hidden_rows = dense_rows(kept.hidden).from(piece.first * hidden);
    const kernels::GradientOptions add{.type = type, .accumulate = piece.first > 0};
    if (wanted[0] || wanted[1] || wanted[2]) {
      // Hidden numbers that were dropped are 0, so the ReLU stops their gradients as well.
      const auto factor = static_cast<float>(1.0 / (1.0 - kept.probability));
      kernels::dense_product(d_rows, piece.rows, packed_weight(kept.out, WeightUse::data_gradient, type),
                             {.relu_outputs = hidden_rows, .passed_factor = factor}, d_hidden);
      if (wanted[0]) {
        kernels::dense_product(d_hidden, piece.rows, packed_weight(kept.in, WeightUse::data_gradient, type), {},
                               numbers(0) + piece.first * width);
      }
      kernels::weight_gradient({d_hidden, dense_rows(kept.input).from(piece.first * width), piece.rows},
                               {.out = hidden, .in = width}, add, {.weight = numbers(1), .bias = numbers(2)});
    }
    kernels::weight_gradient({d_rows, hidden_rows, piece.rows}, {.out = width, .in = hidden}, add,
                             {.weight = numbers(3), .bias = numbers(4)});
  });
  return d;
}

class FeedforwardFunction : public torch::autograd::Function<FeedforwardFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*input*/, const at::Tensor& in,
                            const at::Tensor& /*in_bias*/, const at::Tensor& out, const at::Tensor& /*out_bias*/,
                            Forward& call, MatmulPrecision precision, double probability) {
    call.keep();
    context->save_for_backward({call.kept_input, call.kept_hidden, in, out});
    context->saved_data["bf16"] = precision == MatmulPrecision::bf16;
    context->saved_data["probability"] = probability;
    return call.run();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative("feedforward");
    const auto saved = context->get_saved_variables();
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < 5; ++i) wanted.push_back(context->needs_input_grad(i));
    variable_list d =
        gradients_of(gradients[0].contiguous(),
                     {.input = saved[0],
                      .hidden = saved[1],
                      .in = saved[2],
                      .out = saved[3],
                      .precision = context->saved_data["bf16"].toBool() ? MatmulPrecision::bf16 : MatmulPrecision::fp32,
                      .probability = context->saved_data["probability"].toDouble()},
                     wanted);
    d.resize(8);  // the call, its precision and probability have none
    return d;
  }
};

at::Tensor feedforward_of_tensors(const at::Tensor& input, const FeedforwardWeights& weights,
                                  const FeedforwardOptions& options) {
  const LinearOptions linear_options{.precision = options.precision};
  const at::Tensor hidden = linear(input, weights.in, weights.in_bias, linear_options).clamp_min(0.0);
  return linear(dropout(hidden, options.dropout), weights.out, weights.out_bias, linear_options);
}

}  // namespace

at::Tensor relu_feedforward(const at::Tensor& input, const FeedforwardWeights& weights,
                            const FeedforwardOptions& options) {
  check_call(input, weights);
  if (!takes_dense_kernels(input)) return feedforward_of_tensors(input, weights, options);
  const at::Tensor rows = input.reshape({-1, input.size(2)}).contiguous();
  Forward call(rows.detach(), weights, options.precision);
  if (options.dropout.probability > 0.0) {
    call.drop({.num_samples = input.size(0),
               .num_tokens = input.size(1),
               .width = weights.in.size(0),
               .first_token = options.dropout.first_token},
              dropout_keys(options.dropout, input.size(0)), options.dropout.probability);
  }
  const bool graph = at::GradMode::is_enabled();
  const at::Tensor output =
      graph ? FeedforwardFunction::apply(rows, weights.in, weights.in_bias, weights.out, weights.out_bias, call,
                                         options.precision, options.dropout.probability)
            : call.run();
  return output.view(input.sizes());
}

}  // namespace routing
