// A model as training, evaluation, generation and files see it, whether it reads a source or not.
//
//   memory  = encode(source)                                  of an encoder-decoder (encoder_decoder.h) only
//   hidden  = decoder layers(start symbol, t_0, …, t_{m-2}; memory)
//   logits  = output layer(hidden), loss = -log softmax(logits_i)[t_i]        (vocabulary_layers.h)
//
// A kind of model says what stands before the output layer; what follows, and reading piece by piece, is the same for
// all and stands here.
#pragma once

#include "routing/attention/multi_head.h"
#include "routing/config/experiment.h"
#include "routing/model/block.h"
#include "routing/model/layers.h"
#include "routing/model/model_cache.h"
#include "routing/model/vocabulary_layers.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace routing {

// Statistics of one group of routed heads and where it stands.
struct LayerStatistics {
  std::int64_t layer = 0;
  RoutingStatistics statistics = {};
  std::string attention = {};   // by name: "layer 0", "encoder layer 0", "cross-attention of layer 0"
  std::int64_t first_head = 0;  // of the group, counted over all heads of its attention
};

// A head that learns how far back it reads (attention/patterns/span.h), and where it stands.
struct HeadSpan {
  std::int64_t layer = 0;
  std::string attention = {};  // by name, as in LayerStatistics
  std::int64_t head = 0;       // in its layer
  double span = 0.0;           // z, in tokens
  std::int64_t keys = 0;       // that it reads with it
};

// Sequences to learn from. Padding may be anywhere in a source and stands after the end of a target.
struct TokenBatch {
  at::Tensor tokens = {};        // int64 [batch, m]: the targets
  at::Tensor sample_ids = {};    // int64 [batch], for ForwardContext
  std::int64_t index = 0;        // its number in the order of the data
  at::Tensor valid = {};         // bool [batch, m], false for padding; undefined means that there is none
  at::Tensor source = {};        // int64 [batch, n]; undefined for a decoder-only model
  at::Tensor source_valid = {};  // bool [batch, n]
  // Targets of the whole batch, where these are only one rank's rows of it; 0 means that there are no others.
  std::int64_t all_targets = 0;

  // Those of these rows, without padding.
  std::int64_t targets() const { return valid.defined() ? valid.sum().item<std::int64_t>() : tokens.numel(); }
};

// What a decoder reads of its sources: to be made once, whatever is decoded from it. That of a decoder-only model is
// empty.
struct SourceMemory {
  at::Tensor values = {};     // [batch, n, width]
  at::Tensor valid = {};      // bool [batch, n]; undefined means all
  at::Tensor auxiliary = {};  // of the encoder's layers; undefined in evaluation or if nothing
};

class SequenceModel : public torch::nn::Module {
 public:
  struct Loss {
    at::Tensor nats;       // [batch, m]: of every target; 0 at padding, which does not count
    at::Tensor auxiliary;  // what the patterns add to the training loss; undefined in evaluation or if nothing
    // [batch, m]: what a learned compression of memory loses, summed over layers (Block::reconstruction); undefined in
    // evaluation and without one.
    at::Tensor reconstruction = {};
  };
  Loss loss(const TokenBatch& batch, const ForwardContext& context);
  // Of whole sequences alone.
  Loss loss(const at::Tensor& tokens, const ForwardContext& context);
  // [batch, m, vocab_size]; row i is the prediction of token i.
  at::Tensor logits(const TokenBatch& batch, const ForwardContext& context);
  at::Tensor logits(const at::Tensor& tokens, const ForwardContext& context);

  bool reads_source() const { return config_.model.encoder_layers > 0; }
  // A decoder-only model refuses a source with an InputError.
  virtual SourceMemory encode(const at::Tensor& source, const at::Tensor& valid, const ForwardContext& context);
  // logits() of targets whose source is encoded already.
  at::Tensor decode(const SourceMemory& memory, const at::Tensor& tokens, const at::Tensor& valid,
                    const ForwardContext& context);
  // The prediction of the token after these, [vocab_size], from a pass over all of them. Patterns that choose from a
  // whole sequence choose from these.
  //
  // With a memory in the context these tokens are the beginning of a segment, and the memory stays as it is.
  at::Tensor next_logits(std::span<const std::int64_t> tokens, const ForwardContext& context,
                         const SourceMemory& memory = {});
  // Reads a whole segment [streams, tokens] for nothing but the memory of the context.
  void remember(const at::Tensor& tokens, const ForwardContext& context);
  // The nats of `target` at one position of a sequence [1, n]: what loss() has there, bit for bit, if the sequence
  // holds it. What the sequence does hold there is the input of the next position, so it may be something else.
  double nats_at(const at::Tensor& tokens, std::int64_t position, std::int64_t target, const ForwardContext& context);

  // Sequences that are read piece by piece (generation/decoder.h). An empty cache, which for bf16 takes half the memory
  // where kernels read keys so, and is good for that precision only; why there can be none, or nothing.
  ModelCache make_cache(MatmulPrecision precision = MatmulPrecision::fp32) const;
  std::string reason_against_cache() const;
  // The number of a new sequence of the cache. That of an encoder-decoder begins with its source, int64 [1, n].
  virtual std::int64_t begin_sequence(ModelCache& cache, const at::Tensor& source, const ForwardContext& context);
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

  // What the heads of every layer attend with over these tokens, [layer][head group]: a pass in evaluation that changes
  // nothing but what such passes change. For analysis of single heads (attention/head_probe.h); a ConfigError where
  // there is a source to be read.
  std::vector<std::vector<GroupProbe>> probe(const at::Tensor& tokens, const ForwardContext& context);

  // What each of the decoder's layers used in its last forward: its plans, for pictures and analysis.
  const std::vector<BlockState>& states() const { return states_; }
  Block block(std::size_t layer) const { return layers_.at(layer); }

  // Moves the centroids of all routed groups by what the training forwards since the last call saw. To be called once
  // after each optimiser step.
  std::vector<LayerStatistics> update_centroids();
  // The same statistics of forwards in evaluation since the last call; changes nothing else.
  std::vector<LayerStatistics> take_evaluation_statistics();
  // The name of the first attention whose routed heads saw tokens that are not finite since the last update; empty if
  // none did.
  std::string attention_with_nonfinite_tokens();
  // All groups of routed heads, in the order of statistics.
  struct RoutedGroup {
    std::int64_t layer = 0;
    std::string attention = {};  // by name, as in LayerStatistics
    Centroids* centroids = nullptr;
    std::int64_t first_head = 0;  // as in LayerStatistics
  };
  std::vector<RoutedGroup> routed_groups();
  // The learned spans of all heads that have one, in the order of attentions().
  std::vector<HeadSpan> spans() const;
  // Takes spans back to where they may be. To be called once after each optimiser step.
  void clamp_spans();
  // Forgets what training forwards collected for the centroids, for a step that is given up.
  void forget_collected();

  // Every attention of the model, in the order of statistics.
  struct Site {
    std::int64_t layer = 0;
    MultiHeadAttention attention = nullptr;
  };
  const std::vector<Site>& attentions() const { return sites_; }
  const ExperimentConfig& config() const { return config_; }
  std::int64_t num_parameters() const;

 protected:
  // Refuses a configuration that is not valid.
  explicit SequenceModel(ExperimentConfig config);
  // Makes and registers blocks, as `name` and their number.
  std::vector<Block> add_blocks(const std::string& name, BlockRole role, const at::TensorOptions& options);
  void set_decoder(std::vector<Block> layers);
  // What follows the decoder's layers: a norm of this name if norms come first, and the output layer, which shares the
  // table where it is tied.
  void add_output(const std::string& norm, const LayerPlace& place, const TokenTable& table,
                  const at::TensorOptions& options);

  // What a stack makes of its input, and the auxiliary losses of its layers.
  struct Hidden {
    at::Tensor values = {};
    at::Tensor auxiliary = {};
    at::Tensor reconstruction = {};
  };
  void run_block(Block& block, BlockState& state, const ForwardContext& context, Hidden& hidden) const;
  // Through the decoder's layers, each handed the memory, to what the output layer reads: [batch, m, embedding width].
  Hidden run_decoder(at::Tensor inputs, const SourceMemory& memory, const at::Tensor& valid,
                     const ForwardContext& context);
  // Whatever stands at padding, a model reads id 0 there, and nothing sees it.
  static at::Tensor without_padding(const at::Tensor& tokens, const at::Tensor& valid);

 private:
  // What the output layer reads of these targets.
  virtual Hidden hidden(const SourceMemory& memory, const at::Tensor& tokens, const at::Tensor& valid,
                        const ForwardContext& context) = 0;
  // The row of the table that is read at a position, by the token before it.
  virtual std::int64_t id_at(std::int64_t position, std::int64_t before) const;
  // Vectors of ids [batch, n] in evaluation, whose positions are given one after the other.
  virtual at::Tensor embed_at(const at::Tensor& ids, std::span<const std::int64_t> positions,
                              const ForwardContext& context) const = 0;

  // What a layer will remember after these inputs goes to `next`.
  void remember_layer(std::size_t layer, const at::Tensor& inputs, const ForwardContext& context, ModelMemory& next,
                      Hidden& hidden) const;
  at::Tensor last_layers(at::Tensor x, const ForwardContext& context) const;
  at::Tensor hidden_cached(const at::Tensor& previous, ModelCache& cache, std::span<const std::int64_t> sequences,
                           const CachedContext& context) const;

  ExperimentConfig config_;
  std::vector<Site> sites_;
  std::vector<Block> layers_;  // of the decoder
  std::vector<BlockState> states_;
  LayerNorm last_norm_ = nullptr;
  at::Tensor out_weight_, out_bias_;  // from the model's width to the embedding's
  OutputLayer output_;
};

// The model that the configuration describes: an EncoderDecoder where there are encoder layers, or else a Transformer.
std::shared_ptr<SequenceModel> make_model(const ExperimentConfig& config, const at::TensorOptions& options);

}  // namespace routing
