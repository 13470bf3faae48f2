#include "routing/training/memory_estimate.h"

#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/dense/packed_weights.h"
#include "routing/ops/dense/vocabulary_loss.h"
#include "routing/training/learner.h"

#include <algorithm>
#include <string>

namespace routing {
namespace {

constexpr std::int64_t kNumber = sizeof(float);
// Memory that waits for reuse (core/block_pool.h) and is neither one thing nor another, as a share of what moves.
constexpr double kWaitingShare = 1.0 / 24.0;
constexpr std::int64_t kPanelColumns = 1024;  // of the vocabulary, in the loss

// Clusters a token is a member of, on average.
double memberships(const HeadGroupConfig& group, std::int64_t n) {
  const auto shared_out = [&](std::int64_t lists, std::int64_t window) {
    return static_cast<double>(lists * std::min(window, n)) / static_cast<double>(n);
  };
  if (const auto* random = std::get_if<RandomPattern>(&group.pattern)) {
    return shared_out(random->groups, random->window);
  }
  if (const auto* lsh = std::get_if<LshPattern>(&group.pattern)) return static_cast<double>(lsh->rounds);
  const auto* routing = std::get_if<RoutingPattern>(&group.pattern);
  if (routing == nullptr || routing->selection == RoutingSelection::nearest) return 1.0;
  if (routing->selection == RoutingSelection::balanced) return shared_out(routing->clusters, routing->window);
  // Thresholds give each cluster its share, one cluster per token on average; of independent memberships 1/e of all
  // tokens would have none, and these join their best.
  constexpr double kWithoutAny = 0.37;
  return 1.0 + kWithoutAny;
}

// Places in lists of keys of their own, which all heads share: the rectangles of windows of two dimensions overlap.
double key_places_a_token(const HeadGroupConfig& group) {
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  if (const auto* fixed = std::get_if<FixedPattern>(&group.pattern)) return share(fixed->summary, fixed->stride);
  const auto* local = std::get_if<Local2dPattern>(&group.pattern);
  if (local == nullptr) return 0.0;
  const std::int64_t columns = std::min(local->columns, local->image_width);
  const std::int64_t strip = std::min(local->columns + 2 * local->beside, local->image_width);
  return share(local->rows + local->above, local->rows) * share(strip, columns);
}

// Offsets of a token's entries; then list, group, rank and view of each membership (ops/attend/plan.h,
// visibility.h).
double plan_bytes_a_token(const HeadGroupConfig& group, std::int64_t n) {
  return static_cast<double>(group.heads) * (8.0 + memberships(group, n) * (4 + 8 + 4 + 16)) +
         4.0 * key_places_a_token(group);
}

// Bytes of a number that is kept as products read it.
struct Kept {
  std::int64_t dense = kNumber;      // inputs of linear layers
  std::int64_t attention = kNumber;  // queries, keys and values
  bool rounds() const { return attention < kNumber; }
};

Kept kept_numbers(const ExperimentConfig& config) {
  constexpr std::int64_t kHalf = 2;
  if (matmul_precision(config.train.precision) != MatmulPrecision::bf16) return {};
  return {.dense = kHalf, .attention = attend_keeps_halves(MatmulPrecision::bf16) ? kHalf : kNumber};
}

// Bytes per token of heads that stand side by side again, for the output layer.
std::int64_t side_by_side_bytes(const AttentionConfig& attention, const Kept& kept) {
  const std::int64_t all = total_heads(attention) * head_dim(attention) * kept.dense;
  const bool copied = attention.head_groups.size() > 1 || kept.dense < kNumber;
  return (copied ? all : 0) + (attention.head_mix ? all : 0);
}

// Bytes per token that the attention of a layer keeps beside its input, as multi_head.cpp makes them.
std::int64_t attention_bytes(const AttentionConfig& attention, const Kept& kept) {
  const std::int64_t dim = head_dim(attention);
  const std::int64_t all = total_heads(attention) * dim;
  std::int64_t key_heads = 0;
  std::int64_t bytes = 2 * all * kept.attention;  // queries and values
  bool keeps_keys = false;
  bool keeps_queries = false;
  for (const HeadGroupConfig& group : attention.head_groups) {
    const std::int64_t heads = group.heads;
    const bool separate = !group.shared_query_key;
    const auto* routing = std::get_if<RoutingPattern>(&group.pattern);
    if (separate || attention.unused_key_columns) key_heads += heads;
    keeps_keys = keeps_keys || separate;
    if (separate && kept.rounds()) bytes += heads * dim * kept.attention;
    if (routing != nullptr) {
      bytes +=
          ((separate ? 2 : 1) * heads * (dim + 1) + heads) * kNumber;  // normalised, and which centroid was nearest
    }
    if (group.learned_scale && !kept.rounds()) bytes += heads * dim * kNumber;  // queries times their factor
    if (group.key_shift == 1) bytes += heads * dim * kept.attention;            // keys at their places
    if (std::holds_alternative<LshPattern>(group.pattern)) {
      bytes += heads * (kept.rounds() ? dim * kept.attention : (dim + 2) * kNumber);  // keys of unit length
      keeps_queries = true;
    }
    if (std::holds_alternative<SpanPattern>(group.pattern)) {
      constexpr std::int64_t kColumns = 2;  // of patterns/span.h; rows with them are no views
      bytes += heads * (kept.rounds() ? 2 * kColumns * kept.attention : 2 * (dim + kColumns) * kNumber);
    }
    bytes += heads * (dim + 1) * kNumber;  // output, log-sum-exp
  }
  // Rows of float32 are views of what the projections made, and keep all of it.
  if (keeps_keys && !kept.rounds()) bytes += key_heads * dim * kNumber;
  if (keeps_queries && kept.rounds()) bytes += all * kNumber;
  return bytes + side_by_side_bytes(attention, kept);
}

// Keys and values of earlier pieces that a layer keeps of a sequence that has so many tokens before the last piece.
// Those of windows do not count.
std::int64_t earlier_row_bytes(const ExperimentConfig& config, std::int64_t layer, std::int64_t tokens_before) {
  const AttentionConfig attention = attention_of_layer(config, layer);
  std::int64_t rows = 0;
  for (const HeadGroupConfig& group : attention.head_groups) {
    const bool has_window = std::holds_alternative<LocalPattern>(group.pattern) ||
                            std::holds_alternative<Local2dPattern>(group.pattern) ||
                            std::holds_alternative<SpanPattern>(group.pattern);
    if (has_window) continue;
    // The last keys of each list, which are all different at worst.
    std::int64_t read = tokens_before;
    if (const auto* routing = std::get_if<RoutingPattern>(&group.pattern)) {
      read = std::min(read, routing->clusters * routing->window);
    } else if (const auto* lsh = std::get_if<LshPattern>(&group.pattern)) {
      read = std::min(read, lsh->rounds * lsh->buckets * lsh->window);
    }
    rows += group.heads * read;
  }
  return 2 * rows * head_dim(attention) * kept_numbers(config).attention;
}

std::int64_t layer_bytes(const ExperimentConfig& config, std::int64_t layer) {
  const ModelConfig& model = config.model;
  const Kept kept = kept_numbers(config);
  const std::int64_t hidden = model.feedforward_width;
  constexpr std::int64_t kNormStatistics = 4;
  std::int64_t feedforward = hidden * kept.dense;
  if (model.feedforward != FeedforwardKind::relu) {
    feedforward += (model.feedforward == FeedforwardKind::geglu ? 2 : 1) * hidden * kNumber;
    // What dropout leaves is another tensor than what the activation gave only where that is not kept anyway.
    if (model.feedforward_dropout > 0.0 && kept.dense == kNumber) feedforward += hidden * kNumber;
  }
  return 2 * model.width * (kNumber + kept.dense) + kNormStatistics * kNumber +
         attention_bytes(attention_of_layer(config, layer), kept) + feedforward;
}

// Remembered tokens of one stream and layer: for the time of a step there are those that are read and those that will
// be, and what projections read of them. Their keys and values are attended; their queries and outputs are there though
// nobody asks for them, but no output layer reads them.
std::int64_t memory_bytes(const ExperimentConfig& config, std::int64_t layer) {
  const Kept kept = kept_numbers(config);
  const std::int64_t width = config.model.width;
  const std::int64_t stays = 2 * width * kNumber;
  const AttentionConfig attention = attention_of_layer(config, layer);
  const std::int64_t attended =
      width * kept.dense + attention_bytes(attention, kept) - side_by_side_bytes(attention, kept);
  const std::int64_t tokens = config.memory.length + config.memory.compressed;
  return tokens * (config.model.checkpoint_activations ? stays : stays + attended);
}

// Below and above the stack: embeddings, last norm, what the loss reads, and its sums.
std::int64_t end_numbers(const ModelConfig& model) {
  const std::int64_t inner = model.embedding_width > 0 ? model.embedding_width : model.width;
  std::int64_t numbers = model.norm == NormPlacement::pre ? 2 * model.width : model.width;
  if (inner != model.width) numbers += 2 * inner;
  if (inner == model.width && model.embedding_projection) numbers += inner;
  return numbers + 8;
}

// Bytes a token of what is there at once while the top layer is differentiated. Hidden rows of a ReLU come in pieces.
std::int64_t backward_bytes(const ExperimentConfig& config) {
  const ModelConfig& model = config.model;
  const Kept kept = kept_numbers(config);
  const std::int64_t whole = model.feedforward == FeedforwardKind::geglu  ? 2
                             : model.feedforward == FeedforwardKind::gelu ? 1
                                                                          : 0;
  const AttentionConfig top = attention_of_layer(config, model.layers - 1);
  const std::int64_t heads = total_heads(top) * head_dim(top);
  const std::int64_t feedforward = (whole * model.feedforward_width + 3 * model.width) * kNumber;
  const std::int64_t attention = (5 * heads + 2 * model.width) * kNumber;
  return std::max(feedforward, attention - model.feedforward_width * kept.dense);
}

// Rows of words, by the names of vocabulary_layers.h.
bool is_table(const std::string& name, const std::string& first) {
  return name == first || name.starts_with(first.substr(0, first.find('_')) + "_band");
}

void add_parameters(const ExperimentConfig& config, MemoryEstimate& estimate) {
  const Transformer model(config, at::TensorOptions().device(at::kMeta));
  const bool adam = config.train.optimizer == OptimizerKind::adam || config.train.optimizer == OptimizerKind::adamw;
  const bool halves = matmul_precision(config.train.precision) == MatmulPrecision::bf16 &&
                      matmul_precision(Precision::automatic) == MatmulPrecision::bf16;
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    const at::Tensor& weight = item.value();
    const std::int64_t bytes = weight.numel() * kNumber;
    estimate.weights += bytes;
    const bool factored = weight.dim() == 2 && !adam;
    estimate.optimizer += adam ? 2 * bytes : factored ? (weight.size(0) + weight.size(1)) * kNumber : bytes;
    const bool predicts = is_table(name, "output_weight");
    const bool reads = is_table(name, "embedding");
    if (predicts || (config.model.tied_output && reads)) estimate.output_gradients += bytes;
    const bool multiplied = weight.dim() == 2 && !predicts && !reads && !name.ends_with("positions") &&
                            name.find("relative_") == std::string::npos;
    // For the forward pass and for gradients of inputs.
    if (multiplied) estimate.packed_weights += 2 * (halves ? bytes / 2 : bytes);
  }
  estimate.gradients = estimate.weights;
  estimate.packed_weights = std::min(estimate.packed_weights, static_cast<std::int64_t>(packed_weights_limit()));
}

}  // namespace

std::int64_t MemoryEstimate::total() const {
  const std::int64_t moving =
      accumulates ? activations + gradients : std::max(activations + output_gradients, gradients);
  return weights + optimizer + packed_weights + plans + workspace + moving;
}

MemoryEstimate estimate_training_memory(const ExperimentConfig& given) {
  ExperimentConfig config = given;
  require<ConfigError>(config.model.encoder_layers == 0, config.name,
                       ": memory is estimated for decoder-only models, but model.encoder_layers is ",
                       config.model.encoder_layers);
  constexpr std::int64_t wikitext103_words = 267'735;
  if (config.model.vocab_size == 0) {
    config.model.vocab_size = config.data.tokens == TokenKind::words ? wikitext103_words : config.data.vocabulary_size;
  }
  MemoryEstimate estimate{.accumulates = config.train.accumulation > 1};
  add_parameters(config, estimate);
  const std::int64_t n = config.train.sequence_length;
  const std::int64_t piece = (n + config.train.sequence_ranks - 1) / config.train.sequence_ranks;
  const std::int64_t tokens = config.train.batch_size * piece;
  std::int64_t all_layers = 0;
  std::int64_t kept_before = 0;
  std::int64_t kept = end_numbers(config.model) * kNumber;
  std::int64_t largest = 0;
  double plans = 0.0;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    const std::int64_t bytes = layer_bytes(config, layer);
    const std::int64_t before = config.train.batch_size * earlier_row_bytes(config, layer, n - piece);
    kept_before = config.model.checkpoint_activations ? std::max(kept_before, before) : kept_before + before;
    all_layers += bytes;
    largest = std::max(largest, bytes);
    kept += config.model.checkpoint_activations ? config.model.width * kNumber : bytes;
    for (const HeadGroupConfig& group : attention_of_layer(config, layer).head_groups) {
      plans += plan_bytes_a_token(group, n);
    }
  }
  if (config.model.checkpoint_activations) kept += largest;  // the layer that is computed again
  estimate.plans = static_cast<std::int64_t>(plans * static_cast<double>(tokens));
  estimate.activations = tokens * kept + kept_before;
  estimate.layer_bytes_a_token = (all_layers + static_cast<std::int64_t>(plans)) / config.model.layers;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    estimate.activations += config.train.batch_size * memory_bytes(config, layer);
  }
  const std::int64_t logits =
      std::min(tokens, VocabularyLossOptions{}.chunk_rows) * std::min(kPanelColumns, config.model.vocab_size) * kNumber;
  const std::int64_t backward = tokens * backward_bytes(config);
  const double waiting = kWaitingShare * static_cast<double>(estimate.activations + backward);
  estimate.workspace = backward + logits + static_cast<std::int64_t>(waiting);
  return estimate;
}

}  // namespace routing
