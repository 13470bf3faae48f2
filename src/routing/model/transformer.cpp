#include "routing/model/transformer.h"

#include "routing/core/error.h"
#include "routing/model/model_memory.h"
#include "routing/model/token_inputs.h"
#include "routing/ops/initial_weights.h"
#include "routing/ops/random_fill.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

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
  const auto image_table = [&] {
    return register_parameter("embedding", initial_image_table(model, place_.key("embedding"), options));
  };
  table_ = reads_images() ? TokenTable(image_table())
                          : TokenTable(model, TableUse::input_and_output, place_, *this, options);
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
  if (projects_embeddings(model)) {
    in_weight_ = weight("embedding_out_weight", model.width, inner);
    in_bias_ = bias("embedding_out_bias", model.width);
  }
  positions_ = AbsolutePositions(*this, model, place_, this->config().train.sequence_length, options);
  set_decoder(add_blocks("layer", BlockRole::decoder_only, options));
  add_output("last_norm", place_, table_, options);
}

// Shifted right by one, behind the last token of the piece before.
at::Tensor TransformerImpl::piece_ids(const at::Tensor& tokens, const SequencePiece& piece) const {
  const std::int64_t begin = piece.begin();
  require<InputError>(tokens.size(1) == piece.end() - begin, config().name, ": a piece of ", tokens.size(1),
                      " tokens, but it goes from ", begin, " to ", piece.end());
  require<InputError>(begin == 0 || (piece.before.defined() && piece.before.sizes() == tokens.sizes().slice(0, 1)),
                      config().name, ": a piece that begins at token ", begin,
                      " of its sequences, without the token before it of each");
  at::Tensor ids = at::empty_like(tokens);
  const at::Tensor from = tokens.contiguous();
  const auto* const token = from.data_ptr<std::int64_t>();
  auto* id = ids.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < tokens.size(0); ++row) {
    for (std::int64_t i = 0; i < tokens.size(1); ++i) {
      const std::int64_t before = i > 0       ? token[row * tokens.size(1) + i - 1]
                                  : begin > 0 ? piece.before.data_ptr<std::int64_t>()[row]
                                              : 0;
      *id++ = id_at(begin + i, before);
    }
  }
  return ids;
}

at::Tensor TransformerImpl::input_ids(const at::Tensor& tokens, const ForwardContext& context) const {
  const ModelConfig& model = config().model;
  at::Tensor ids = context.piece != nullptr ? piece_ids(tokens, *context.piece)
                   : reads_images()         ? image_table_ids(model, tokens)
                                            : shifted(model, tokens);
  // A segment goes on where the one before ended.
  if (context.memory != nullptr && context.memory->last_tokens.defined()) {
    ids.select(1, 0).copy_(context.memory->last_tokens);
  }
  if (is_training() && model.input_dropout > 0.0) {
    drop_inputs(ids,
                {.probability = model.input_dropout,
                 .key = place_.key("input dropout", {context.step}),
                 .start = reads_images() ? image_start_id(model) : start_id(model),
                 .first_token = first_position(context.piece)},
                context.sample_ids);
  }
  return ids;
}

at::Tensor TransformerImpl::embed_at(const at::Tensor& ids, std::span<const std::int64_t> positions,
                                     const ForwardContext& context) const {
  const ModelConfig& model = config().model;
  at::Tensor x = table_.vectors(ids, context.precision);
  if (reads_images()) {
    const at::Tensor places = image_positions(model, image_positions_, positions);
    x = (x + places.view({-1, ids.size(1), x.size(2)})) * std::sqrt(static_cast<double>(x.size(2)));
  }
  x = drop(x, {.probability = model.embedding_dropout, .place = &place_, .use = "embedding dropout"}, is_training(),
           context);
  if (in_weight_.defined()) x = linear(x, in_weight_, in_bias_, {.precision = context.precision});
  x = positions_.added_to(x, positions);
  return drop(x, {.probability = model.residual_dropout, .place = &place_, .use = "stack input"}, is_training(),
              context);
}

SequenceModel::Hidden TransformerImpl::hidden(const SourceMemory& memory, const at::Tensor& tokens,
                                              const at::Tensor& valid, const ForwardContext& context) {
  require<InputError>(!valid.defined(), config().name, ": the batch has padding, but a decoder-only model reads ",
                      "whole sequences alone; set model.encoder_layers");
  check_tokens(config().name, tokens, {});
  std::vector<std::int64_t> positions(static_cast<std::size_t>(tokens.size(1)));
  std::iota(positions.begin(), positions.end(), first_position(context.piece));
  if (context.memory != nullptr) context.memory->check(config(), tokens.size(0));
  Hidden last = run_decoder(embed_at(input_ids(tokens, context), positions, context), memory, {}, context);
  if (context.memory != nullptr) context.memory->last_tokens = tokens.select(1, tokens.size(1) - 1).clone();
  return last;
}

std::int64_t TransformerImpl::id_at(std::int64_t position, std::int64_t before) const {
  if (reads_images()) return image_table_id(config().model, position, before);
  return input_id(config().model, position, before);
}

}  // namespace routing
