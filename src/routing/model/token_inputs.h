// What a stack reads: token ids as vectors of the model's width.
//
//   e = embedding(ids) [-> dense layer to the model's width d]
//
// and its place, as model.positions says (absolute_positions.h).
//
// What a decoder reads counts from the start, as a target has no end yet. What an encoder reads is whole: of n tokens,
// the first d/2 numbers of p are the sinusoids of t for a width of d/2, the others those of n - 1 - t.
//
// With sinusoids the product of a linear map of p(i) and one of p(j) can be any function of i - j, or of i + j, that
// those frequencies can make. A head that copies (i = j) or reverses (i = n - 1 - j) is linear and the same for every
// length, so what is learned from short sequences holds for long ones.
#pragma once

#include "routing/attention/patterns/pattern.h"
#include "routing/config/experiment.h"
#include "routing/model/absolute_positions.h"
#include "routing/model/layers.h"
#include "routing/model/vocabulary_layers.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <span>
#include <string>

namespace routing {

inline constexpr std::int64_t kStartToken = 0;  // docs/facts.md C4; of model.start_symbol = zero

// Of text: the id that stands before the first token and in place of dropped ones, 0 or, of a symbol of its own,
// vocab_size.
std::int64_t start_id(const ModelConfig& config);

// What is read where `before` is the token before a position. An InputError if that is a start symbol of its own, which
// is in no text.
std::int64_t input_id(const ModelConfig& config, std::int64_t position, std::int64_t before);
// The sequences shifted right by one, the start symbol first. The same error.
at::Tensor shifted(const ModelConfig& config, const at::Tensor& tokens);

struct InputDropout {
  double probability = 0.0;
  std::uint64_t key = 0;  // of the stream
  std::int64_t start = kStartToken;
  std::int64_t first_token = 0;  // position of the first id in its sequence
};
// Replaces ids by `start`, each with this probability, whatever its place in the batch.
void drop_inputs(at::Tensor& inputs, const InputDropout& dropout, const at::Tensor& sample_ids);

// An InputError that begins with `where` unless tokens are int64 [batch, n] with n > 0 and valid, if defined, is bool
// of the same shape.
void check_tokens(const std::string& where, const at::Tensor& tokens, const at::Tensor& valid);

// Of whole sequences, from both ends: [batch, length, width], or [1, length, width] if there is no mask. Places of real
// tokens are counted without padding; rows of padding are zero.
at::Tensor sinusoids_from_both_ends(std::int64_t length, const at::Tensor& valid, std::int64_t width,
                                    const at::TensorOptions& options);

class TokenInputsImpl : public torch::nn::Module {
 public:
  struct Reader {
    bool whole = false;        // an encoder's: places from both ends
    std::int64_t longest = 0;  // tokens that tables of positions are for
  };
  TokenInputsImpl(const ModelConfig& config, LayerPlace place, const Reader& reader, const at::TensorOptions& options);

  // ids int64 [batch, n], valid bool [batch, n] or undefined -> [batch, n, width], with the dropouts of the
  // configuration in training.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& valid, const ForwardContext& context) const;

  // The same in evaluation for tokens at some positions: ids [batch, n], places [batch * n]. Of a reader that is not
  // whole.
  at::Tensor forward_at(const at::Tensor& ids, std::span<const std::int64_t> places,
                        const ForwardContext& context) const;

  const TokenTable& table() const { return table_; }

 private:
  ModelConfig config_;
  LayerPlace place_;
  Reader reader_;
  TokenTable table_;
  at::Tensor out_weight_, out_bias_;
  AbsolutePositions positions_;
};
TORCH_MODULE(TokenInputs);

}  // namespace routing
