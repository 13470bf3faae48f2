// The encoder-decoder transformer: reads a source s_0 … s_{n-1} and predicts a target t_0 … t_{m-1}.
//
//   memory  = encoder blocks(inputs of s) [-> one more norm if norms come first]      bidirectional self-attention
//   x       = decoder blocks(inputs of s, t_0, …, t_{m-2}; memory) [-> one more norm]  causal self-, then
//   cross-attention logits  = output([dense layer to the embedding's width ->] x) loss    = -log softmax(logits_i)[t_i]
//   position i has seen t_0 … t_{i-1} and all of the source
//
// Inputs are those of token_inputs.h, s is the start symbol; source and target have one vocabulary, but each its own
// table. A tied output layer is the table of the target.
//
// Padding is false in the masks. It is no key, joins no cluster, moves no centroid and has no loss; ids at its places
// may be anything and change nothing.
#pragma once

#include "routing/config/experiment.h"
#include "routing/model/block.h"
#include "routing/model/layers.h"
#include "routing/model/sequence_model.h"
#include "routing/model/token_inputs.h"

#include <ATen/ATen.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

class EncoderDecoderImpl : public SequenceModel {
 public:
  // Weights are drawn from streams named by config.train.seed and their place. With options on the meta device nothing
  // is allocated.
  EncoderDecoderImpl(ExperimentConfig config, const at::TensorOptions& options);

  // source int64 [batch, n]; valid bool [batch, n], undefined means all. Every sequence needs a real token.
  SourceMemory encode(const at::Tensor& source, const at::Tensor& valid, const ForwardContext& context) override;
  std::int64_t begin_sequence(ModelCache& cache, const at::Tensor& source, const ForwardContext& context) override;

 private:
  Hidden hidden(const SourceMemory& memory, const at::Tensor& target, const at::Tensor& valid,
                const ForwardContext& context) override;
  at::Tensor embed_at(const at::Tensor& ids, std::span<const std::int64_t> positions,
                      const ForwardContext& context) const override;

  TokenInputs source_ = nullptr;
  TokenInputs target_ = nullptr;
  std::vector<Block> encoder_;
  std::vector<BlockState> encoder_states_;
  LayerNorm encoder_norm_ = nullptr;
};
TORCH_MODULE(EncoderDecoder);

}  // namespace routing
