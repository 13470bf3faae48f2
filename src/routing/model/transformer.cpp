#include "routing/model/transformer.h"

#include "routing/core/error.h"
#include "routing/model/cached_stack.h"
#include "routing/model/token_inputs.h"
#include "routing/ops/dense/vocabulary_loss.h"
#include "routing/ops/embedding.h"
#include "routing/ops/initial_weights.h"
#include "routing/ops/random_fill.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace routing {

TransformerImpl::TransformerImpl(ExperimentConfig config, const at::TensorOptions& options)
    : SequenceModel(std::move(config)),
      place_{.seed = this->config().train.seed, .layer = 0, .part = "decoder embedding"} {
  const ModelConfig& model = this->config().model;
  require<ConfigError>(model.encoder_layers == 0, this->config().name, ": model.encoder_layers is ",
                       model.encoder_layers, ", but this model has no encoder; build an EncoderDecoder");
  require<ConfigError>(model.vocab_size > 0, this->config().name,
                       ": model.vocab_size is 0, that of the data, which are not known here; set it");
  const std::int64_t inner = embedding_width(model);
  const auto weight = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(name, initial_weight({rows, columns, model.initial_scale}, place_.key(name), options));
  };
  const auto bias = [&](const char* name, std::int64_t size) {
    return register_parameter(name, at::zeros({size}, options));
  };
  const std::uint64_t table_key = place_.key("embedding");
  table_ = register_parameter("embedding", reads_images() ? initial_image_table(model, table_key, options)
                                                          : initial_token_table(model, table_key, options));
  const auto positions = [&](const char* name, std::int64_t places) {
    at::Tensor table = at::empty({places * 3, inner}, options);
    // Read times sqrt(inner): what is added has variance 1.
    fill_normal(table, 0.0, 1.0 / std::sqrt(static_cast<double>(inner)), RandomStream(place_.key(name)));
    return register_parameter(name, table);
  };
  if (reads_images()) {
    image_positions_ = {positions("row_positions", model.image_height),
                        positions("column_positions", model.image_width)};
  }
  if (inner != model.width || model.embedding_projection) {
    in_weight_ = weight("embedding_out_weight", model.width, inner);
    in_bias_ = bias("embedding_out_bias", model.width);
  }
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    blocks_.push_back(register_module("layer" + std::to_string(layer),
                                      Block(this->config(), BlockPlace{BlockRole::decoder_only, layer}, options)));
    add_attention(layer, blocks_.back()->attention());
  }
  states_.resize(blocks_.size());
  if (model.norm == NormPlacement::pre) last_norm_ = register_module("last_norm", LayerNorm(model.width, options));
  if (inner != model.width) {
    out_weight_ = weight("output_in_weight", inner, model.width);
    out_bias_ = bias("output_in_bias", inner);
  }
  vocabulary_weight_ =
      model.tied_output ? output_rows(model, table_) : weight("output_weight", model.vocab_size, inner);
  vocabulary_bias_ = bias("output_bias", model.vocab_size);
}

at::Tensor TransformerImpl::input_ids(const at::Tensor& tokens, const ForwardContext& context) const {
  const ModelConfig& model = config().model;
  at::Tensor ids = reads_images() ? image_table_ids(model, tokens) : shifted(model, tokens);
  if (is_training() && model.input_dropout > 0.0) {
    drop_inputs(ids,
                {.probability = model.input_dropout,
                 .key = place_.key("input dropout", {context.step}),
                 .start = reads_images() ? image_start_id(model) : start_id(model)},
                context.sample_ids);
  }
  return ids;
}

at::Tensor TransformerImpl::embed(const at::Tensor& ids, std::span<const std::int64_t> positions,
                                  const ForwardContext& context) const {
  const ModelConfig& model = config().model;
  at::Tensor x = routing::embedding(ids, table_);
  if (reads_images()) {
    const at::Tensor places = image_positions(model, image_positions_, positions);
    x = (x + places.view({-1, ids.size(1), x.size(2)})) * std::sqrt(static_cast<double>(x.size(2)));
  }
  x = drop(x, {.probability = model.embedding_dropout, .place = &place_, .use = "embedding dropout"}, is_training(),
           context);
  if (in_weight_.defined()) x = linear(x, in_weight_, in_bias_, {.precision = context.precision});
  return drop(x, {.probability = model.residual_dropout, .place = &place_, .use = "stack input"}, is_training(),
              context);
}

at::Tensor TransformerImpl::last_layers(at::Tensor x, const ForwardContext& context) const {
  if (!last_norm_.is_empty()) x = last_norm_->forward(x);
  if (out_weight_.defined()) x = linear(x, out_weight_, out_bias_, {.precision = context.precision});
  return x;
}

TransformerImpl::Hidden TransformerImpl::hidden(const at::Tensor& tokens, const ForwardContext& context) {
  check_tokens(config().name, tokens, {});
  std::vector<std::int64_t> positions;
  if (reads_images()) {
    positions.resize(static_cast<std::size_t>(tokens.size(1)));
    std::iota(positions.begin(), positions.end(), 0);
  }
  at::Tensor x = embed(input_ids(tokens, context), positions, context);
  at::Tensor auxiliary;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const bool recompute = config().model.checkpoint_activations && is_training();
    const BlockResult result = recompute ? blocks_[layer]->forward_recomputed(x, states_[layer], context)
                                         : blocks_[layer]->forward(x, states_[layer], context);
    x = result.output;
    // Kept past this pass it would keep the whole graph with it.
    states_[layer].self.auxiliary_loss = at::Tensor();
    if (!result.auxiliary_loss.defined()) continue;
    auxiliary = auxiliary.defined() ? auxiliary + result.auxiliary_loss : result.auxiliary_loss;
  }
  return {last_layers(x, context), auxiliary};
}

TransformerImpl::Loss TransformerImpl::loss(const at::Tensor& tokens, const ForwardContext& context) {
  const Hidden last = hidden(tokens, context);
  const at::Tensor nats = vocabulary_loss(last.values.flatten(0, 1), vocabulary_weight_, vocabulary_bias_,
                                          tokens.flatten(), {.precision = context.precision});
  return {nats.view(tokens.sizes()), last.auxiliary};
}

TransformerImpl::Loss TransformerImpl::loss(const TokenBatch& batch, const ForwardContext& context) {
  require<InputError>(!batch.source.defined() && !batch.valid.defined(), config().name, ": the batch has ",
                      batch.source.defined() ? "a source" : "padding",
                      ", but a decoder-only model reads whole sequences alone; set model.encoder_layers");
  return loss(batch.tokens, context);
}

at::Tensor TransformerImpl::logits(const at::Tensor& tokens, const ForwardContext& context) {
  return linear(hidden(tokens, context).values, vocabulary_weight_, vocabulary_bias_, {.precision = context.precision});
}

std::vector<std::vector<GroupProbe>> TransformerImpl::probe(const at::Tensor& tokens, const ForwardContext& context) {
  require<InputError>(!is_training(), config().name, ": a model in training mode was probed; call eval() first");
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
    hidden(tokens, context);
    for (BlockState& state : states_) probes.push_back(std::move(state.self.probes));
  } catch (...) {
    keep_probes(false);
    throw;
  }
  keep_probes(false);
  return probes;
}

std::string TransformerImpl::reason_against_cache() const {
  return routing::reason_against_cache(blocks_);
}

ModelCache TransformerImpl::make_cache() const {
  return routing::make_cache(blocks_);
}

at::Tensor TransformerImpl::hidden_cached(const at::Tensor& previous, ModelCache& cache,
                                          std::span<const std::int64_t> sequences, const CachedContext& context) const {
  const ForwardContext forward{.precision = context.precision, .pieces = context.pieces};
  const auto id_at = [&](std::int64_t position, std::int64_t before) {
    if (reads_images()) return image_table_id(config().model, position, before);
    return input_id(config().model, position, before);
  };
  const CachedInputs inputs = cached_inputs(config().name, previous, cache, sequences, id_at);
  at::Tensor x = forward_cached(blocks_, embed(inputs.ids, inputs.positions, forward), cache, sequences, forward);
  if (context.last_only) x = x.narrow(1, x.size(1) - 1, 1);
  return last_layers(x, forward);
}

at::Tensor TransformerImpl::logits_cached(const at::Tensor& previous, ModelCache& cache,
                                          std::span<const std::int64_t> sequences, const CachedContext& context) const {
  const at::NoGradGuard no_gradient;
  return linear(hidden_cached(previous, cache, sequences, context), vocabulary_weight_, vocabulary_bias_,
                {.precision = context.precision});
}

at::Tensor TransformerImpl::nats_cached(const at::Tensor& previous, const at::Tensor& targets, ModelCache& cache,
                                        std::span<const std::int64_t> sequences, const CachedContext& context) const {
  require<InputError>(targets.sizes() == previous.sizes() && !context.last_only, config().name, ": targets ",
                      targets.sizes(), " of ", context.last_only ? "the last of " : "", "tokens ", previous.sizes(),
                      "; give one for each");
  const at::NoGradGuard no_gradient;
  const at::Tensor last = hidden_cached(previous, cache, sequences, context);
  return vocabulary_loss(last.flatten(0, 1), vocabulary_weight_, vocabulary_bias_, targets.flatten(),
                         {.precision = context.precision})
      .view(targets.sizes());
}

at::Tensor TransformerImpl::next_logits(std::span<const std::int64_t> tokens, const ForwardContext& context) {
  const at::NoGradGuard no_gradient;
  // The token to be predicted is not read, so it may be anything.
  at::Tensor sequence = at::zeros({1, static_cast<std::int64_t>(tokens.size()) + 1}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), sequence.data_ptr<std::int64_t>());
  const at::Tensor last = hidden(sequence, context).values.narrow(1, sequence.size(1) - 1, 1);
  return linear(last, vocabulary_weight_, vocabulary_bias_, {.precision = context.precision}).flatten();
}

double TransformerImpl::nats_at(const at::Tensor& tokens, std::int64_t position, std::int64_t target,
                                const ForwardContext& context) {
  require<InputError>(tokens.dim() == 2 && tokens.size(0) == 1 && position >= 0 && position < tokens.size(1),
                      config().name, ": the nats at position ", position, " asked for of tokens ", tokens.sizes(),
                      ", but they must be one sequence [1, n] that has the position");
  const at::NoGradGuard no_gradient;
  const at::Tensor row = hidden(tokens, context).values.narrow(1, position, 1).flatten(0, 1);
  return vocabulary_loss(row, vocabulary_weight_, vocabulary_bias_, at::full({1}, target, at::kLong),
                         {.precision = context.precision})
      .item<double>();
}

}  // namespace routing
