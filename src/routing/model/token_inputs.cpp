#include "routing/model/token_inputs.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/ops/initial_weights.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace routing {

std::int64_t start_id(const ModelConfig& config) {
  return config.start_symbol == StartSymbol::own ? config.vocab_size : kStartToken;
}

std::int64_t input_id(const ModelConfig& config, std::int64_t position, std::int64_t before) {
  const std::int64_t start = start_id(config);
  if (position == 0) return start;
  require<InputError>(start == kStartToken || before != start, "token ", before, " at position ", position - 1,
                      " is the start symbol, but ids of tokens are 0 to ", config.vocab_size - 1);
  return before;
}

at::Tensor shifted(const ModelConfig& config, const at::Tensor& tokens) {
  const std::int64_t start = start_id(config);
  require<InputError>(start == kStartToken || !tokens.eq(start).any().item<bool>(), "a token is ", start,
                      ", the start symbol, but ids of tokens are 0 to ", config.vocab_size - 1);
  at::Tensor inputs = at::full_like(tokens, start);
  if (tokens.size(1) > 1) inputs.narrow(1, 1, tokens.size(1) - 1).copy_(tokens.narrow(1, 0, tokens.size(1) - 1));
  return inputs;
}

void drop_inputs(at::Tensor& inputs, const InputDropout& dropout, const at::Tensor& sample_ids) {
  auto* ids = inputs.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < inputs.size(0); ++row) {
    const std::int64_t sample = sample_ids.defined() ? sample_ids.data_ptr<std::int64_t>()[row] : row;
    RandomStream stream(stream_key(dropout.key, "input dropout", {static_cast<std::uint64_t>(sample)}));
    for (std::int64_t token = 0; token < dropout.first_token; ++token) stream.uniform();
    for (std::int64_t token = 0; token < inputs.size(1); ++token) {
      if (stream.uniform() < dropout.probability) ids[row * inputs.size(1) + token] = dropout.start;
    }
  }
}

void check_tokens(const std::string& where, const at::Tensor& tokens, const at::Tensor& valid) {
  require<InputError>(tokens.defined(), where, ": there are no tokens");
  require<InputError>(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.size(1) > 0, where,
                      ": tokens are ", tokens.scalar_type(), " ", tokens.sizes(),
                      ", but must be Long [batch, tokens] with at least one token");
  if (!valid.defined()) return;
  require<InputError>(valid.scalar_type() == at::kBool && valid.sizes() == tokens.sizes(), where, ": the mask is ",
                      valid.scalar_type(), " ", valid.sizes(), ", but must be Bool ", tokens.sizes(), " as the tokens");
}

at::Tensor sinusoids_from_both_ends(std::int64_t length, const at::Tensor& valid, std::int64_t width,
                                    const at::TensorOptions& options) {
  const std::int64_t half = width / 2;
  const at::Tensor from_start = sinusoids(length, half, options);
  const at::Tensor from_end = sinusoids(length, width - half, options);
  const at::Tensor real = valid.defined() ? valid.to(at::kCPU) : at::ones({1, length}, at::kBool);
  const at::Tensor rank = (real.cumsum(1) - 1).clamp_min(0);
  const at::Tensor rank_from_end = (real.sum(1, /*keepdim=*/true) - 1 - rank).clamp_min(0);
  const auto rows = [&](const at::Tensor& table, const at::Tensor& places) {
    return table.index_select(0, places.flatten().to(table.device())).view({real.size(0), length, table.size(1)});
  };
  return at::cat({rows(from_start, rank), rows(from_end, rank_from_end)}, 2) * real.unsqueeze(2).to(options);
}

TokenInputsImpl::TokenInputsImpl(const ModelConfig& config, LayerPlace place, const Reader& reader,
                                 const at::TensorOptions& options)
    : config_(config), place_(std::move(place)), reader_(reader) {
  const auto weight = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(name, initial_weight({rows, columns, config_.initial_scale}, place_.key(name), options));
  };
  const std::int64_t inner = embedding_width(config_);
  table_ = TokenTable(config_, reader_.whole ? TableUse::input : TableUse::input_and_output, place_, *this, options);
  if (projects_embeddings(config_)) {
    out_weight_ = weight("out_weight", config_.width, inner);
    out_bias_ = register_parameter("out_bias", at::zeros({config_.width}, options));
  }
  positions_ = AbsolutePositions(*this, config_, place_, reader_.longest, options);
}

at::Tensor TokenInputsImpl::forward(const at::Tensor& ids, const at::Tensor& valid,
                                    const ForwardContext& context) const {
  at::Tensor inputs = ids;
  if (is_training() && config_.input_dropout > 0.0) {
    inputs = ids.clone();
    drop_inputs(inputs,
                {.probability = config_.input_dropout,
                 .key = place_.key("input dropout", {context.step}),
                 .start = start_id(config_)},
                context.sample_ids);
  }
  at::Tensor x = table_.vectors(inputs, context.precision);
  x = drop(x, {.probability = config_.embedding_dropout, .place = &place_, .use = "embedding dropout"}, is_training(),
           context);
  if (out_weight_.defined()) x = linear(x, out_weight_, out_bias_, {.precision = context.precision});
  if (reader_.whole && config_.positions == PositionKind::sinusoidal) {
    x = x * std::sqrt(static_cast<double>(config_.width)) +
        sinusoids_from_both_ends(ids.size(1), valid, config_.width, x.options().requires_grad(false));
  } else {
    std::vector<std::int64_t> places(static_cast<std::size_t>(ids.size(1)));
    std::iota(places.begin(), places.end(), 0);
    x = positions_.added_to(x, places);
  }
  return drop(x, {.probability = config_.residual_dropout, .place = &place_, .use = "stack input"}, is_training(),
              context);
}

at::Tensor TokenInputsImpl::forward_at(const at::Tensor& ids, std::span<const std::int64_t> places,
                                       const ForwardContext& context) const {
  require<InputError>(!reader_.whole && !is_training(), place_.part,
                      ": only what a decoder reads in evaluation can be read piece by piece");
  at::Tensor x = table_.vectors(ids, context.precision);
  if (out_weight_.defined()) x = linear(x, out_weight_, out_bias_, {.precision = context.precision});
  return positions_.added_to(x, places);
}

}  // namespace routing
