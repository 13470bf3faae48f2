// What both kinds of decoders share: the model, and what it cannot take.
#pragma once

#include "routing/generation/decoder.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace routing {

class ModelDecoder : public Decoder {
 public:
  ModelDecoder(std::shared_ptr<SequenceModel> model, DecoderOptions options);

  void check_prompt(std::span<const std::int32_t> prompt) const override;
  bool reads_source() const override { return model_->reads_source(); }
  std::int64_t vocabulary_size() const override { return model_->config().model.vocab_size; }
  std::int64_t longest_sequence() const override;

 protected:
  void check_tokens(std::span<const std::int32_t> tokens, std::int64_t first_position) const;
  // What extend() is given, for a sequence of this length; below 0 if it was just opened.
  void check_more(std::span<const std::int32_t> tokens, std::int64_t length) const;
  void check_open() const;
  static void check_step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens);
  // A prompt is either the source, [1, n], or the beginning of the sequence.
  at::Tensor source_of(std::span<const std::int32_t> prompt) const;
  std::span<const std::int32_t> beginning_of(std::span<const std::int32_t> prompt) const;

  ForwardContext forward_context() const { return {.precision = options_.precision}; }
  SequenceModel& model() const { return *model_; }
  const DecoderOptions& options() const { return options_; }

 private:
  std::shared_ptr<SequenceModel> model_;
  DecoderOptions options_;
};

// Token ids for a model, int64.
at::Tensor token_tensor(std::span<const std::int32_t> tokens, at::IntArrayRef sizes);
// The logits of one token.
std::vector<float> numbers_of(const at::Tensor& logits);

std::unique_ptr<Decoder> make_cached_decoder(const std::shared_ptr<SequenceModel>& model,
                                             const DecoderOptions& options);
// The reason is Decoder::reason().
std::unique_ptr<Decoder> make_rerun_decoder(std::shared_ptr<SequenceModel> model, const DecoderOptions& options,
                                            std::string reason);

}  // namespace routing
