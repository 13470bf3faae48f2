#include "routing/generation/model_decoder.h"

#include "routing/core/error.h"
#include "routing/model/absolute_positions.h"
#include "routing/model/image_embedding.h"

#include <algorithm>
#include <utility>

namespace routing {

ModelDecoder::ModelDecoder(std::shared_ptr<SequenceModel> model, DecoderOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  require<ConfigError>(options_.prefill_block >= 1, "decoder: prefill_block is ", options_.prefill_block,
                       ", but must be at least 1");
  model_->eval();
}

std::int64_t ModelDecoder::longest_sequence() const {
  const ExperimentConfig& config = model_->config();
  if (config.model.image_height > 0) return image_values(config.model);
  return longest_of_positions(config);
}

void ModelDecoder::check_tokens(std::span<const std::int32_t> tokens, std::int64_t first_position) const {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    require<InputError>(tokens[i] >= 0 && tokens[i] < vocabulary_size(), "token ", tokens[i], " at position ",
                        first_position + static_cast<std::int64_t>(i), ", but the vocabulary has ids 0 to ",
                        vocabulary_size() - 1);
  }
}

void ModelDecoder::check_prompt(std::span<const std::int32_t> prompt) const {
  check_tokens(prompt, 0);
  require<InputError>(!reads_source() || !prompt.empty(),
                      "the source is empty, but an encoder needs at least one token");
  const auto tokens = static_cast<std::int64_t>(prompt.size());
  // Beside the prompt there is one token that is to be predicted.
  require<InputError>(reads_source() || longest_sequence() == 0 || tokens < longest_sequence(), "a prompt of ", tokens,
                      " tokens, but sequences of this model end after ", longest_sequence(),
                      "; give fewer, so that there is something left to predict");
}

void ModelDecoder::check_more(std::span<const std::int32_t> tokens, std::int64_t length) const {
  require<InputError>(!tokens.empty() || length < 0, "decoder: a sequence is to read no tokens; give it at least one");
  const std::int64_t before = std::max<std::int64_t>(0, length);
  check_tokens(tokens, before);
  const std::int64_t all = before + static_cast<std::int64_t>(tokens.size());
  require<InputError>(longest_sequence() == 0 || all < longest_sequence(), "a sequence of ", before, " tokens and ",
                      tokens.size(), " more, but sequences of this model end after ", longest_sequence(),
                      "; give fewer, so that there is something left to predict");
}

void ModelDecoder::check_open() const {
  require<InputError>(!reads_source(), "decoder: a sequence of an encoder-decoder begins with its source");
}

void ModelDecoder::check_step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) {
  require<InputError>(tokens.size() == sequences.size(), "decoder: ", tokens.size(), " tokens for ", sequences.size(),
                      " sequences; give one each");
  std::vector<std::int64_t> sorted(sequences.begin(), sequences.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  require<InputError>(twice == sorted.end(), "decoder: sequence ", twice == sorted.end() ? 0 : *twice,
                      " is named twice; give it one token per step");
}

at::Tensor ModelDecoder::source_of(std::span<const std::int32_t> prompt) const {
  if (!reads_source()) return {};
  return token_tensor(prompt, {1, static_cast<std::int64_t>(prompt.size())});
}

std::span<const std::int32_t> ModelDecoder::beginning_of(std::span<const std::int32_t> prompt) const {
  return reads_source() ? std::span<const std::int32_t>() : prompt;
}

at::Tensor token_tensor(std::span<const std::int32_t> tokens, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes, at::kLong);
  std::copy(tokens.begin(), tokens.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

std::vector<float> numbers_of(const at::Tensor& logits) {
  const at::Tensor row = logits.contiguous();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

}  // namespace routing
