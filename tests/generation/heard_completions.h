// Completions of a batch for tests: what a listener heard of each, and what it should have heard.
#pragma once

#include "routing/generation/completion_batch.h"
#include "routing/generation/generate.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace routing {

// Remembers what it hears.
struct HeardCompletion : CompletionListener {
  std::vector<Sample> samples;
  std::vector<CompletionListener::Prompt> prompts = {};
  std::string failure = {};
  int ends = 0;
  std::size_t tokens = 0;

  explicit HeardCompletion(std::int64_t count) : samples(static_cast<std::size_t>(count)) {}
  void prompt_read(const CompletionListener::Prompt& prompt) override { prompts.push_back(prompt); }
  bool token(std::size_t sample, const TokenDraw& draw, std::span<const float> /*logits*/) override {
    ++tokens;
    samples[sample].tokens.push_back(draw.token);
    samples[sample].log_probabilities.push_back(draw.log_probability);
    return true;
  }
  void ended(std::size_t sample, StopReason reason) override {
    ++ends;
    samples[sample].stop = reason;
  }
  void failed(const std::string& reason) override { failure = reason; }
  bool is_done() const { return ends == static_cast<int>(samples.size()); }
};

struct AskedCompletion {
  std::uint64_t number = 0;
  std::shared_ptr<HeardCompletion> heard = {};
};

inline AskedCompletion ask(CompletionBatch& batch, const CompletionRequest& request) {
  const auto heard = std::make_shared<HeardCompletion>(request.samples);
  return {batch.add(request, heard), heard};
}

inline std::vector<Sample> alone(Decoder& decoder, const CompletionRequest& request) {
  const std::vector<std::vector<std::int32_t>> prompts{request.prompt};
  return generate(decoder, prompts,
                  {.sampling = request.sampling,
                   .max_new_tokens = request.max_new_tokens,
                   .samples_per_prompt = request.samples,
                   .end_token = request.end_token,
                   .known_tokens = request.known_tokens,
                   .first_sample = request.first_sample});
}

inline void expect_equal(const std::vector<Sample>& expected, const HeardCompletion& heard, const std::string& what) {
  ASSERT_TRUE(heard.is_done()) << what << heard.failure;
  for (std::size_t sample = 0; sample < expected.size(); ++sample) {
    EXPECT_EQ(heard.samples[sample].tokens, expected[sample].tokens) << what;
    EXPECT_EQ(heard.samples[sample].log_probabilities, expected[sample].log_probabilities) << what;
    EXPECT_EQ(heard.samples[sample].stop, expected[sample].stop) << what;
  }
}

inline void finish(CompletionBatch& batch) {
  while (batch.advance()) {
  }
}

}  // namespace routing
