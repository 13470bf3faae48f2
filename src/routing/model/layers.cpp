#include "routing/model/layers.h"

#include "routing/ops/dense/feedforward.h"
#include "routing/ops/dense/geglu.h"
#include "routing/ops/dense/gelu.h"
#include "routing/ops/dropout.h"
#include "routing/ops/initial_weights.h"

#include <utility>
#include <vector>

namespace routing {
namespace {

constexpr double kNormEps = 1e-6;  // docs/facts.md C1

DropoutDraw draw_of(const DropoutUse& use, bool training, const ForwardContext& context) {
  if (!training || use.probability == 0.0) return {};
  return {.probability = use.probability,
          .key = use.place->key(use.use, {context.step}),
          .sample_ids = context.sample_ids,
          .first_token = first_position(context.piece)};
}

}  // namespace

LayerNormImpl::LayerNormImpl(std::int64_t width, const at::TensorOptions& options) {
  gain_ = register_parameter("gain", at::ones({width}, options));
  bias_ = register_parameter("bias", at::zeros({width}, options));
}

at::Tensor LayerNormImpl::forward(const at::Tensor& input) const {
  return layer_norm(input, gain_, bias_, kNormEps);
}

at::Tensor LayerNormImpl::frozen(const at::Tensor& input) const {
  return layer_norm(input, gain_.detach(), bias_.detach(), kNormEps);
}

NormAndInput LayerNormImpl::with_input(const at::Tensor& input) const {
  return layer_norm_and_input(input, gain_, bias_, kNormEps);
}

FeedforwardImpl::FeedforwardImpl(const ModelConfig& config, LayerPlace place, const at::TensorOptions& options)
    : kind_(config.feedforward), dropout_(config.feedforward_dropout), place_(std::move(place)) {
  const std::int64_t width = config.width;
  const std::int64_t hidden = config.feedforward_width;
  const auto weight = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(name, initial_weight({rows, columns, config.initial_scale}, place_.key(name), options));
  };
  in_weight_ = weight("in_weight", hidden, width);
  if (kind_ == FeedforwardKind::geglu) gate_weight_ = weight("gate_weight", hidden, width);
  out_weight_ = weight("out_weight", width, hidden);
  if (kind_ != FeedforwardKind::geglu) {
    in_bias_ = register_parameter("in_bias", at::zeros({hidden}, options));
    out_bias_ = register_parameter("out_bias", at::zeros({width}, options));
  }
}

at::Tensor FeedforwardImpl::forward(const at::Tensor& input, const ForwardContext& context) const {
  const DropoutUse use{.probability = dropout_, .place = &place_, .use = "hidden dropout"};
  if (kind_ == FeedforwardKind::relu) {
    return relu_feedforward(input, {.in = in_weight_, .in_bias = in_bias_, .out = out_weight_, .out_bias = out_bias_},
                            {.precision = context.precision, .dropout = draw_of(use, is_training(), context)});
  }
  if (kind_ == FeedforwardKind::gelu) {
    const at::Tensor hidden = routing::gelu(linear(input, in_weight_, in_bias_, {.precision = context.precision}));
    return linear(drop(hidden, use, is_training(), context), out_weight_, out_bias_, {.precision = context.precision});
  }
  const std::vector<at::Tensor> branches = linear_branches(input, {gate_weight_, in_weight_}, context.precision);
  const at::Tensor hidden = drop(geglu(branches[0], branches[1]), use, is_training(), context);
  return linear(hidden, out_weight_, {}, {.precision = context.precision});
}

at::Tensor drop(const at::Tensor& input, const DropoutUse& use, bool training, const ForwardContext& context) {
  return dropout(input, draw_of(use, training, context));
}

}  // namespace routing
