#include "routing/model/sequence_model.h"

#include "routing/attention/patterns/span.h"
#include "routing/config/memory_rules.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/model_memory.h"
#include "routing/model/token_inputs.h"
#include "routing/model/transformer.h"
#include "routing/ops/initial_weights.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

// Sequences of a step that are worth a thread.
constexpr std::int64_t kFewestOfStep = 2;

at::Tensor sum_of(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined() || !second.defined()) return first.defined() ? first : second;
  return first + second;
}

}  // namespace

SequenceModel::SequenceModel(ExperimentConfig config) : config_(std::move(config)) {
  validate(config_);
}

std::vector<Block> SequenceModel::add_blocks(const std::string& name, BlockRole role,
                                             const at::TensorOptions& options) {
  const std::int64_t count = role == BlockRole::encoder ? config_.model.encoder_layers : config_.model.layers;
  std::vector<Block> blocks;
  for (std::int64_t layer = 0; layer < count; ++layer) {
    const Block& block = blocks.emplace_back(
        register_module(name + std::to_string(layer), Block(config_, BlockPlace{role, layer}, options)));
    sites_.push_back({layer, block->attention()});
    if (role == BlockRole::decoder) sites_.push_back({layer, block->cross_attention()});
  }
  return blocks;
}

void SequenceModel::set_decoder(std::vector<Block> layers) {
  layers_ = std::move(layers);
  states_.resize(layers_.size());
}

void SequenceModel::add_output(const std::string& norm, const LayerPlace& place, const TokenTable& table,
                               const at::TensorOptions& options) {
  const ModelConfig& model = config_.model;
  const std::int64_t inner = embedding_width(model);
  if (model.norm == NormPlacement::pre) last_norm_ = register_module(norm, LayerNorm(model.width, options));
  if (inner != model.width) {
    const char* const name = "output_in_weight";
    out_weight_ =
        register_parameter(name, initial_weight({inner, model.width, model.initial_scale}, place.key(name), options));
    out_bias_ = register_parameter("output_in_bias", at::zeros({inner}, options));
  }
  output_ = OutputLayer(model, place, table, *this, options);
}

void SequenceModel::run_block(Block& block, BlockState& state, const ForwardContext& context, Hidden& hidden) const {
  const bool recompute = config_.model.checkpoint_activations && is_training();
  const BlockResult result = recompute ? block->forward_recomputed(hidden.values, state, context)
                                       : block->forward(hidden.values, state, context);
  hidden.values = result.output;
  hidden.auxiliary = sum_of(hidden.auxiliary, result.auxiliary_loss);
  // Kept past this pass they would keep the whole graph with them.
  state.self.auxiliary_loss = at::Tensor();
  state.cross.auxiliary_loss = at::Tensor();
  state.cross.memory = at::Tensor();
  state.self.past = at::Tensor();
  state.past = at::Tensor();
}

SequenceModel::Hidden SequenceModel::run_decoder(at::Tensor inputs, const SourceMemory& memory, const at::Tensor& valid,
                                                 const ForwardContext& context) {
  Hidden x{.values = std::move(inputs)};
  ModelMemory next{.length = context.memory == nullptr ? 0 : context.memory->length};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    BlockState& state = states_[layer];
    const at::Tensor layer_inputs = x.values;
    if (context.memory != nullptr) {
      state.past = context.memory->past(layer);
      state.self.wants_usage = config_.memory.compressed > 0 && config_.memory.compression == Compression::most_used;
    }
    state.self.valid = valid;
    state.cross.valid = valid;
    state.cross.memory_valid = memory.valid;
    // Each layer its own view, so that a layer's gradients are summed first, recomputed or not.
    if (memory.values.defined()) state.cross.memory = memory.values.view(memory.values.sizes());
    run_block(layers_[layer], state, context, x);
    if (context.memory != nullptr) remember_layer(layer, layer_inputs, context, next, x);
    state.self.wants_usage = false;
    state.self.usage = at::Tensor();
  }
  if (context.memory != nullptr) {
    next.last_tokens = context.memory->last_tokens;
    *context.memory = std::move(next);
  }
  x.values = last_layers(x.values, context);
  return x;
}

at::Tensor SequenceModel::without_padding(const at::Tensor& tokens, const at::Tensor& valid) {
  return valid.defined() ? tokens.masked_fill(valid.logical_not(), 0) : tokens;
}

at::Tensor SequenceModel::last_layers(at::Tensor x, const ForwardContext& context) const {
  if (!last_norm_.is_empty()) x = last_norm_->forward(x);
  if (out_weight_.defined()) x = linear(x, out_weight_, out_bias_, {.precision = context.precision});
  return x;
}

SourceMemory SequenceModel::encode(const at::Tensor& source, const at::Tensor& /*valid*/,
                                   const ForwardContext& /*context*/) {
  require<InputError>(!source.defined(), config_.name, ": the batch has a source, but a decoder-only model reads ",
                      "whole sequences alone; set model.encoder_layers");
  return {};
}

SequenceModel::Loss SequenceModel::loss(const TokenBatch& batch, const ForwardContext& context) {
  const SourceMemory memory = encode(batch.source, batch.source_valid, context);
  const Hidden last = hidden(memory, batch.tokens, batch.valid, context);
  at::Tensor nats = output_.nats(last.values, without_padding(batch.tokens, batch.valid), context.precision);
  if (batch.valid.defined()) nats = nats.masked_fill(batch.valid.logical_not(), 0.0);
  return {nats, sum_of(memory.auxiliary, last.auxiliary), last.reconstruction};
}

SequenceModel::Loss SequenceModel::loss(const at::Tensor& tokens, const ForwardContext& context) {
  return loss(TokenBatch{.tokens = tokens}, context);
}

at::Tensor SequenceModel::logits(const TokenBatch& batch, const ForwardContext& context) {
  return decode(encode(batch.source, batch.source_valid, context), batch.tokens, batch.valid, context);
}

at::Tensor SequenceModel::logits(const at::Tensor& tokens, const ForwardContext& context) {
  return logits(TokenBatch{.tokens = tokens}, context);
}

at::Tensor SequenceModel::decode(const SourceMemory& memory, const at::Tensor& tokens, const at::Tensor& valid,
                                 const ForwardContext& context) {
  return output_.logits(hidden(memory, tokens, valid, context).values, context.precision);
}

at::Tensor SequenceModel::next_logits(std::span<const std::int64_t> tokens, const ForwardContext& context,
                                      const SourceMemory& memory) {
  const at::NoGradGuard no_gradient;
  // The token to be predicted is not read, so it may be anything.
  at::Tensor sequence = at::zeros({1, static_cast<std::int64_t>(tokens.size()) + 1}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), sequence.data_ptr<std::int64_t>());
  ForwardContext here = context;
  ModelMemory memory_before;
  if (context.memory != nullptr) {
    memory_before = *context.memory;
    here.memory = &memory_before;
  }
  const at::Tensor last = hidden(memory, sequence, {}, here).values.narrow(1, sequence.size(1) - 1, 1);
  return output_.logits(last, context.precision).flatten();
}

double SequenceModel::nats_at(const at::Tensor& tokens, std::int64_t position, std::int64_t target,
                              const ForwardContext& context) {
  require<InputError>(tokens.dim() == 2 && tokens.size(0) == 1 && position >= 0 && position < tokens.size(1),
                      config_.name, ": the nats at position ", position, " asked for of tokens ", tokens.sizes(),
                      ", but they must be one sequence [1, n] that has the position");
  const at::NoGradGuard no_gradient;
  const at::Tensor row = hidden({}, tokens, {}, context).values.narrow(1, position, 1);
  return output_.nats(row, at::full({1, 1}, target, at::kLong), context.precision).item<double>();
}

std::string SequenceModel::reason_against_cache() const {
  if (config_.memory.compressed > 0) return "compressed memory is made of whole segments";
  for (const Block& block : layers_) {
    std::string reason = block->reason_against_cache();
    if (!reason.empty()) return reason;
  }
  return {};
}

ModelCache SequenceModel::make_cache(MatmulPrecision precision) const {
  std::vector<BlockCache> layers;
  const std::int64_t memory = evaluation_memory(config_);
  const Horizon horizon = memory > 0 ? Horizon{config_.train.sequence_length, memory} : Horizon{};
  for (const Block& block : layers_) layers.push_back(block->make_cache(horizon, precision));
  return {std::move(layers), num_parameters()};
}

std::int64_t SequenceModel::begin_sequence(ModelCache& cache, const at::Tensor& source, const ForwardContext& context) {
  encode(source, {}, context);
  return cache.add_sequence();
}

std::int64_t SequenceModel::id_at(std::int64_t position, std::int64_t before) const {
  return input_id(config_.model, position, before);
}

at::Tensor SequenceModel::hidden_cached(const at::Tensor& previous, ModelCache& cache,
                                        std::span<const std::int64_t> sequences, const CachedContext& context) const {
  require<InputError>(context.pieces == nullptr || !reads_source(), config_.name,
                      ": a piece of a target was given, but only sequences of a decoder-only model are read in pieces "
                      "elsewhere; read the whole target here");
  require<InputError>(context.pieces == nullptr || config_.memory.length == 0, config_.name,
                      ": a piece of a text was given, but the model reads segments with a memory (memory.length ",
                      config_.memory.length, "), one after the other; read the whole text here");
  check_tokens(config_.name, previous, {});
  require<InputError>(previous.size(0) == static_cast<std::int64_t>(sequences.size()), config_.name, ": tokens of ",
                      previous.size(0), " sequences, but ", sequences.size(), " are named");
  const ForwardContext forward{.precision = context.precision, .pieces = context.pieces};
  const at::Tensor ids = previous.contiguous().clone();
  std::vector<std::int64_t> positions;
  auto* id = ids.data_ptr<std::int64_t>();
  for (const std::int64_t sequence : sequences) {
    const std::int64_t first = cache.length(sequence);
    for (std::int64_t token = 0; token < previous.size(1); ++token, ++id) {
      positions.push_back(first + token);
      *id = id_at(first + token, *id);
    }
  }
  at::Tensor x = embed_at(ids, positions, forward);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    x = layers_[layer]->forward_cached(x, cache.layers().at(layer), sequences, forward);
  }
  if (context.last_only) x = x.narrow(1, x.size(1) - 1, 1);
  return last_layers(x, forward);
}

at::Tensor SequenceModel::logits_cached(const at::Tensor& previous, ModelCache& cache,
                                        std::span<const std::int64_t> sequences, const CachedContext& context) const {
  const at::NoGradGuard no_gradient;
  const auto count = static_cast<std::int64_t>(sequences.size());
  const std::int64_t of_part =
      context.pieces != nullptr ? count : cache.sequences_of_part(count, context.precision, kFewestOfStep);
  if (previous.dim() != 2 || previous.size(0) != count || of_part >= count) {
    return output_.logits(hidden_cached(previous, cache, sequences, context), context.precision);
  }
  // Every thread reads all layers for sequences of its own: nobody waits for another in between.
  const std::int64_t tokens = context.last_only ? 1 : previous.size(1);
  at::Tensor logits = at::empty({count, tokens, config_.model.vocab_size}, at::kFloat);
  const ModelCache::Parts parts(cache, sequences, previous.size(1));
  parallel_for(0, count, of_part, [&](std::int64_t first, std::int64_t last) {
    const at::NoGradGuard no_gradient_here;
    const std::span mine = sequences.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    const at::Tensor part =
        output_.logits(hidden_cached(previous.narrow(0, first, last - first), cache, mine, context), context.precision)
            .contiguous();
    std::copy_n(part.data_ptr<float>(), part.numel(),
                logits.data_ptr<float>() + first * tokens * config_.model.vocab_size);
  });
  return logits;
}

at::Tensor SequenceModel::nats_cached(const at::Tensor& previous, const at::Tensor& targets, ModelCache& cache,
                                      std::span<const std::int64_t> sequences, const CachedContext& context) const {
  require<InputError>(targets.sizes() == previous.sizes() && !context.last_only, config_.name, ": targets ",
                      targets.sizes(), " of ", context.last_only ? "the last of " : "", "tokens ", previous.sizes(),
                      "; give one for each");
  const at::NoGradGuard no_gradient;
  return output_.nats(hidden_cached(previous, cache, sequences, context), targets, context.precision);
}

std::vector<std::vector<GroupProbe>> SequenceModel::probe(const at::Tensor& tokens, const ForwardContext& context) {
  require<ConfigError>(!reads_source(), config_.name, ": model.encoder_layers is ", config_.model.encoder_layers,
                       ", but this is for decoder-only models; set it to 0");
  require<InputError>(!is_training(), config_.name, ": a model in training mode was probed; call eval() first");
  const at::NoGradGuard no_gradient;
  const auto keep_probes = [&](bool keep) {
    for (BlockState& state : states_) {
      state.self.keep_probes = keep;
      state.self.probes.clear();
    }
  };
  std::vector<std::vector<GroupProbe>> probes;
  keep_probes(true);
  try {
    hidden({}, tokens, {}, context);
    for (BlockState& state : states_) probes.push_back(std::move(state.self.probes));
  } catch (...) {
    keep_probes(false);
    throw;
  }
  keep_probes(false);
  return probes;
}

std::vector<LayerStatistics> SequenceModel::update_centroids() {
  std::vector<LayerStatistics> all;
  for (const RoutedGroup& group : routed_groups()) {
    all.push_back({group.layer, group.centroids->update(), group.attention, group.first_head});
  }
  return all;
}

std::vector<LayerStatistics> SequenceModel::take_evaluation_statistics() {
  std::vector<LayerStatistics> all;
  for (const RoutedGroup& group : routed_groups()) {
    all.push_back({group.layer, group.centroids->take_evaluation_statistics(), group.attention, group.first_head});
  }
  return all;
}

std::string SequenceModel::attention_with_nonfinite_tokens() {
  for (const RoutedGroup& group : routed_groups()) {
    if (!group.centroids->pending_is_finite()) return group.attention;
  }
  return "";
}

std::vector<SequenceModel::RoutedGroup> SequenceModel::routed_groups() {
  std::vector<RoutedGroup> groups;
  for (Site& site : sites_) {
    const AttentionConfig& attention = site.attention->config();
    std::int64_t head = 0;
    for (std::size_t index = 0; index < attention.head_groups.size(); ++index) {
      Centroids* const centroids = site.attention->centroids(index);
      if (centroids != nullptr) groups.push_back({site.layer, attention.name, centroids, head});
      head += attention.head_groups[index].heads;
    }
  }
  return groups;
}

std::vector<HeadSpan> SequenceModel::spans() const {
  std::vector<HeadSpan> all;
  for (const Site& site : sites_) {
    const AttentionConfig& attention = site.attention->config();
    std::int64_t head = 0;
    for (std::size_t index = 0; index < attention.head_groups.size(); ++index) {
      const SpanHeads* const heads = site.attention->span_heads(index);
      const std::int64_t end = head + attention.head_groups[index].heads;
      for (; heads != nullptr && head < end; ++head) {
        all.push_back({site.layer, attention.name, head, heads->span(), heads->keys()});
      }
      head = end;
    }
  }
  return all;
}

void SequenceModel::clamp_spans() {
  for (const Site& site : sites_) {
    for (std::size_t index = 0; index < site.attention->config().head_groups.size(); ++index) {
      if (SpanHeads* const heads = site.attention->span_heads(index)) heads->clamp();
    }
  }
}

void SequenceModel::forget_collected() {
  for (const RoutedGroup& group : routed_groups()) group.centroids->set_pending({});
}

std::int64_t SequenceModel::num_parameters() const {
  std::int64_t total = 0;
  for (const at::Tensor& parameter : parameters()) total += parameter.numel();
  return total;
}

std::shared_ptr<SequenceModel> make_model(const ExperimentConfig& config, const at::TensorOptions& options) {
  if (config.model.encoder_layers > 0) return std::make_shared<EncoderDecoderImpl>(config, options);
  return std::make_shared<TransformerImpl>(config, options);
}

}  // namespace routing
