// Samples of a model: several continuations of several prompts, side by side.
#pragma once

#include "routing/generation/decoder.h"
#include "routing/generation/sample_batch.h"
#include "routing/generation/sampler.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
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

struct Sample {
  std::int64_t prompt = 0;                     // which prompt it continues
  std::vector<std::int32_t> tokens = {};       // the new ones
  std::vector<double> log_probabilities = {};  // of each, by the model itself
  StopReason stop = StopReason::length;
};

// What hears of every token as it comes: sample number s of the result, the draw, and the logits it came from.
// Returning false ends the sample; the token still counts.
using TokenListener = std::function<bool(std::size_t sample, const TokenDraw& draw, std::span<const float> logits)>;

// Samples that grow side by side, one token of each at a time: what generate() is made of, for callers that take tokens
// as they come. The decoder must outlive it.
class Generation {
 public:
  // Throws a ConfigError for options out of range.
  Generation(Decoder& decoder, const GenerateOptions& options);
  // `count` more samples that go on from a prompt, with the numbers first, first + 1, …; the number names the random
  // stream of a sample, together with options.first_sample. What Decoder::begin throws.
  void begin(std::span<const std::int32_t> prompt, std::size_t first, std::size_t count);
  bool goes_on() const { return samples_.size() > 0; }
  struct Step {
    std::size_t sample = 0;
    TokenDraw draw = {};
    std::optional<StopReason> stop = std::nullopt;  // set where this was the sample's last token
  };
  // The next token of every sample that goes on, in the order of their numbers.
  std::vector<Step> step(const TokenListener& listener = {});

 private:
  Decoder* decoder_;
  GenerateOptions options_;
  SampleBatch samples_;
};

// Samples of prompt 0 first, then of prompt 1, …. Each prompt is read once per batch. The draw of a token is a function
// of the seed, the number of the sample and the position, so samples do not depend on batch_size or on each other.
std::vector<Sample> generate(Decoder& decoder, std::span<const std::vector<std::int32_t>> prompts,
                             const GenerateOptions& options, const TokenListener& listener = {});

}  // namespace routing
