#include "routing/ops/dense/vocabulary_loss.h"

#include "routing/core/error.h"
#include "routing/kernels/dense/dense.h"
#include "routing/kernels/pointwise/log_sum_exp.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

namespace routing {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

constexpr std::int64_t kPanelColumns = 1024;

struct LossInputs {
  at::Tensor hidden, weight, bias, targets;
};

void check_call(const LossInputs& inputs, const VocabularyLossOptions& options) {
  const auto& [hidden, weight, bias, targets] = inputs;
  require<InputError>(hidden.dim() == 2 && weight.dim() == 2 && hidden.size(1) == weight.size(1) &&
                          weight.size(0) >= 1 && weight.size(1) >= 1,
                      "vocabulary_loss: hidden is ", hidden.sizes(), " and weight ", weight.sizes(),
                      ", but they must be [rows, width] and [vocabulary, width], not empty");
  require<InputError>(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
                      "vocabulary_loss: bias is ", bias.defined() ? bias.sizes() : at::IntArrayRef(), ", but must be [",
                      weight.size(0), "]");
  require<InputError>(hidden.scalar_type() == at::kFloat || hidden.scalar_type() == at::kDouble,
                      "vocabulary_loss: hidden holds ", hidden.scalar_type(), ", but must hold Float or Double");
  for (const at::Tensor& tensor : {weight, bias}) {
    require<InputError>(
        !tensor.defined() || (tensor.scalar_type() == hidden.scalar_type() && tensor.device() == hidden.device()),
        "vocabulary_loss: weight, bias and hidden must have one type and device; hidden is ", hidden.scalar_type(),
        " on ", hidden.device().str());
  }
  require<InputError>(targets.scalar_type() == at::kLong && targets.dim() == 1 && targets.size(0) == hidden.size(0) &&
                          targets.device() == hidden.device(),
                      "vocabulary_loss: targets are ", targets.scalar_type(), " ", targets.sizes(), " on ",
                      targets.device().str(), ", but must be Long [", hidden.size(0), "] on ", hidden.device().str());
  require<InputError>(options.chunk_rows >= 1, "vocabulary_loss: chunk_rows is ", options.chunk_rows,
                      ", but a chunk holds at least 1 row");
  if (targets.is_meta()) return;
  const at::Tensor on_cpu = targets.cpu().contiguous();
  const auto* target = on_cpu.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < on_cpu.size(0); ++row) {
    require<InputError>(target[row] >= -1 && target[row] < weight.size(0), "vocabulary_loss: target ", target[row],
                        " in row ", row, ", but the vocabulary has ", weight.size(0),
                        " entries; use -1 for rows that do not count");
  }
}

bool takes_kernels(const at::Tensor& hidden) {
  return hidden.device().is_cpu() && hidden.scalar_type() == at::kFloat;
}

struct LossResult {
  at::Tensor loss, log_sum_exp;  // [rows]
};
struct LossGradients {
  at::Tensor hidden, weight, bias;
};

// The float32 path: panels of the vocabulary over chunks of rows.
class PanelLoss {
 public:
  PanelLoss(const LossInputs& inputs, const VocabularyLossOptions& options)
      : inputs_(inputs),
        type_(options.precision == MatmulPrecision::bf16 ? kernels::DenseType::bf16 : kernels::DenseType::fp32),
        rows_(inputs.hidden.size(0)),
        width_(inputs.hidden.size(1)),
        vocabulary_(inputs.weight.size(0)),
        chunk_rows_(std::min(options.chunk_rows, std::max<std::int64_t>(1, rows_))),
        logits_(at::empty({chunk_rows_ * std::min(kPanelColumns, vocabulary_)}, inputs.hidden.options())) {}

  LossResult forward() const {
    at::Tensor picked = at::zeros({rows_}, inputs_.hidden.options());
    at::Tensor largest = at::full({rows_}, -std::numeric_limits<float>::infinity(), inputs_.hidden.options());
    at::Tensor sum = at::zeros({rows_}, at::kDouble);
    for_each_panel([&](const Panel& panel) {
      compute_logits(panel);
      kernels::add_panel(logits_.data_ptr<float>(), panel.logits, targets(panel),
                         {largest.data_ptr<float>() + panel.first_row, sum.data_ptr<double>() + panel.first_row},
                         picked.data_ptr<float>() + panel.first_row);
    });
    const at::Tensor log_sum_exp = (sum.log() + largest.to(at::kDouble)).to(at::kFloat);
    return {at::where(inputs_.targets >= 0, log_sum_exp - picked, at::zeros({}, picked.options())), log_sum_exp};
  }

  LossGradients backward(const at::Tensor& d_loss, const at::Tensor& log_sum_exp) const {
    // With no rows no panel is visited, and nothing but these zeros is the gradient.
    const auto make = [&](const at::Tensor& like) {
      return rows_ == 0 ? at::zeros_like(like, at::MemoryFormat::Contiguous)
                        : at::empty_like(like, at::MemoryFormat::Contiguous);
    };
    LossGradients d{make(inputs_.hidden), make(inputs_.weight), {}};
    if (inputs_.bias.defined()) d.bias = make(inputs_.bias);
    for_each_panel([&](const Panel& panel) {
      compute_logits(panel);
      auto* gradient = logits_.data_ptr<float>();
      kernels::logits_to_gradient(gradient, panel.logits,
                                  {.targets = targets(panel),
                                   .log_sum_exp = log_sum_exp.data_ptr<float>() + panel.first_row,
                                   .loss_gradient = d_loss.data_ptr<float>() + panel.first_row});
      const std::int64_t first = panel.logits.first_column;
      const kernels::WeightShape shape{.out = panel.logits.columns, .in = width_};
      kernels::dense_product(gradient, panel.logits.num_rows,
                             kernels::PackedMatrix::for_data_gradient(weight_rows(first), shape, type_),
                             {.accumulate = first > 0}, d.hidden.data_ptr<float>() + panel.first_row * width_);
      kernels::weight_gradient({gradient, hidden_rows(panel), panel.logits.num_rows}, shape,
                               {.type = type_, .accumulate = panel.first_row > 0},
                               {.weight = d.weight.data_ptr<float>() + first * width_,
                                .bias = d.bias.defined() ? d.bias.data_ptr<float>() + first : nullptr});
    });
    return d;
  }

 private:
  struct Panel {
    std::int64_t first_row = 0;
    kernels::LogitPanel logits;
  };

  // Chunks of rows, and within each all panels in order.
  template <class Visit>
  void for_each_panel(const Visit& visit) const {
    for (std::int64_t row = 0; row < rows_; row += chunk_rows_) {
      for (std::int64_t column = 0; column < vocabulary_; column += kPanelColumns) {
        visit(Panel{.first_row = row,
                    .logits = {.num_rows = std::min(chunk_rows_, rows_ - row),
                               .first_column = column,
                               .columns = std::min(kPanelColumns, vocabulary_ - column)}});
      }
    }
  }

  const float* weight_rows(std::int64_t first) const { return inputs_.weight.data_ptr<float>() + first * width_; }
  const float* hidden_rows(const Panel& panel) const {
    return inputs_.hidden.data_ptr<float>() + panel.first_row * width_;
  }
  const std::int64_t* targets(const Panel& panel) const {
    return inputs_.targets.data_ptr<std::int64_t>() + panel.first_row;
  }

  void compute_logits(const Panel& panel) const {
    const std::int64_t first = panel.logits.first_column;
    kernels::dense_product(
        hidden_rows(panel), panel.logits.num_rows,
        kernels::PackedMatrix::for_forward(weight_rows(first), {.out = panel.logits.columns, .in = width_}, type_),
        {.bias = inputs_.bias.defined() ? inputs_.bias.data_ptr<float>() + first : nullptr}, logits_.data_ptr<float>());
  }

  const LossInputs& inputs_;
  kernels::DenseType type_;
  std::int64_t rows_, width_, vocabulary_, chunk_rows_;
  at::Tensor logits_;
};

// The same on tensors, for double, other devices and meta: all of the vocabulary for fewer rows.
class TensorLoss {
 public:
  TensorLoss(const LossInputs& inputs, const VocabularyLossOptions& options)
      : inputs_(inputs),
        rounds_(options.precision == MatmulPrecision::bf16 && inputs.hidden.scalar_type() == at::kFloat),
        chunk_rows_(std::clamp(kMostLogits / inputs.weight.size(0), std::int64_t{1}, options.chunk_rows)) {}

  LossResult forward() const {
    LossResult result{at::empty({inputs_.hidden.size(0)}, inputs_.hidden.options()), {}};
    result.log_sum_exp = at::empty_like(result.loss);
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      const at::Tensor logits = chunk_logits(first, count);
      const at::Tensor target = inputs_.targets.narrow(0, first, count);
      // Not logsumexp, which torch 1.13 cannot do on meta tensors.
      const at::Tensor largest = logits.amax(1, /*keepdim=*/true);
      const at::Tensor lse = (logits - largest).exp().sum(1).log() + largest.squeeze(1);
      const at::Tensor picked = logits.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
      result.log_sum_exp.narrow(0, first, count).copy_(lse);
      result.loss.narrow(0, first, count).copy_((lse - picked) * (target >= 0).to(lse.scalar_type()));
    });
    return result;
  }

  LossGradients backward(const at::Tensor& d_loss, const at::Tensor& log_sum_exp) const {
    LossGradients d{at::empty_like(inputs_.hidden), at::zeros_like(inputs_.weight), {}};
    if (inputs_.bias.defined()) d.bias = at::zeros_like(inputs_.bias);
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      const at::Tensor target = inputs_.targets.narrow(0, first, count).unsqueeze(1);
      const at::Tensor counted = (target >= 0).to(d_loss.scalar_type());
      const at::Tensor g = d_loss.narrow(0, first, count).unsqueeze(1) * counted;
      const at::Tensor lse = log_sum_exp.narrow(0, first, count).unsqueeze(1);
      at::Tensor d_logits = (chunk_logits(first, count) - lse).exp() * g;
      d_logits.scatter_add_(1, target.clamp_min(0), -g);
      const at::Tensor d_factor = factor(d_logits);
      d.hidden.narrow(0, first, count).copy_(at::mm(d_factor, factor(inputs_.weight)));
      d.weight += at::mm(d_factor.t(), factor(inputs_.hidden.narrow(0, first, count)));
      if (d.bias.defined()) d.bias += d_logits.sum(0);
    });
    return d;
  }

 private:
  static constexpr std::int64_t kMostLogits = std::int64_t{1} << 23;  // 64 MB in double

  template <class Visit>
  void for_each_chunk(const Visit& visit) const {
    const std::int64_t rows = inputs_.hidden.size(0);
    for (std::int64_t first = 0; first < rows; first += chunk_rows_) visit(first, std::min(chunk_rows_, rows - first));
  }
  at::Tensor factor(const at::Tensor& values) const {
    return rounds_ ? values.to(at::kBFloat16).to(at::kFloat) : values;
  }
  at::Tensor chunk_logits(std::int64_t first, std::int64_t count) const {
    const at::Tensor logits = at::mm(factor(inputs_.hidden.narrow(0, first, count)), factor(inputs_.weight).t());
    return inputs_.bias.defined() ? logits + inputs_.bias : logits;
  }

  const LossInputs& inputs_;
  bool rounds_;
  std::int64_t chunk_rows_;
};

class VocabularyLossFunction : public torch::autograd::Function<VocabularyLossFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const OptionalTensor& bias, const at::Tensor& targets,
                            const VocabularyLossOptions& options) {
    const LossInputs inputs{hidden, weight, bias.value_or(at::Tensor()), targets};
    const LossResult result =
        takes_kernels(hidden) ? PanelLoss(inputs, options).forward() : TensorLoss(inputs, options).forward();
    context->save_for_backward({hidden, weight, inputs.bias, targets, result.log_sum_exp});
    context->saved_data["bf16"] = options.precision == MatmulPrecision::bf16;
    context->saved_data["chunk_rows"] = options.chunk_rows;
    return result.loss;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("vocabulary_loss");
    const auto saved = context->get_saved_variables();
    const LossInputs inputs{saved[0], saved[1], saved[2], saved[3]};
    const VocabularyLossOptions options{
        .precision = context->saved_data["bf16"].toBool() ? MatmulPrecision::bf16 : MatmulPrecision::fp32,
        .chunk_rows = context->saved_data["chunk_rows"].toInt()};
    const at::Tensor d_loss = gradients[0].contiguous();
    const LossGradients d = takes_kernels(inputs.hidden) ? PanelLoss(inputs, options).backward(d_loss, saved[4])
                                                         : TensorLoss(inputs, options).backward(d_loss, saved[4]);
    return {d.hidden, d.weight, d.bias, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor vocabulary_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, const VocabularyLossOptions& options) {
  check_call({hidden, weight, bias, targets}, options);
  return VocabularyLossFunction::apply(hidden.contiguous(), weight.contiguous(),
                                       bias.defined() ? OptionalTensor(bias.contiguous()) : c10::nullopt,
                                       targets.contiguous(), options);
}

}  // namespace routing
