// Where ids become vectors and vectors predictions: the token table and the output layer of every kind of model.
//
//   plain      one table [vocabulary, embedding width]; logits = table h + bias
//   in bands   model.bands cuts the vocabulary, most frequent words first: narrower tables for rarer words, each with a
//              projection (ops/dense/adaptive_embedding.h, adaptive_softmax.h)
//
// A tied output layer has the input's tables and, in bands, its projections turned round, but for the first band: its
// symbols of further bands read h as it is. These symbols are rows of the first table, behind its words; a start symbol
// of its own is the last row.
#pragma once

#include "routing/attention/patterns/pattern.h"
#include "routing/config/experiment.h"
#include "routing/config/text/vocabulary_bands.h"
#include "routing/ops/dense/adaptive_embedding.h"
#include "routing/ops/dense/adaptive_softmax.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <vector>

namespace routing {

// Of the token table, in bands of its first: model.embedding_width, or model.width where that is 0.
std::int64_t embedding_width(const ModelConfig& config);
// The bands of a model's vocabulary; one where model.bands is empty.
std::vector<VocabularyBand> bands_of(const ModelConfig& config);
// More than one band to read from (model.adaptive_input), or to predict in (model.adaptive_output).
bool reads_bands(const ModelConfig& config);
bool predicts_bands(const ModelConfig& config);
// Whether a dense layer stands between the table and the stack: where widths differ or model.embedding_projection asks
// for it. Bands have projections of their own, so there the second reason adds one to the first band instead.
bool projects_embeddings(const ModelConfig& config);

enum class TableUse {
  input,             // read alone
  input_and_output,  // read and, in a tied model, what the output layer predicts with
};

class TokenTable {
 public:
  // No tokens.
  TokenTable() = default;
  // One table for all ids below its rows, registered elsewhere.
  explicit TokenTable(const at::Tensor& table);
  // Registers "embedding" and, in bands, "embedding_band1", "embedding_projection1" and so on, drawn from the streams
  // of the place.
  TokenTable(const ModelConfig& config, TableUse use, const LayerPlace& place, torch::nn::Module& owner,
             const at::TensorOptions& options);

  // int64 [...] -> [..., embedding width].
  at::Tensor vectors(const at::Tensor& ids, MatmulPrecision precision) const;
  const std::vector<EmbeddingBand>& bands() const { return table_.bands; }

 private:
  BandedTable table_;
};

class OutputLayer {
 public:
  OutputLayer() = default;
  // Registers "output_bias" and, unless it is tied, "output_weight" and, in bands, "output_band1", "output_projection1"
  // and so on. `table` is what a tied layer shares.
  OutputLayer(const ModelConfig& config, const LayerPlace& place, const TokenTable& table, torch::nn::Module& owner,
              const at::TensorOptions& options);

  // [..., embedding width] -> [..., vocabulary]: logits; in bands those that are logarithms of probabilities.
  at::Tensor logits(const at::Tensor& values, MatmulPrecision precision) const;
  // values [batch, n, embedding width], targets int64 [batch, n] -> [batch, n].
  at::Tensor nats(const at::Tensor& values, const at::Tensor& targets, MatmulPrecision precision) const;

 private:
  std::vector<SoftmaxBand> bands_;
};

}  // namespace routing
