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
#include <string>
#include <vector>

namespace routing {

class EncoderDecoderImpl : public SequenceModel {
 public:
  // Weights are drawn from streams named by config.train.seed and their place. With options on the meta device nothing
  // is allocated.
  EncoderDecoderImpl(ExperimentConfig config, const at::TensorOptions& options);

  // What the decoder reads of a source: to be made once, whatever is decoded from it.
  struct Memory {
    at::Tensor values;     // [batch, n, width]
    at::Tensor valid;      // bool [batch, n]; undefined means all
    at::Tensor auxiliary;  // of the encoder's layers; undefined in evaluation or if nothing
  };
  // source int64 [batch, n]; valid bool [batch, n], undefined means all. Every sequence needs a real token.
  Memory encode(const at::Tensor& source, const at::Tensor& valid, const ForwardContext& context);
  // [batch, m, vocab_size]; row i is the prediction of target token i.
  at::Tensor decode(const Memory& memory, const at::Tensor& target, const at::Tensor& valid,
                    const ForwardContext& context);

  // Targets that are read piece by piece (generation/decoder.h): see Transformer. A new sequence of the cache begins
  // with its source, int64 [1, n].
  ModelCache make_cache() const;
  std::string reason_against_cache() const;
  std::int64_t begin_sequence(ModelCache& cache, const at::Tensor& source, const ForwardContext& context);
  at::Tensor logits_cached(const at::Tensor& previous, ModelCache& cache, std::span<const std::int64_t> sequences,
                           const CachedContext& context) const;

  Loss loss(const TokenBatch& batch, const ForwardContext& context) override;
  // encode(), then decode().
  at::Tensor logits(const TokenBatch& batch, const ForwardContext& context);

  // What each layer's last forward used: its plans, for pictures and analysis.
  const std::vector<BlockState>& encoder_states() const { return encoder_states_; }
  const std::vector<BlockState>& decoder_states() const { return decoder_states_; }
  Block encoder_block(std::size_t layer) const { return encoder_.at(layer); }
  Block decoder_block(std::size_t layer) const { return decoder_.at(layer); }

 private:
  // What a stack makes of its input, and the auxiliary losses of its layers.
  struct Hidden {
    at::Tensor values, auxiliary;
  };
  BlockResult run_block(Block& block, const at::Tensor& x, BlockState& state, const ForwardContext& context) const;
  Hidden decoder_hidden(const Memory& memory, const at::Tensor& target, const at::Tensor& valid,
                        const ForwardContext& context);

  TokenInputs source_ = nullptr;
  TokenInputs target_ = nullptr;
  std::vector<Block> encoder_, decoder_;
  LayerNorm encoder_norm_ = nullptr;
  LayerNorm decoder_norm_ = nullptr;
  at::Tensor out_weight_, out_bias_;  // from the model's width to the embedding's
  at::Tensor vocabulary_weight_, vocabulary_bias_;
  std::vector<BlockState> encoder_states_, decoder_states_;
};
TORCH_MODULE(EncoderDecoder);

}  // namespace routing
