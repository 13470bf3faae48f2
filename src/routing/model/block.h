// One layer of the stack: attention, then the feed-forward layer, each with a residual connection and a norm.
//
//   post   x' = LN(x + attention(x)),   y = LN(x' + feedforward(x'))        the paper; its second residual is x'
//   pre    x' = x + attention(LN(x)),   y = x' + feedforward(LN(x'))
//
// Dropout acts on each sub-layer's output before it is added.
#pragma once

#include "routing/attention/multi_head.h"
#include "routing/model/layers.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace routing {

struct BlockResult {
  at::Tensor output;
  at::Tensor auxiliary_loss;  // undefined if the layer adds nothing to the loss
};

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const ExperimentConfig& config, std::int64_t layer, const at::TensorOptions& options);

  // Leaves its plans in `state`; reuses them if state.reuse_plans says so.
  BlockResult forward(const at::Tensor& input, AttentionState& state, const ForwardContext& context);
  // The same values and gradients, but nothing of the layer is kept between forward and backward except its input and
  // plans: the backward pass computes the layer again. Where no gradient is wanted it is the plain forward.
  BlockResult forward_recomputed(const at::Tensor& input, AttentionState& state, const ForwardContext& context);

  MultiHeadAttention attention() const { return attention_; }

 private:
  NormPlacement norm_;
  double dropout_;
  LayerPlace place_;
  MultiHeadAttention attention_ = nullptr;
  Feedforward feedforward_ = nullptr;
  LayerNorm attention_norm_ = nullptr;
  LayerNorm feedforward_norm_ = nullptr;
};
TORCH_MODULE(Block);

}  // namespace routing
