#include "routing/config/parameter_count.h"

#include <algorithm>

namespace routing {
namespace {

std::int64_t of_attention(const AttentionConfig& layer) {
  const std::int64_t dim = head_dim(layer);
  const std::int64_t heads = total_heads(layer);
  std::int64_t key_heads = 0;
  std::int64_t count = layer.head_mix ? dim * dim : 0;
  for (const HeadGroupConfig& group : layer.head_groups) {
    if (!group.shared_query_key || layer.unused_key_columns) key_heads += group.heads;
    if (group.relative != RelativePosition::none) count += 2 * (2 * group.max_relative + 1) * dim;
    if (group.learned_scale) count += group.heads;
  }
  // Queries, values and the output layer.
  return count + (3 * heads + key_heads) * dim * layer.width;
}

std::int64_t of_feedforward(const ModelConfig& model) {
  const std::int64_t matrix = model.feedforward_width * model.width;
  return model.feedforward == FeedforwardKind::geglu ? 3 * matrix : 2 * matrix + model.feedforward_width + model.width;
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
  const bool projects = inner != model.width || model.embedding_projection;
  const std::int64_t projection = projects ? model.width * inner + model.width : 0;
  const std::int64_t table = model.vocab_size + (model.start_symbol == StartSymbol::own ? 1 : 0);
  if (model.encoder_layers > 0) {
    return 2 * (table * inner + projection) + of_positions(model, source_length(config.train)) +
           of_positions(model, config.train.sequence_length);
  }
  if (model.image_height == 0) return table * inner + projection + of_positions(model, config.train.sequence_length);
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
                       .output = model.vocab_size * (model.tied_output ? 1 : inner + 1)};
  if (inner != model.width) count.output += inner * model.width + inner;
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
