#include "routing/model/block.h"

#include "routing/core/error.h"
#include "routing/model/compression.h"
#include "routing/ops/residual.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <utility>

namespace routing {
namespace {

// One run of a block.
struct Run {
  BlockImpl* block;  // the model outlives the graphs made with it
  BlockState* state;
  ForwardContext context;
};

// What its second run needs; lives in the autograd graph.
struct SavedRun : torch::CustomClassHolder {
  explicit SavedRun(const Run& run) : block(run.block), state(*run.state), context(run.context) {
    // A saved variable of the graph; here it would keep its own graph alive.
    state.cross.memory = at::Tensor();
    state.self.past = at::Tensor();  // is made again
  }
  BlockImpl* block;
  BlockState state;
  ForwardContext context;
};

// A copy of a saved tensor from which a second graph may begin.
at::Tensor new_leaf(const at::Tensor& saved) {
  return saved.detach().requires_grad_(saved.requires_grad());
}

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  // Without cross-attention the memory is the anchor.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                                                const at::Tensor& memory, const at::Tensor& /*anchor*/,
                                                const Run& run) {
    const BlockResult result = run.block->forward(input, *run.state, run.context);
    context->save_for_backward({input, memory});
    context->saved_data["has_memory"] = run.state->cross.memory.defined();
    context->saved_data["run"] = c10::IValue::make_capsule(c10::make_intrusive<SavedRun>(run));
    context->saved_data["has_loss"] = result.auxiliary_loss.defined();
    return {result.output,
            result.auxiliary_loss.defined() ? result.auxiliary_loss : at::zeros({}, result.output.options())};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["run"].toCapsule();
    auto& run = static_cast<SavedRun&>(*capsule);
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::AutoGradMode with_gradient(true);
    const at::Tensor input = new_leaf(saved[0]);
    at::Tensor memory;
    if (context->saved_data["has_memory"].toBool()) memory = new_leaf(saved[1]);
    run.state.self.reuse_plans = true;
    run.state.cross.reuse_plans = true;
    run.state.cross.memory = memory;
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
    // They would keep the second graph until the first one goes.
    run.state.self.auxiliary_loss = at::Tensor();
    run.state.cross.auxiliary_loss = at::Tensor();
    run.state.cross.memory = at::Tensor();
    run.state.self.past = at::Tensor();
    return {input.grad(), memory.defined() ? memory.grad() : at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

AttentionConfig self_attention(const ExperimentConfig& config, const BlockPlace& place) {
  return place.role == BlockRole::encoder ? attention_of_encoder_layer(config, place.layer)
                                          : attention_of_layer(config, place.layer);
}

void prepare(AttentionState& state, const ForwardContext& context) {
  state.step = context.step;
  state.sample_ids = context.sample_ids;
  state.precision = context.precision;
  state.piece = context.piece;
}

}  // namespace

BlockImpl::BlockImpl(const ExperimentConfig& config, const BlockPlace& place, const at::TensorOptions& options)
    : norm_(config.model.norm), dropout_(config.model.residual_dropout), memory_(config.memory) {
  const std::string stack = place.role == BlockRole::encoder ? "encoder" : "decoder";
  const auto part = [&](const char* name) {
    return LayerPlace{.seed = config.train.seed, .layer = place.layer, .part = stack + " " + name};
  };
  const auto norm = [&](const char* name) { return register_module(name, LayerNorm(config.model.width, options)); };
  place_ = part("block");
  attention_ = register_module("attention", MultiHeadAttention(self_attention(config, place), part("self"), options));
  feedforward_ = register_module("feedforward", Feedforward(config.model, part("feedforward"), options));
  attention_norm_ = norm("attention_norm");
  feedforward_norm_ = norm("feedforward_norm");
  if (memory_.compressed > 0 && memory_.compression == Compression::convolution) {
    compression_weight_ =
        register_parameter("compression_weight", initial_compression(config.model.width, memory_.rate, options));
  }
  if (place.role == BlockRole::decoder) {
    cross_attention_ = register_module(
        "cross_attention", MultiHeadAttention(cross_attention_of_layer(config, place.layer), part("cross"), options));
    cross_norm_ = norm("cross_norm");
  }
}

template <class Function>
at::Tensor BlockImpl::sub_layer(const at::Tensor& x, const LayerNorm& norm, const char* dropout_use,
                                const ForwardContext& context, const Function& function) const {
  const DropoutUse use{.probability = dropout_, .place = &place_, .use = dropout_use};
  if (norm_ == NormPlacement::pre) {
    const NormAndInput both = norm->with_input(x);
    return residual_sum(both.input, drop(function(both.normalised), use, is_training(), context));
  }
  return norm->forward(residual_sum(x, drop(function(x), use, is_training(), context)));
}

BlockResult BlockImpl::forward(const at::Tensor& input, BlockState& state, const ForwardContext& context) {
  prepare(state.self, context);
  state.self.past =
      state.past.defined() && norm_ == NormPlacement::pre ? attention_norm_->forward(state.past) : state.past;
  at::Tensor x = sub_layer(input, attention_norm_, "attention output", context,
                           [&](const at::Tensor& in) { return attention_->forward(in, state.self); });
  at::Tensor auxiliary = state.self.auxiliary_loss;
  if (!cross_attention_.is_empty()) {
    require<InputError>(context.piece == nullptr,
                        "a piece of a sequence was given to a layer that reads a source, but "
                        "only sequences of decoder-only models are split");
    prepare(state.cross, context);
    x = sub_layer(x, cross_norm_, "cross-attention output", context,
                  [&](const at::Tensor& in) { return cross_attention_->forward(in, state.cross); });
    const at::Tensor& more = state.cross.auxiliary_loss;
    if (more.defined()) auxiliary = auxiliary.defined() ? auxiliary + more : more;
  }
  x = sub_layer(x, feedforward_norm_, "feedforward output", context,
                [&](const at::Tensor& in) { return feedforward_->forward(in, context); });
  return {x, auxiliary};
}

at::Tensor BlockImpl::compress(const at::Tensor& rows, const at::Tensor& usage) const {
  return compressed_rows(rows, memory_, {.weight = compression_weight_, .usage = usage});
}

at::Tensor BlockImpl::reconstruction(const at::Tensor& input, const at::Tensor& rows, const at::Tensor& compressed,
                                     const ForwardContext& context) const {
  // In the graph all the same: ranks expect a gradient of every weight in every step.
  if (!rows.defined()) return (compression_weight_ * 0.0).sum().expand({input.size(0), input.size(1)});
  const auto seen = [&](const at::Tensor& x) { return norm_ == NormPlacement::pre ? attention_norm_->frozen(x) : x; };
  const at::Tensor queries = seen(input);
  at::Tensor wanted;
  {
    const at::NoGradGuard no_gradient;
    wanted = attention_->read_content(queries, seen(rows), context.precision);
  }
  const at::Tensor read = attention_->read_content(queries, seen(compressed), context.precision);
  return (read - wanted).square().mean(2);
}

at::Tensor BlockImpl::forward_cached(const at::Tensor& input, BlockCache& cache,
                                     std::span<const std::int64_t> sequences, const ForwardContext& context) const {
  require<InputError>(!is_training(), "a cache was given to a model in training mode; call eval() first");
  at::Tensor x = sub_layer(input, attention_norm_, "attention output", context, [&](const at::Tensor& in) {
    return attention_->forward_cached(in, cache.self, sequences, context.precision, context.pieces);
  });
  if (!cross_attention_.is_empty()) {
    x = sub_layer(x, cross_norm_, "cross-attention output", context, [&](const at::Tensor& in) {
      return cross_attention_->forward_cached(in, *cache.cross, sequences, context.precision, context.pieces);
    });
  }
  return sub_layer(x, feedforward_norm_, "feedforward output", context,
                   [&](const at::Tensor& in) { return feedforward_->forward(in, context); });
}

BlockCache BlockImpl::make_cache(const Horizon& horizon, MatmulPrecision precision) const {
  BlockCache cache{.self = attention_->make_cache(horizon, precision)};
  if (!cross_attention_.is_empty()) cache.cross = cross_attention_->make_cache({}, precision);
  return cache;
}

std::string BlockImpl::reason_against_cache() const {
  std::string reason = attention_->reason_against_cache();
  if (reason.empty() && !cross_attention_.is_empty()) reason = cross_attention_->reason_against_cache();
  return reason;
}

BlockResult BlockImpl::forward_recomputed(const at::Tensor& input, BlockState& state, const ForwardContext& context) {
  if (!at::GradMode::is_enabled()) return forward(input, state, context);
  // The graph needs one input with a gradient to hang on; the first layer's input may have none.
  const at::Tensor anchor = at::zeros({}, input.options()).requires_grad_(true);
  const at::Tensor memory = state.cross.memory.defined() ? state.cross.memory : anchor;
  const auto results = Recomputed::apply(input, memory, anchor, Run{this, &state, context});
  const bool has_loss = state.self.auxiliary_loss.defined() || state.cross.auxiliary_loss.defined();
  return {results[0], has_loss ? results[1] : at::Tensor()};
}

}  // namespace routing
