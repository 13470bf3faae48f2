// Requests whose prompts begin alike: how much is read, and when.
#include "faulty_decoder.h"
#include "heard_completions.h"
#include "routing/generation/completion_batch.h"
#include "routing/model/transformer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace routing::shared_prompts_test {
namespace {

using Ids = std::vector<std::int32_t>;

struct Setting {
  std::unique_ptr<Decoder> reference;
  FaultyDecoder decoder;
  explicit Setting(const std::shared_ptr<TransformerImpl>& model, std::int64_t block = 512)
      : reference(make_decoder(model)), decoder(make_decoder(model, {.prefill_block = block})) {}
};

std::shared_ptr<TransformerImpl> model_of(const std::string& content) {
  ExperimentConfig config = small_experiment(content);
  config.model.initial_scale = 3.0;
  return Transformer(config, at::TensorOptions().dtype(at::kFloat)).ptr();
}

Ids ids(std::int64_t count, std::uint64_t seed) {
  const at::Tensor tokens = random_tokens(1, count, 256, seed);
  return Ids(tokens.data_ptr<std::int64_t>(), tokens.data_ptr<std::int64_t>() + count);
}

Ids joined(Ids one, const Ids& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

CompletionRequest request_of(const Ids& prompt, std::uint64_t seed = 1) {
  return {.prompt = prompt, .sampling = {.top_p = 1.0, .seed = seed}, .max_new_tokens = 5};
}

TEST(SharedPrompts, OfManyAtOnceTheFirstReadsForAll) {
  Setting setting(model_of("routing"));
  CompletionBatch batch(setting.decoder, {.prefill_block = 64});
  const Ids prompt = ids(400, 1);
  std::vector<AskedCompletion> asked;
  for (std::uint64_t seed = 0; seed < 16; ++seed) asked.push_back(ask(batch, request_of(prompt, seed)));
  finish(batch);
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    expect_equal(alone(*setting.reference, request_of(prompt, seed)), *asked[seed].heard, std::to_string(seed));
    EXPECT_EQ(asked[seed].heard->prompts.back().cached_tokens, seed == 0 ? 0 : 400);
    EXPECT_EQ(asked[seed].heard->prompts.back().read, 400);
  }
  EXPECT_EQ(batch.facts().prompt_tokens_read, 400);
  EXPECT_EQ(setting.decoder.tokens_read(), 400 + 16 * 4);
  EXPECT_EQ(batch.facts().prefixes.hits, 15);
  EXPECT_EQ(batch.facts().prefixes.misses, 1);
  EXPECT_EQ(batch.facts().prefixes.tokens_saved, 15 * 400);
}

TEST(SharedPrompts, OfManyAtOnceThatPartTheBeginningIsReadOnce) {
  Setting setting(model_of("routing"));
  CompletionBatch batch(setting.decoder, {.prefill_block = 64});
  const Ids system = ids(300, 1);
  std::vector<CompletionRequest> requests;
  std::vector<AskedCompletion> asked;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    requests.push_back(request_of(joined(joined(system, {static_cast<std::int32_t>(seed)}), ids(20, 10 + seed))));
    asked.push_back(ask(batch, requests.back()));
  }
  finish(batch);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    expect_equal(alone(*setting.reference, requests[i]), *asked[i].heard, std::to_string(i));
    EXPECT_EQ(asked[i].heard->prompts.back().cached_tokens, i == 0 ? 0 : 300);
  }
  EXPECT_EQ(batch.facts().prompt_tokens_read, 300 + 8 * 21);
}

TEST(SharedPrompts, OneAfterTheOtherASnapshotStandsWhereTheyPart) {
  Setting setting(model_of("routing"), 64);
  CompletionBatch batch(setting.decoder);
  const Ids system = ids(300, 1);
  const std::vector<std::int64_t> cached{0, 255, 300, 300};
  for (std::uint64_t i = 0; i < 4; ++i) {
    const CompletionRequest request =
        request_of(joined(joined(system, {static_cast<std::int32_t>(i)}), ids(20, 9 + i)));
    const AskedCompletion asked = ask(batch, request);
    finish(batch);
    expect_equal(alone(*setting.reference, request), *asked.heard, std::to_string(i));
    EXPECT_EQ(asked.heard->prompts.back().cached_tokens, cached[i]) << "blocks end at 63, 127 and 255";
  }
  // What continues a prompt goes on from its end.
  const AskedCompletion longer = ask(batch, request_of(joined(joined(joined(system, {3}), ids(20, 12)), ids(40, 30))));
  finish(batch);
  EXPECT_EQ(longer.heard->prompts.back().cached_tokens, 321);
}

TEST(SharedPrompts, WhoeverWaitsForAnotherGoesOnWhenThatOneIsCancelled) {
  Setting setting(model_of("routing"));
  CompletionBatch batch(setting.decoder, {.prefill_block = 64});
  const CompletionRequest request = request_of(ids(400, 1));
  const AskedCompletion first = ask(batch, request);
  const AskedCompletion second = ask(batch, request);
  const AskedCompletion third = ask(batch, request);
  for (int i = 0; i < 3; ++i) batch.advance();
  EXPECT_EQ(setting.decoder.tokens_read(), 192);
  EXPECT_EQ(batch.facts().waiting, 2);
  batch.cancel(first.number);
  finish(batch);
  expect_equal(alone(*setting.reference, request), *second.heard, "second");
  expect_equal(alone(*setting.reference, request), *third.heard, "third");
  EXPECT_EQ(third.heard->prompts.back().cached_tokens, 400);
}

TEST(SharedPrompts, WhoeverWaitsForAnotherKeepsItsTurn) {
  Setting setting(model_of("routing"));
  CompletionBatch batch(setting.decoder, {.sequences = 3, .prefill_block = 64});
  const CompletionRequest request = request_of(ids(400, 1));
  const AskedCompletion first = ask(batch, request);
  CompletionRequest both = request;
  both.samples = 2;
  const AskedCompletion second = ask(batch, both);
  const AskedCompletion other = ask(batch, request_of(ids(20, 5)));
  batch.advance();
  EXPECT_EQ(other.heard->tokens, 0U) << "places are the second's, although it is not there yet";
  finish(batch);
  EXPECT_TRUE(second.heard->is_done());
  EXPECT_TRUE(other.heard->is_done());
}

TEST(SharedPrompts, WithoutACacheEverybodyReads) {
  Setting setting(model_of("routing"));
  CompletionBatch batch(setting.decoder, {.prefix_cache = {.bytes = 0}});
  const Ids prompt = ids(100, 1);
  std::vector<AskedCompletion> asked;
  for (std::uint64_t seed = 0; seed < 3; ++seed) asked.push_back(ask(batch, request_of(prompt, seed)));
  finish(batch);
  EXPECT_EQ(batch.facts().prompt_tokens_read, 300);
  EXPECT_EQ(asked[2].heard->prompts.back().cached_tokens, 0);
  EXPECT_EQ(setting.decoder.sequences(), 0);
}

TEST(SharedPrompts, ModelsThatReRunPrefixesKnowAWholePromptAgain) {
  Setting setting(model_of("random"));
  CompletionBatch batch(setting.decoder);
  const CompletionRequest request = request_of(ids(30, 1));
  const AskedCompletion one = ask(batch, request);
  const AskedCompletion two = ask(batch, request);
  finish(batch);
  EXPECT_EQ(two.heard->prompts.back().cached_tokens, 30);
  EXPECT_EQ(batch.facts().prompt_tokens_read, 30);
  expect_equal(alone(*setting.reference, request), *two.heard, "two");
}

}  // namespace
}  // namespace routing::shared_prompts_test
