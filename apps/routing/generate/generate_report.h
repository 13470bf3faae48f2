// How long a generation took, and what is said about it on standard error.
#pragma once

#include "routing/generation/decoder.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace routing {

class GenerationReport {
 public:
  // A batch of samples begins: the clock of first tokens starts again.
  void begin_batch();
  // To be called with what DecoderOptions::progress says.
  void prompt_progress(std::int64_t tokens_read, std::int64_t tokens);
  // A token of a sequence that now has so many, prompt included.
  void token(std::int64_t length);

  // Since begin_batch().
  double seconds() const;
  double seconds_to_first_token() const { return first_token_; }
  std::int64_t tokens() const { return tokens_; }

  // "1024 tokens in 3.2 s: 320 tokens/s, first token after 0.12 s (prompt of 512 tokens: 0.10 s), cached, causal".
  std::string summary(std::int64_t prompt_tokens, const std::string& labels) const;
  // Tokens of the longest sequence so far.
  std::int64_t longest() const { return longest_; }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point begin_ = {};        // of all
  Clock::time_point batch_begin_ = {};  // of the batch
  double first_token_ = -1.0;           // of the batch; -1 before it
  double very_first_token_ = -1.0;
  double prompt_ = -1.0;  // of the first prompt
  std::int64_t tokens_ = 0;
  std::int64_t longest_ = 0;
};

}  // namespace routing
