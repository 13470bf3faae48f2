// The dense parts of a block: layer normalisation with gain and bias, and the feed-forward layer.
#pragma once

#include "routing/attention/cache/piece_exchange.h"
#include "routing/attention/patterns/pattern.h"
#include "routing/attention/pieces/sequence_piece.h"
#include "routing/config/experiment.h"
#include "routing/ops/dense/linear.h"
#include "routing/ops/layer_norm.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace routing {

struct ModelMemory;

// What every layer of one forward pass shares.
struct ForwardContext {
  at::Tensor sample_ids = {};  // int64 [batch]: identities of the sequences, for dropout; undefined means 0, 1, 2 …
  std::uint64_t step = 0;      // counts training forwards: names the draws of dropout and random patterns
  MatmulPrecision precision = MatmulPrecision::fp32;
  // What the layers remember of the segments before, and what they will remember of this one: read and moved on by the
  // forward pass. Null means that the sequences begin here, and nobody will go on with them.
  ModelMemory* memory = nullptr;
  // For layers that read with a cache only: this is a piece of one sequence, see CachedContext.
  PieceExchange* pieces = nullptr;
  // The tokens are this piece of their sequences, to be trained with the others; null means that they are whole. Must
  // live until the backward pass is done.
  const SequencePiece* piece = nullptr;
};

class LayerNormImpl : public torch::nn::Module {
 public:
  LayerNormImpl(std::int64_t width, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input) const;
  NormAndInput with_input(const at::Tensor& input) const;
  // Gain and bias taken as given.
  at::Tensor frozen(const at::Tensor& input) const;

 private:
  at::Tensor gain_, bias_;
};
TORCH_MODULE(LayerNorm);

// relu    W_out relu(W_in x + b_in) + b_out
// geglu   W_out (gelu(W_gate x) * (W_in x)), with the tanh form of gelu and no biases
// gelu    W_out gelu(W_in x + b_in) + b_out, with the error function in gelu
class FeedforwardImpl : public torch::nn::Module {
 public:
  FeedforwardImpl(const ModelConfig& config, LayerPlace place, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) const;

 private:
  FeedforwardKind kind_;
  double dropout_;
  LayerPlace place_;
  at::Tensor in_weight_, in_bias_, gate_weight_, out_weight_, out_bias_;
};
TORCH_MODULE(Feedforward);

// Dropout of [batch, tokens, width] in training, from the stream of this place and use; the input itself otherwise.
struct DropoutUse {
  double probability = 0.0;
  const LayerPlace* place = nullptr;
  const char* use = "";
};
at::Tensor drop(const at::Tensor& input, const DropoutUse& use, bool training, const ForwardContext& context);

}  // namespace routing
