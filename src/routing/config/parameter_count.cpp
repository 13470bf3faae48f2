#include "routing/config/parameter_count.h"

#include "routing/config/span_heads.h"
#include "routing/config/text/vocabulary_bands.h"

#include <algorithm>

namespace routing {
namespace {

std::int64_t of_attention(const AttentionConfig& layer) {
  const std::int64_t dim = head_dim(layer);
  const std::int64_t heads = total_heads(layer);
  std::int64_t key_heads = 0;
  std::int64_t count = layer.head_mix ? dim * dim : 0;
  for (std::size_t index = 0; index < layer.head_groups.size(); ++index) {
    const HeadGroupConfig& group = layer.head_groups[index];
    const bool own_tables = table_group(layer.head_groups, index) == index;
    if (!group.shared_query_key || layer.unused_key_columns) key_heads += group.heads;
    if (group.relative != RelativePosition::none && own_tables) count += 2 * (2 * group.max_relative + 1) * dim;
    if (group.learned_scale) count += group.heads;
    if (std::holds_alternative<SpanPattern>(group.pattern)) ++count;
  }
  // Queries, values and the output layer.
  return count + (3 * heads + key_heads) * dim * layer.width;
}

std::int64_t of_feedforward(const ModelConfig& model) {
  const std::int64_t matrix = model.feedforward_width * model.width;
  return model.feedforward == FeedforwardKind::geglu ? 3 * matrix : 2 * matrix + model.feedforward_width + model.width;
}

// The tables of words and the projections of bands.
struct WordWeights {
  std::int64_t input = 0;   // of one table
  std::int64_t shared = 0;  // rows of a table that only a tied output layer reads
  std::int64_t output = 0;  // with biases, and without what a tied layer shares
};

WordWeights of_words(const ModelConfig& model, std::int64_t inner) {
  // The last band is what the others leave: of a vocabulary that is not known yet fewer than none, so that the count of
  // any is that of 0 words and a_word times the words.
  std::vector<VocabularyBand> bands =
      vocabulary_bands({.ends = model.bands, .vocab_size = 0, .width = inner, .factor = model.band_factor});
  bands.back().words = model.vocab_size - bands.back().first;
  const auto further = static_cast<std::int64_t>(bands.size()) - 1;
  std::int64_t banded = 0;
  for (const VocabularyBand& band : bands) banded += (band.words + (band.first > 0 ? inner : 0)) * band.width;
  const bool reads = model.adaptive_input && further > 0;
  const bool predicts = model.adaptive_output && further > 0;
  WordWeights count{.input = reads ? banded : model.vocab_size * inner};
  if (model.start_symbol == StartSymbol::own) count.input += inner;
  if (reads && model.embedding_projection && inner == model.width) count.input += inner * inner;
  count.output = model.vocab_size + (predicts ? further : 0);
  if (predicts) (model.tied_output ? count.shared : count.output) += further * inner;
  if (!model.tied_output) count.output += predicts ? banded : model.vocab_size * inner;
  return count;
}

// Tables of the places of a sequence of so many tokens.
std::int64_t of_positions(const ModelConfig& model, std::int64_t tokens) {
  const std::int64_t stride = model.position_stride;
  if (model.positions == PositionKind::learned) return tokens * model.width;
  if (model.positions != PositionKind::factored) return 0;
  return ((tokens + stride - 1) / stride + std::min(stride, tokens)) * model.width;
}

// Tables of tokens and places, and the dense layer after them.
std::int64_t of_embedding(const ExperimentConfig& config, std::int64_t inner) {
  const ModelConfig& model = config.model;
  const bool reads_bands = model.adaptive_input && !model.bands.empty();
  const bool projects = inner != model.width || (model.embedding_projection && !reads_bands);
  const std::int64_t projection = projects ? model.width * inner + model.width : 0;
  const WordWeights words = of_words(model, inner);
  if (model.encoder_layers > 0) {
    return 2 * (words.input + projection) + words.shared + of_positions(model, source_length(config.train)) +
           of_positions(model, config.train.sequence_length);
  }
  if (model.image_height == 0) {
    return words.input + words.shared + projection + of_positions(model, config.train.sequence_length);
  }
  // Three channels, each with its values and its places; one row to start from.
  return (3 * (model.vocab_size + model.image_height + model.image_width) + 1) * inner + projection;
}

ParameterCount counted(const ExperimentConfig& config) {
  const ModelConfig& model = config.model;
  const std::int64_t inner = model.embedding_width > 0 ? model.embedding_width : model.width;
  const bool reads_source = model.encoder_layers > 0;
  const std::int64_t norms = 2 * model.encoder_layers + (reads_source ? 3 : 2) * model.layers +
                             (model.norm == NormPlacement::pre ? (reads_source ? 2 : 1) : 0);
  ParameterCount count{.embedding = of_embedding(config, inner),
                       .feedforward = (model.layers + model.encoder_layers) * of_feedforward(model),
                       .norms = norms * 2 * model.width,
                       .output = of_words(model, inner).output};
  if (inner != model.width) count.output += inner * model.width + inner;
  if (config.memory.compressed > 0 && config.memory.compression == Compression::convolution) {
    count.attention += model.layers * config.memory.rate * model.width * model.width;
  }
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    count.attention += of_attention(attention_of_layer(config, layer));
    if (reads_source) count.attention += of_attention(cross_attention_of_layer(config, layer));
  }
  for (std::int64_t layer = 0; layer < model.encoder_layers; ++layer) {
    count.attention += of_attention(attention_of_encoder_layer(config, layer));
  }
  return count;
}

}  // namespace

ParameterCount count_parameters(const ExperimentConfig& config) {
  ExperimentConfig larger = config;
  ++larger.model.vocab_size;
  ParameterCount count = counted(config);
  count.a_word = counted(larger).total() - count.total();
  return count;
}

}  // namespace routing
