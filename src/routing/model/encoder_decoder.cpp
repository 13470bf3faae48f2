#include "routing/model/encoder_decoder.h"

#include "routing/core/error.h"
#include "routing/model/cached_stack.h"
#include "routing/ops/dense/vocabulary_loss.h"
#include "routing/ops/initial_weights.h"

#include <string>
#include <utility>

namespace routing {
namespace {

at::Tensor sum_of(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined() || !second.defined()) return first.defined() ? first : second;
  return first + second;
}

// Whatever stands at padding, the model reads id 0 there, and nothing sees it.
at::Tensor without_padding(const at::Tensor& tokens, const at::Tensor& valid) {
  return valid.defined() ? tokens.masked_fill(valid.logical_not(), 0) : tokens;
}

}  // namespace

EncoderDecoderImpl::EncoderDecoderImpl(ExperimentConfig config, const at::TensorOptions& options)
    : SequenceModel(std::move(config)) {
  const ExperimentConfig& experiment = this->config();
  const ModelConfig& model = experiment.model;
  require<ConfigError>(model.encoder_layers > 0, experiment.name,
                       ": model.encoder_layers is 0, but an encoder-decoder needs at least 1; raise it, or build a "
                       "Transformer");
  const auto part = [&](const char* name) {
    return LayerPlace{.seed = experiment.train.seed, .layer = 0, .part = name};
  };
  const TokenInputsImpl::Reader reader{.whole = true, .longest = source_length(experiment.train)};
  const TokenInputsImpl::Reader writer{.whole = false, .longest = experiment.train.sequence_length};
  source_ = register_module("source", TokenInputs(model, part("source inputs"), reader, options));
  target_ = register_module("target", TokenInputs(model, part("target inputs"), writer, options));
  for (std::int64_t layer = 0; layer < model.encoder_layers; ++layer) {
    encoder_.push_back(register_module("encoder" + std::to_string(layer),
                                       Block(experiment, BlockPlace{BlockRole::encoder, layer}, options)));
    add_attention(layer, encoder_.back()->attention());
  }
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    decoder_.push_back(register_module("decoder" + std::to_string(layer),
                                       Block(experiment, BlockPlace{BlockRole::decoder, layer}, options)));
    add_attention(layer, decoder_.back()->attention());
    add_attention(layer, decoder_.back()->cross_attention());
  }
  encoder_states_.resize(encoder_.size());
  decoder_states_.resize(decoder_.size());
  if (model.norm == NormPlacement::pre) {
    encoder_norm_ = register_module("encoder_norm", LayerNorm(model.width, options));
    decoder_norm_ = register_module("decoder_norm", LayerNorm(model.width, options));
  }
  const LayerPlace output = part("output");
  const std::int64_t inner = embedding_width(model);
  const auto weight = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(name, initial_weight({rows, columns, model.initial_scale}, output.key(name), options));
  };
  if (inner != model.width) {
    out_weight_ = weight("output_in_weight", inner, model.width);
    out_bias_ = register_parameter("output_in_bias", at::zeros({inner}, options));
  }
  vocabulary_weight_ =
      model.tied_output ? output_rows(model, target_->table()) : weight("output_weight", model.vocab_size, inner);
  vocabulary_bias_ = register_parameter("output_bias", at::zeros({model.vocab_size}, options));
}

BlockResult EncoderDecoderImpl::run_block(Block& block, const at::Tensor& x, BlockState& state,
                                          const ForwardContext& context) const {
  const bool recompute = config().model.checkpoint_activations && is_training();
  BlockResult result = recompute ? block->forward_recomputed(x, state, context) : block->forward(x, state, context);
  // Kept past this pass they would keep the whole graph with them.
  state.self.auxiliary_loss = at::Tensor();
  state.cross.auxiliary_loss = at::Tensor();
  state.cross.memory = at::Tensor();
  return result;
}

EncoderDecoderImpl::Memory EncoderDecoderImpl::encode(const at::Tensor& source, const at::Tensor& valid,
                                                      const ForwardContext& context) {
  check_tokens(config().name + ": source", source, valid);
  require<InputError>(!valid.defined() || valid.any(1).all().item<bool>(), config().name,
                      ": a source has no real token, only padding; give each at least one");
  at::Tensor x = source_->forward(without_padding(source, valid), valid, context);
  at::Tensor auxiliary;
  for (std::size_t layer = 0; layer < encoder_.size(); ++layer) {
    encoder_states_[layer].self.valid = valid;
    const BlockResult result = run_block(encoder_[layer], x, encoder_states_[layer], context);
    x = result.output;
    auxiliary = sum_of(auxiliary, result.auxiliary_loss);
  }
  if (!encoder_norm_.is_empty()) x = encoder_norm_->forward(x);
  return {x, valid, auxiliary};
}

EncoderDecoderImpl::Hidden EncoderDecoderImpl::decoder_hidden(const Memory& memory, const at::Tensor& target,
                                                              const at::Tensor& valid, const ForwardContext& context) {
  check_tokens(config().name + ": target", target, valid);
  require<InputError>(memory.values.defined() && memory.values.size(0) == target.size(0), config().name, ": ",
                      target.size(0), " targets, but ", memory.values.defined() ? memory.values.size(0) : 0,
                      " encoded sources; give one per target");
  at::Tensor x = target_->forward(shifted(config().model, without_padding(target, valid)), valid, context);
  at::Tensor auxiliary;
  for (std::size_t layer = 0; layer < decoder_.size(); ++layer) {
    BlockState& state = decoder_states_[layer];
    state.self.valid = valid;
    state.cross.valid = valid;
    state.cross.memory_valid = memory.valid;
    // Each layer its own view, so that a layer's gradients are summed first, recomputed or not.
    state.cross.memory = memory.values.view(memory.values.sizes());
    const BlockResult result = run_block(decoder_[layer], x, state, context);
    x = result.output;
    auxiliary = sum_of(auxiliary, result.auxiliary_loss);
  }
  if (!decoder_norm_.is_empty()) x = decoder_norm_->forward(x);
  if (out_weight_.defined()) x = linear(x, out_weight_, out_bias_, {.precision = context.precision});
  return {x, auxiliary};
}

at::Tensor EncoderDecoderImpl::decode(const Memory& memory, const at::Tensor& target, const at::Tensor& valid,
                                      const ForwardContext& context) {
  return linear(decoder_hidden(memory, target, valid, context).values, vocabulary_weight_, vocabulary_bias_,
                {.precision = context.precision});
}

SequenceModel::Loss EncoderDecoderImpl::loss(const TokenBatch& batch, const ForwardContext& context) {
  const Memory memory = encode(batch.source, batch.source_valid, context);
  const Hidden last = decoder_hidden(memory, batch.tokens, batch.valid, context);
  const at::Tensor targets = without_padding(batch.tokens, batch.valid);
  at::Tensor nats = vocabulary_loss(last.values.flatten(0, 1), vocabulary_weight_, vocabulary_bias_, targets.flatten(),
                                    {.precision = context.precision})
                        .view(targets.sizes());
  if (batch.valid.defined()) nats = nats.masked_fill(batch.valid.logical_not(), 0.0);
  return {nats, sum_of(memory.auxiliary, last.auxiliary)};
}

at::Tensor EncoderDecoderImpl::logits(const TokenBatch& batch, const ForwardContext& context) {
  return decode(encode(batch.source, batch.source_valid, context), batch.tokens, batch.valid, context);
}

std::string EncoderDecoderImpl::reason_against_cache() const {
  return routing::reason_against_cache(decoder_);
}

ModelCache EncoderDecoderImpl::make_cache() const {
  return routing::make_cache(decoder_);
}

std::int64_t EncoderDecoderImpl::begin_sequence(ModelCache& cache, const at::Tensor& source,
                                                const ForwardContext& context) {
  const at::NoGradGuard no_gradient;
  require<InputError>(source.dim() == 2 && source.size(0) == 1, config().name, ": the source is ", source.sizes(),
                      ", but must be [1, tokens]");
  const Memory memory = encode(source, {}, context);
  const std::int64_t sequence = cache.add_sequence();
  try {
    for (std::size_t layer = 0; layer < decoder_.size(); ++layer) {
      decoder_[layer]->cross_attention()->set_memory(*cache.layers().at(layer).cross, sequence, {memory.values},
                                                     context.precision);
    }
  } catch (...) {
    cache.drop_sequence(sequence);
    throw;
  }
  return sequence;
}

at::Tensor EncoderDecoderImpl::logits_cached(const at::Tensor& previous, ModelCache& cache,
                                             std::span<const std::int64_t> sequences,
                                             const CachedContext& context) const {
  require<InputError>(context.pieces == nullptr, config().name,
                      ": a piece of a target was given, but only sequences of a decoder-only model are read in pieces "
                      "elsewhere; read the whole target here");
  const at::NoGradGuard no_gradient;
  const ForwardContext forward{.precision = context.precision};
  const auto id_at = [this](std::int64_t position, std::int64_t before) {
    return input_id(config().model, position, before);
  };
  const CachedInputs inputs = cached_inputs(config().name, previous, cache, sequences, id_at);
  at::Tensor x =
      forward_cached(decoder_, target_->forward_at(inputs.ids, inputs.positions, forward), cache, sequences, forward);
  if (context.last_only) x = x.narrow(1, x.size(1) - 1, 1);
  if (!decoder_norm_.is_empty()) x = decoder_norm_->forward(x);
  if (out_weight_.defined()) x = linear(x, out_weight_, out_bias_, {.precision = forward.precision});
  return linear(x, vocabulary_weight_, vocabulary_bias_, {.precision = forward.precision});
}

}  // namespace routing
