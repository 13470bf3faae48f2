// One layer of the stack: attention, then the feed-forward layer, each with a residual connection and a norm.
//
//   post   x' = LN(x + attention(x)),   y = LN(x' + feedforward(x'))        the paper; its second residual is x'
//   pre    x' = x + attention(LN(x)),   y = x' + feedforward(LN(x'))
//
// A decoder that reads a source has one more sub-layer in between, of the same form, whose attention reads the memory.
//
// Dropout acts on each sub-layer's output before it is added.
#pragma once

#include "routing/attention/multi_head.h"
#include "routing/model/layers.h"
#include "routing/model/model_cache.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <span>
#include <string>

namespace routing {

enum class BlockRole {
  decoder_only,  // causal self-attention
  encoder,       // bidirectional self-attention
  decoder,       // causal self-attention, then cross-attention to the memory
};

// Where a block stands.
struct BlockPlace {
  BlockRole role = BlockRole::decoder_only;
  std::int64_t layer = 0;  // counted from 0 at the bottom of its stack
};

// What the attentions of a block read beside its input, and the plans they leave. `cross` is for decoders: its memory
// must be set.
struct BlockState {
  AttentionState self = {};
  AttentionState cross = {};
  // What the layer remembers, [batch, remembered, width]: inputs that it had before, without a graph; undefined if
  // nothing.
  at::Tensor past = {};
};

struct BlockResult {
  at::Tensor output;
  at::Tensor auxiliary_loss;  // undefined if the layer adds nothing to the loss
};

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const ExperimentConfig& config, const BlockPlace& place, const at::TensorOptions& options);

  // Leaves its plans in `state`; reuses them if reuse_plans of its parts says so.
  BlockResult forward(const at::Tensor& input, BlockState& state, const ForwardContext& context);
  // The same values and gradients, but nothing of the layer is kept between forward and backward except its input, its
  // memory and plans: the backward pass computes the layer again. Where no gradient is wanted it is the plain forward.
  BlockResult forward_recomputed(const at::Tensor& input, BlockState& state, const ForwardContext& context);

  // The same for sequences that are read piece by piece; see MultiHeadAttention. In evaluation only.
  at::Tensor forward_cached(const at::Tensor& input, BlockCache& cache, std::span<const std::int64_t> sequences,
                            const ForwardContext& context) const;
  BlockCache make_cache(const Horizon& horizon, MatmulPrecision precision) const;
  std::string reason_against_cache() const;

  // Tokens [streams, rows, width] that leave the layer's memory, compressed; usage [streams, rows] for most_used.
  at::Tensor compress(const at::Tensor& rows, const at::Tensor& usage) const;
  // How far what the layer's heads read of compressed rows is from what they read of the rows themselves, by content
  // (Rae et al. 2020, section 3.2): for each token of the input the mean square over heads and numbers, [streams,
  // tokens]. Its gradient reaches the compression alone. Without rows it is 0.
  at::Tensor reconstruction(const at::Tensor& input, const at::Tensor& rows, const at::Tensor& compressed,
                            const ForwardContext& context) const;

  MultiHeadAttention attention() const { return attention_; }
  MultiHeadAttention cross_attention() const { return cross_attention_; }  // null unless the role is decoder

 private:
  // x + f(x) with the norm where it belongs.
  template <class Function>
  at::Tensor sub_layer(const at::Tensor& x, const LayerNorm& norm, const char* dropout_use,
                       const ForwardContext& context, const Function& function) const;

  NormPlacement norm_;
  double dropout_;
  MemoryConfig memory_;
  at::Tensor compression_weight_;  // of a convolution; undefined otherwise
  LayerPlace place_;
  MultiHeadAttention attention_ = nullptr;
  MultiHeadAttention cross_attention_ = nullptr;
  Feedforward feedforward_ = nullptr;
  LayerNorm attention_norm_ = nullptr;
  LayerNorm cross_norm_ = nullptr;
  LayerNorm feedforward_norm_ = nullptr;
};
TORCH_MODULE(Block);

}  // namespace routing
