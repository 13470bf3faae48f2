#include "routing/model/encoder_decoder.h"

#include "routing/core/error.h"

#include <utility>

namespace routing {

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
  encoder_ = add_blocks("encoder", BlockRole::encoder, options);
  encoder_states_.resize(encoder_.size());
  set_decoder(add_blocks("decoder", BlockRole::decoder, options));
  if (model.norm == NormPlacement::pre) {
    encoder_norm_ = register_module("encoder_norm", LayerNorm(model.width, options));
  }
  add_output("decoder_norm", part("output"), target_->table(), options);
}

SourceMemory EncoderDecoderImpl::encode(const at::Tensor& source, const at::Tensor& valid,
                                        const ForwardContext& context) {
  check_tokens(config().name + ": source", source, valid);
  require<InputError>(!valid.defined() || valid.any(1).all().item<bool>(), config().name,
                      ": a source has no real token, only padding; give each at least one");
  Hidden x{.values = source_->forward(without_padding(source, valid), valid, context)};
  for (std::size_t layer = 0; layer < encoder_.size(); ++layer) {
    encoder_states_[layer].self.valid = valid;
    run_block(encoder_[layer], encoder_states_[layer], context, x);
  }
  if (!encoder_norm_.is_empty()) x.values = encoder_norm_->forward(x.values);
  return {x.values, valid, x.auxiliary};
}

SequenceModel::Hidden EncoderDecoderImpl::hidden(const SourceMemory& memory, const at::Tensor& target,
                                                 const at::Tensor& valid, const ForwardContext& context) {
  check_tokens(config().name + ": target", target, valid);
  require<InputError>(memory.values.defined() && memory.values.size(0) == target.size(0), config().name, ": ",
                      target.size(0), " targets, but ", memory.values.defined() ? memory.values.size(0) : 0,
                      " encoded sources; give one per target");
  const at::Tensor inputs = shifted(config().model, without_padding(target, valid));
  return run_decoder(target_->forward(inputs, valid, context), memory, valid, context);
}

at::Tensor EncoderDecoderImpl::embed_at(const at::Tensor& ids, std::span<const std::int64_t> positions,
                                        const ForwardContext& context) const {
  return target_->forward_at(ids, positions, context);
}

std::int64_t EncoderDecoderImpl::begin_sequence(ModelCache& cache, const at::Tensor& source,
                                                const ForwardContext& context) {
  const at::NoGradGuard no_gradient;
  require<InputError>(source.dim() == 2 && source.size(0) == 1, config().name, ": the source is ", source.sizes(),
                      ", but must be [1, tokens]");
  const SourceMemory memory = encode(source, {}, context);
  const std::int64_t sequence = cache.add_sequence();
  try {
    for (std::size_t layer = 0; layer < cache.layers().size(); ++layer) {
      block(layer)->cross_attention()->set_memory(*cache.layers().at(layer).cross, sequence, {memory.values},
                                                  context.precision);
    }
  } catch (...) {
    cache.drop_sequence(sequence);
    throw;
  }
  return sequence;
}

}  // namespace routing
