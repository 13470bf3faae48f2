// Samples of a model: several continuations of several prompts, side by side.
#pragma once

#include "routing/config/words.h"
#include "routing/generation/decoder.h"
#include "routing/generation/sampler.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace routing {

struct GenerateOptions {
  SamplingOptions sampling = {};
  std::int64_t max_new_tokens = 256;  // of each sample; fewer where sequences of the model end before
  std::int64_t samples_per_prompt = 1;
  std::int64_t batch_size = 32;    // samples decoded together; no sample depends on it
  std::int64_t end_token = -1;     // a sample ends after this token; -1 for none
  std::int64_t known_tokens = 0;   // only ids below this one are drawn: those that have a text; 0 means all
  std::uint64_t first_sample = 0;  // the number of the first sample, which names its random stream
};

enum class StopReason {
  length,   // max_new_tokens, or the end of what the model can read
  end,      // the end token
  stopped,  // the listener said so
};
constexpr auto words_of(StopReason) {
  using enum StopReason;
  return std::to_array<Word<StopReason>>({{length, "length"}, {end, "end"}, {stopped, "stopped"}});
}

struct Sample {
  std::int64_t prompt = 0;                     // which prompt it continues
  std::vector<std::int32_t> tokens = {};       // the new ones
  std::vector<double> log_probabilities = {};  // of each, by the model itself
  StopReason stop = StopReason::length;
};

// What hears of every token as it comes: sample number s of the result, the draw, and the logits it came from.
// Returning false ends the sample; the token still counts.
using TokenListener = std::function<bool(std::size_t sample, const TokenDraw& draw, std::span<const float> logits)>;

// Samples of prompt 0 first, then of prompt 1, …. Each prompt is read once per batch. The draw of a token is a function
// of the seed, the number of the sample and the position, so samples do not depend on batch_size or on each other.
std::vector<Sample> generate(Decoder& decoder, std::span<const std::vector<std::int32_t>> prompts,
                             const GenerateOptions& options, const TokenListener& listener = {});

}  // namespace routing
