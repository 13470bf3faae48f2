// A model's predictions, token by token.
//
// Where every head's choice of keys depends on the tokens so far alone, keys and values are kept and a step reads one
// token: the same logits as a pass over the whole sequence, bit for bit, at a cost that grows with the sequence only in
// heads without a window. Other models (random heads, routing.selection = balanced) run the whole prefix again for each
// token, so that no later position takes part; label() says so.
#pragma once

#include "routing/attention/cache/piece_exchange.h"
#include "routing/model/sequence_model.h"
#include "routing/ops/precision.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace routing {

struct DecoderOptions {
  MatmulPrecision precision = MatmulPrecision::fp32;
  // Tokens of a prompt that are read at once. More is faster and takes more memory; no bit depends on it.
  std::int64_t prefill_block = 512;
  bool allow_cache = true;  // false: run prefixes again even where a cache is exact; for comparisons
  // Bytes that keys and values of heads without a window may take; 0 means what the system has available when the
  // decoder is made.
  std::int64_t memory_limit = 0;
  std::function<void(std::int64_t tokens_read, std::int64_t tokens)> progress = {};  // of long prompts
  // begin() reads its piece of the prompt here, at once, while others read theirs, who must call it too; pieces are
  // equal but for one token. The last one has what one process would have, and goes on; the others get no logits, and
  // their sequences can only be dropped. Of decoder-only models with a cache.
  PieceExchange* pieces = nullptr;
};

// Several sequences at once. What one gets does not depend on the others.
class Decoder {
 public:
  virtual ~Decoder() = default;
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // What will become of a sequence, so that memory is looked for beforehand.
  struct Expected {
    std::int64_t new_tokens = 0;     // of the sequence and its forks together
    std::int64_t forks = 0;          // made once all of the prompt is read
    std::int64_t prompt_tokens = 0;  // that extend() will read before, beside those given now
  };
  struct Begun {
    std::int64_t sequence = 0;  // its number, until drop()
    std::vector<float> logits;  // [vocabulary] of the token after the prompt
  };
  // A new sequence that begins with these tokens, which may be none; of an encoder-decoder they are the source, of at
  // least one token, and the target begins empty. Throws an InputError for ids outside the vocabulary, sequences
  // longer than longest_sequence(), and for more tokens than memory holds beside what other sequences expect.
  virtual Begun begin(std::span<const std::int32_t> prompt, const Expected& expected) = 0;
  Begun begin(std::span<const std::int32_t> prompt) { return begin(prompt, {}); }
  // A new sequence that has read nothing yet, not even that it begins: extend() must follow, even if with no tokens.
  // Memory is looked for now. An InputError of an encoder-decoder, which begins with its source.
  virtual std::int64_t open(const Expected& expected) = 0;
  // Reads more tokens of one sequence, at least one unless it was just opened; the logits of the next, which are those
  // that begin() of all of them has, bit for bit, however they are cut. Of an encoder-decoder they are of the target.
  // Throws an InputError for tokens as begin() does; what else it throws leaves a sequence that can only be dropped.
  virtual std::vector<float> extend(std::int64_t sequence, std::span<const std::int32_t> tokens) = 0;
  // extend() of several sequences, no sequence twice, by threads side by side where that is faster. What one of them
  // throws is in its result.
  struct More {
    std::int64_t sequence = 0;
    std::span<const std::int32_t> tokens = {};
  };
  struct Extended {
    std::vector<float> logits = {};
    std::exception_ptr error = {};
  };
  virtual std::vector<Extended> extend_each(std::span<const More> pieces);
  // Reads one more token of each sequence, no sequence twice; the logits of the next ones, [sequences, vocabulary].
  // Throws as extend().
  virtual at::Tensor step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) = 0;
  // Another sequence with the same tokens so far: one of those that were expected of the sequence. Or one that expects
  // tokens by itself, and throws as begin() if memory does not hold them.
  virtual std::int64_t fork(std::int64_t sequence) = 0;
  virtual std::int64_t fork(std::int64_t sequence, const Expected& expected) = 0;
  virtual void drop(std::int64_t sequence) = 0;

  // Is there memory for a sequence that expects this beside what others do? prompt_tokens are all of its prompt, or
  // what a fork of a sequence reads beyond. Throws begin()'s InputError if there never will be, even without the
  // others.
  virtual bool has_room(const Expected& expected) const = 0;
  virtual bool has_room(std::int64_t fork_of, const Expected& expected) const = 0;
  // Throws what begin() throws of a prompt, memory apart.
  virtual void check_prompt(std::span<const std::int32_t> prompt) const = 0;

  // Another sequence with the same tokens so far, to be forked later: it reads no more. kept_bytes() says what such
  // sequences hold, counting once what they share.
  virtual std::int64_t keep(std::int64_t sequence) = 0;
  virtual std::int64_t kept_bytes() const = 0;
  // What one sequence holds, whoever shares it.
  virtual std::int64_t bytes_of(std::int64_t sequence) const = 0;

  // Of an encoder-decoder: the prompt is a source, which is not part of the sequence.
  virtual bool reads_source() const = 0;
  // Tokens of a prompt that are read at once; 0 where the whole prompt is, so that pieces are no cheaper than all of
  // it.
  virtual std::int64_t prompt_block() const = 0;
  virtual std::int64_t vocabulary_size() const = 0;
  // Tokens that a sequence can have (images, learned positions); 0 means any number.
  virtual std::int64_t longest_sequence() const = 0;
  // "cached" or "re-runs the prefix".
  virtual std::string label() const = 0;
  // Why it is not cached, and what to do for a fast model; empty if it is.
  virtual std::string reason() const = 0;
  // Bytes that caches hold now.
  virtual std::int64_t cache_bytes() const = 0;
};

// The model is put into evaluation mode and must not be trained while the decoder lives. The limit of packed weights
// (ops/dense/packed_weights.h) is raised where the model's would not fit.
std::unique_ptr<Decoder> make_decoder(std::shared_ptr<SequenceModel> model, const DecoderOptions& options = {});

}  // namespace routing
