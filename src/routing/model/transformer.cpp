#include "routing/model/transformer.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/ops/embedding.h"
#include "routing/ops/initial_weights.h"
#include "routing/ops/random_fill.h"
#include "routing/ops/vocabulary_loss.h"

#include <cmath>
#include <string>
#include <utility>

namespace routing {
namespace {

constexpr std::int64_t kStartToken = 0;  // FACTS C4

std::int64_t embedding_width(const ModelConfig& config) {
  return config.embedding_width > 0 ? config.embedding_width : config.width;
}

// The sequence shifted right by one.
at::Tensor shifted(const at::Tensor& tokens) {
  at::Tensor inputs = at::full_like(tokens, kStartToken);
  if (tokens.size(1) > 1) inputs.narrow(1, 1, tokens.size(1) - 1).copy_(tokens.narrow(1, 0, tokens.size(1) - 1));
  return inputs;
}

struct InputDropout {
  double probability = 0.0;
  std::uint64_t key = 0;
  std::int64_t start = kStartToken;
};

// Replaces ids by the start token, each with this probability, whatever its place in the batch.
void drop_inputs(at::Tensor& inputs, const InputDropout& dropout, const at::Tensor& sample_ids) {
  auto* ids = inputs.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < inputs.size(0); ++row) {
    const std::int64_t sample = sample_ids.defined() ? sample_ids.data_ptr<std::int64_t>()[row] : row;
    RandomStream stream(stream_key(dropout.key, "input dropout", {static_cast<std::uint64_t>(sample)}));
    for (std::int64_t token = 0; token < inputs.size(1); ++token) {
      if (stream.uniform() < dropout.probability) ids[row * inputs.size(1) + token] = dropout.start;
    }
  }
}

}  // namespace

TransformerImpl::TransformerImpl(ExperimentConfig config, const at::TensorOptions& options)
    : config_(std::move(config)), place_{.seed = config_.train.seed, .layer = 0, .part = "decoder embedding"} {
  validate(config_);
  require<ConfigError>(config_.model.vocab_size > 0, config_.name,
                       ": model.vocab_size is 0, that of data which are not ", "known here; set it");
  const ModelConfig& model = config_.model;
  const std::int64_t inner = embedding_width(model);
  const auto weight = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(name, initial_weight({rows, columns, model.initial_scale}, place_.key(name), options));
  };
  const auto bias = [&](const char* name, std::int64_t size) {
    return register_parameter(name, at::zeros({size}, options));
  };
  table_ = weight("embedding", reads_images() ? image_table_rows(model) : model.vocab_size, inner);
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
    blocks_.push_back(register_module("layer" + std::to_string(layer), Block(config_, layer, options)));
  }
  states_.resize(blocks_.size());
  if (model.norm == NormPlacement::pre) last_norm_ = register_module("last_norm", LayerNorm(model.width, options));
  if (inner != model.width) {
    out_weight_ = weight("output_in_weight", inner, model.width);
    out_bias_ = bias("output_in_bias", inner);
  }
  vocabulary_weight_ = model.tied_output ? table_ : weight("output_weight", model.vocab_size, inner);
  vocabulary_bias_ = bias("output_bias", model.vocab_size);
}

at::Tensor TransformerImpl::input_ids(const at::Tensor& tokens, const ForwardContext& context) const {
  const ModelConfig& model = config_.model;
  at::Tensor ids = reads_images() ? image_table_ids(model, tokens) : shifted(tokens);
  if (is_training() && model.input_dropout > 0.0) {
    drop_inputs(ids,
                {.probability = model.input_dropout,
                 .key = place_.key("input dropout", {context.step}),
                 .start = reads_images() ? image_start_id(model) : kStartToken},
                context.sample_ids);
  }
  return ids;
}

at::Tensor TransformerImpl::embed(const at::Tensor& tokens, const ForwardContext& context) const {
  const ModelConfig& model = config_.model;
  at::Tensor x = routing::embedding(input_ids(tokens, context), table_);
  if (reads_images()) {
    x = (x + image_positions(model, image_positions_, tokens.size(1))) * std::sqrt(static_cast<double>(x.size(2)));
  }
  x = drop(x, {.probability = model.embedding_dropout, .place = &place_, .use = "embedding dropout"}, is_training(),
           context);
  if (in_weight_.defined()) x = linear(x, in_weight_, in_bias_, {.precision = context.precision});
  return drop(x, {.probability = model.residual_dropout, .place = &place_, .use = "stack input"}, is_training(),
              context);
}

TransformerImpl::Hidden TransformerImpl::hidden(const at::Tensor& tokens, const ForwardContext& context) {
  require<InputError>(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.size(1) > 0, config_.name,
                      ": tokens are ", tokens.scalar_type(), " ", tokens.sizes(),
                      ", but must be Long [batch, tokens] with at least one token");
  at::Tensor x = embed(tokens, context);
  at::Tensor auxiliary;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const bool recompute = config_.model.checkpoint_activations && is_training();
    const BlockResult result = recompute ? blocks_[layer]->forward_recomputed(x, states_[layer], context)
                                         : blocks_[layer]->forward(x, states_[layer], context);
    x = result.output;
    // Kept past this pass it would keep the whole graph with it.
    states_[layer].auxiliary_loss = at::Tensor();
    if (!result.auxiliary_loss.defined()) continue;
    auxiliary = auxiliary.defined() ? auxiliary + result.auxiliary_loss : result.auxiliary_loss;
  }
  if (!last_norm_.is_empty()) x = last_norm_->forward(x);
  if (out_weight_.defined()) x = linear(x, out_weight_, out_bias_, {.precision = context.precision});
  return {x, auxiliary};
}

TransformerImpl::Loss TransformerImpl::loss(const at::Tensor& tokens, const ForwardContext& context) {
  const Hidden last = hidden(tokens, context);
  const at::Tensor nats = vocabulary_loss(last.values.flatten(0, 1), vocabulary_weight_, vocabulary_bias_,
                                          tokens.flatten(), {.precision = context.precision});
  return {nats.view(tokens.sizes()), last.auxiliary};
}

at::Tensor TransformerImpl::logits(const at::Tensor& tokens, const ForwardContext& context) {
  return linear(hidden(tokens, context).values, vocabulary_weight_, vocabulary_bias_, {.precision = context.precision});
}

std::vector<LayerStatistics> TransformerImpl::update_centroids() {
  std::vector<LayerStatistics> all;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    for (RoutingStatistics& statistics : blocks_[layer]->attention()->update_centroids()) {
      all.push_back({static_cast<std::int64_t>(layer), std::move(statistics)});
    }
  }
  return all;
}

std::vector<LayerStatistics> TransformerImpl::take_evaluation_statistics() {
  std::vector<LayerStatistics> all;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    for (RoutingStatistics& statistics : blocks_[layer]->attention()->take_evaluation_statistics()) {
      all.push_back({static_cast<std::int64_t>(layer), std::move(statistics)});
    }
  }
  return all;
}

std::int64_t TransformerImpl::layer_with_nonfinite_tokens() {
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    if (!blocks_[layer]->attention()->collected_is_finite()) return static_cast<std::int64_t>(layer);
  }
  return -1;
}

void TransformerImpl::forget_collected() {
  for (Block& block : blocks_) block->attention()->forget_collected();
}

std::int64_t TransformerImpl::num_parameters() const {
  std::int64_t total = 0;
  for (const at::Tensor& parameter : parameters()) total += parameter.numel();
  return total;
}

}  // namespace routing
