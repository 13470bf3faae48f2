// The most likely sequences that a beam finds.
//
// A beam keeps the `beams` best beginnings. Each step extends all of them by every token and keeps the best of the
// extensions; those that end with the end token are put aside. Of equally good ones the one from the better beginning,
// then with the lower token, comes first. One beam is greedy decoding.
//
//   score = log probability / length^length_penalty        length counts the end token
//
// The search ends when `beams` sequences have ended and no beginning can still beat the worst of them, or at
// max_new_tokens.
#pragma once

#include "routing/generation/decoder.h"

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

struct BeamOptions {
  std::int64_t beams = 4;
  std::int64_t max_new_tokens = 256;
  std::int64_t end_token = -1;    // -1: sequences end at max_new_tokens only
  std::int64_t known_tokens = 0;  // only ids below this one; 0 means all
  double length_penalty = 1.0;    // 0 or more: 0 compares plain probabilities, 1 the mean of a token
};

struct Hypothesis {
  std::vector<std::int32_t> tokens = {};  // the end token among them
  double log_probability = 0.0;           // natural logarithm, of all tokens
  double score = 0.0;
  bool ended = false;  // by the end token
};

// At most `beams`, best first. The prompt is that of Decoder::begin. Throws a ConfigError for options out of range.
std::vector<Hypothesis> beam_search(Decoder& decoder, std::span<const std::int32_t> prompt, const BeamOptions& options);

}  // namespace routing
