// The decoder-only transformer over token ids.
//
//   inputs  s, t_0, t_1, …, t_{n-2}          the sequence shifted right by one behind the start symbol
//                                            (model.start_symbol; token_inputs.h)
//   x       = embedding(inputs) [-> dense layer to the model's width]; no absolute positions for text, row, column and
//             channel for images (image_embedding.h)
//   x       = blocks(x) [-> one more norm if norms come first]
//   logits  = output([dense layer to the embedding's width ->] x)
//   loss    = -log softmax(logits_i)[t_i]    position i has seen t_0 … t_{i-1} only
#pragma once

#include "routing/config/experiment.h"
#include "routing/model/block.h"
#include "routing/model/image_embedding.h"
#include "routing/model/layers.h"
#include "routing/model/sequence_model.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace routing {

class TransformerImpl : public SequenceModel {
 public:
  // Weights are drawn from streams named by config.train.seed and their place. With options on the meta device nothing
  // is allocated.
  TransformerImpl(ExperimentConfig config, const at::TensorOptions& options);

  using SequenceModel::Loss;
  // tokens int64 [batch, n].
  Loss loss(const at::Tensor& tokens, const ForwardContext& context);
  // The same. Text has neither a source nor padding: such a batch is an InputError.
  Loss loss(const TokenBatch& batch, const ForwardContext& context) override;
  // [batch, n, vocab_size]; row i is the prediction of token i.
  at::Tensor logits(const at::Tensor& tokens, const ForwardContext& context);

  // Sequences that are read piece by piece (generation/decoder.h). An empty cache; why there can be none, or nothing.
  ModelCache make_cache() const;
  std::string reason_against_cache() const;
  // What the next tokens of some sequences predict: previous int64 [sequences, tokens], where previous[b][j] stands
  // before position length + j of its sequence; before position 0 there is nothing, whatever is given. Returns
  // [sequences, tokens, vocab_size], or of the last token only: the rows that logits() of the whole sequences has
  // there, bit for bit.
  at::Tensor logits_cached(const at::Tensor& previous, ModelCache& cache, std::span<const std::int64_t> sequences,
                           const CachedContext& context) const;
  // The nats of these tokens instead: targets int64 [sequences, tokens] are what stands at those positions. What loss()
  // of the whole sequences has there, bit for bit, [sequences, tokens].
  at::Tensor nats_cached(const at::Tensor& previous, const at::Tensor& targets, ModelCache& cache,
                         std::span<const std::int64_t> sequences, const CachedContext& context) const;
  // The prediction of the token after these, [vocab_size], from a pass over all of them. Patterns that choose from a
  // whole sequence choose from these.
  at::Tensor next_logits(std::span<const std::int64_t> tokens, const ForwardContext& context);
  // The nats of `target` at one position of a sequence [1, n]: what loss() has there, bit for bit, if the sequence
  // holds it. What the sequence does hold there is the input of the next position, so it may be something else.
  double nats_at(const at::Tensor& tokens, std::int64_t position, std::int64_t target, const ForwardContext& context);

  // What the heads of every layer attend with over these tokens, [layer][head group]: a pass in evaluation that changes
  // nothing but what such passes change. For analysis of single heads (attention/head_probe.h).
  std::vector<std::vector<GroupProbe>> probe(const at::Tensor& tokens, const ForwardContext& context);

  // What each layer's last forward used: its plans, for pictures and analysis.
  const std::vector<BlockState>& states() const { return states_; }
  Block block(std::size_t layer) const { return blocks_.at(layer); }

 private:
  bool reads_images() const { return config().model.image_height > 0; }
  // The rows of the table that a sequence reads.
  at::Tensor input_ids(const at::Tensor& tokens, const ForwardContext& context) const;
  // Vectors of ids [batch, n] at some positions: all sequences' or, one after the other, each one's own.
  at::Tensor embed(const at::Tensor& ids, std::span<const std::int64_t> positions, const ForwardContext& context) const;
  at::Tensor last_layers(at::Tensor x, const ForwardContext& context) const;
  // What the output layer reads, [batch, n, embedding width], and the auxiliary losses of the layers.
  struct Hidden {
    at::Tensor values, auxiliary;
  };
  Hidden hidden(const at::Tensor& tokens, const ForwardContext& context);
  at::Tensor hidden_cached(const at::Tensor& previous, ModelCache& cache, std::span<const std::int64_t> sequences,
                           const CachedContext& context) const;

  LayerPlace place_;
  at::Tensor table_, in_weight_, in_bias_;
  ImagePositions image_positions_;  // undefined for text
  std::vector<Block> blocks_;
  LayerNorm last_norm_ = nullptr;
  at::Tensor out_weight_, out_bias_;  // from the model's width to the embedding's
  at::Tensor vocabulary_weight_, vocabulary_bias_;
  std::vector<BlockState> states_;
};
TORCH_MODULE(Transformer);

}  // namespace routing
