// The decoder-only transformer over token ids.
//
//   inputs  s, t_0, t_1, …, t_{n-2}          the sequence shifted right by one behind the start symbol
//                                            (model.start_symbol; token_inputs.h)
//   x       = embedding(inputs) [-> dense layer to the model's width], and their places: as model.positions says for
//             text (absolute_positions.h), row, column and channel for images (image_embedding.h)
//   x       = blocks(x) [-> one more norm if norms come first]
//   logits  = output([dense layer to the embedding's width ->] x)
//   loss    = -log softmax(logits_i)[t_i]    position i has seen t_0 … t_{i-1} only
#pragma once

#include "routing/config/experiment.h"
#include "routing/model/absolute_positions.h"
#include "routing/model/image_embedding.h"
#include "routing/model/layers.h"
#include "routing/model/sequence_model.h"
#include "routing/model/vocabulary_layers.h"

#include <ATen/ATen.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <span>

namespace routing {

class TransformerImpl : public SequenceModel {
 public:
  // Weights are drawn from streams named by config.train.seed and their place. With options on the meta device nothing
  // is allocated.
  TransformerImpl(ExperimentConfig config, const at::TensorOptions& options);

 private:
  bool reads_images() const { return config().model.image_height > 0; }
  // The rows of the table that a sequence reads.
  at::Tensor piece_ids(const at::Tensor& tokens, const SequencePiece& piece) const;
  at::Tensor input_ids(const at::Tensor& tokens, const ForwardContext& context) const;
  // Neither a memory nor padding is read: an InputError where there is padding.
  Hidden hidden(const SourceMemory& memory, const at::Tensor& tokens, const at::Tensor& valid,
                const ForwardContext& context) override;
  std::int64_t id_at(std::int64_t position, std::int64_t before) const override;
  // Also in training. Positions are all sequences' or, one after the other, each one's own.
  at::Tensor embed_at(const at::Tensor& ids, std::span<const std::int64_t> positions,
                      const ForwardContext& context) const override;

  LayerPlace place_;
  TokenTable table_;
  at::Tensor in_weight_, in_bias_;
  ImagePositions image_positions_;  // undefined for text
  AbsolutePositions positions_;     // of text
};
TORCH_MODULE(Transformer);

}  // namespace routing
