#include "routing/model/block.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace routing {
namespace {

// One run of a block.
struct Run {
  BlockImpl* block;  // the model outlives the graphs made with it
  AttentionState* state;
  ForwardContext context;
};

// What its second run needs; lives in the autograd graph.
struct SavedRun : torch::CustomClassHolder {
  explicit SavedRun(const Run& run) : block(run.block), state(*run.state), context(run.context) {}
  BlockImpl* block;
  AttentionState state;
  ForwardContext context;
};

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                                                const at::Tensor& /*anchor*/, const Run& run) {
    const BlockResult result = run.block->forward(input, *run.state, run.context);
    context->save_for_backward({input});
    context->saved_data["run"] = c10::IValue::make_capsule(c10::make_intrusive<SavedRun>(run));
    context->saved_data["has_loss"] = result.auxiliary_loss.defined();
    return {result.output,
            result.auxiliary_loss.defined() ? result.auxiliary_loss : at::zeros({}, result.output.options())};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["run"].toCapsule();
    auto& run = static_cast<SavedRun&>(*capsule);
    const at::Tensor saved = context->get_saved_variables()[0];
    const at::AutoGradMode with_gradient(true);
    const at::Tensor input = saved.detach().requires_grad_(saved.requires_grad());
    run.state.reuse_plans = true;
    const BlockResult result = run.block->forward(input, run.state, run.context);
    torch::autograd::variable_list outputs{result.output};
    torch::autograd::variable_list output_gradients{gradients[0].defined() ? gradients[0]
                                                                           : at::zeros_like(result.output)};
    if (context->saved_data["has_loss"].toBool() && gradients[1].defined()) {
      outputs.push_back(result.auxiliary_loss);
      output_gradients.push_back(gradients[1]);
    }
    // Adds to the gradients of the block's own parameters on the way.
    torch::autograd::backward(outputs, output_gradients);
    // It would keep the second graph until the first one goes.
    run.state.auxiliary_loss = at::Tensor();
    return {input.grad(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

BlockImpl::BlockImpl(const ExperimentConfig& config, std::int64_t layer, const at::TensorOptions& options)
    : norm_(config.model.norm),
      dropout_(config.model.residual_dropout),
      place_{.seed = config.train.seed, .layer = layer, .part = "decoder block"} {
  attention_ = register_module(
      "attention",
      MultiHeadAttention(attention_of_layer(config, layer),
                         LayerPlace{.seed = config.train.seed, .layer = layer, .part = "decoder self"}, options));
  feedforward_ = register_module(
      "feedforward",
      Feedforward(config.model, LayerPlace{.seed = config.train.seed, .layer = layer, .part = "decoder feedforward"},
                  options));
  attention_norm_ = register_module("attention_norm", LayerNorm(config.model.width, options));
  feedforward_norm_ = register_module("feedforward_norm", LayerNorm(config.model.width, options));
}

BlockResult BlockImpl::forward(const at::Tensor& input, AttentionState& state, const ForwardContext& context) {
  state.step = context.step;
  state.sample_ids = context.sample_ids;
  state.precision = context.precision;
  const bool training = is_training();
  const DropoutUse attention_dropout{.probability = dropout_, .place = &place_, .use = "attention output"};
  const DropoutUse feedforward_dropout{.probability = dropout_, .place = &place_, .use = "feedforward output"};
  at::Tensor x = input;
  if (norm_ == NormPlacement::pre) {
    x = x + drop(attention_->forward(attention_norm_->forward(x), state), attention_dropout, training, context);
    x = x + drop(feedforward_->forward(feedforward_norm_->forward(x), context), feedforward_dropout, training, context);
  } else {
    x = attention_norm_->forward(x + drop(attention_->forward(x, state), attention_dropout, training, context));
    x = feedforward_norm_->forward(x + drop(feedforward_->forward(x, context), feedforward_dropout, training, context));
  }
  return {x, state.auxiliary_loss};
}

BlockResult BlockImpl::forward_recomputed(const at::Tensor& input, AttentionState& state,
                                          const ForwardContext& context) {
  if (!at::GradMode::is_enabled()) return forward(input, state, context);
  // The graph needs one input with a gradient to hang on; the first layer's input may have none.
  const at::Tensor anchor = at::zeros({}, input.options()).requires_grad_(true);
  const auto results = Recomputed::apply(input, anchor, Run{this, &state, context});
  const bool has_loss = state.auxiliary_loss.defined();
  state.auxiliary_loss = has_loss ? results[1] : at::Tensor();
  return {results[0], state.auxiliary_loss};
}

}  // namespace routing
