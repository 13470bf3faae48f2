// Many completions in one batch, against generate() alone; places, memory, order and failures.
#include "routing/generation/completion_batch.h"

#include "faulty_decoder.h"
#include "heard_completions.h"
#include "routing/core/error.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace routing::completion_batch_test {
namespace {

using Ids = std::vector<std::int32_t>;

std::shared_ptr<TransformerImpl> model_of(const std::string& content) {
  ExperimentConfig config = small_experiment(content);
  config.model.initial_scale = 3.0;
  return Transformer(config, at::TensorOptions().dtype(at::kFloat)).ptr();
}

using Heard = HeardCompletion;
using Asked = AskedCompletion;

Ids ids(std::int64_t count, std::int32_t first) {
  Ids made(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    made[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(first + i) % 250;
  return made;
}

TEST(CompletionBatch, EachRequestHasOptionsOfItsOwn) {
  const auto model = model_of("routing");
  const auto reference = make_decoder(model);
  const auto decoder = make_decoder(model);
  CompletionBatch batch(*decoder);
  std::vector<CompletionRequest> requests{
      {.prompt = ids(5, 3), .sampling = {.temperature = 0.0}, .max_new_tokens = 9},
      {.prompt = {}, .sampling = {.top_p = 1.0, .seed = 5}, .max_new_tokens = 30, .samples = 3},
      {.prompt = ids(700, 8), .sampling = {.repetition_penalty = 1.7}, .max_new_tokens = 1, .first_sample = 7},
      {.prompt = ids(20, 8), .sampling = {.temperature = 3.0, .top_p = 1.0}, .max_new_tokens = 50, .known_tokens = 11}};
  requests.push_back(requests[1]);
  requests.back().end_token = alone(*reference, requests[1])[1].tokens[4];
  std::vector<Asked> asked;
  for (const CompletionRequest& request : requests) asked.push_back(ask(batch, request));
  finish(batch);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    expect_equal(alone(*reference, requests[i]), *asked[i].heard, std::to_string(i));
  }
  EXPECT_EQ(asked[4].heard->samples[1].stop, StopReason::end);
  EXPECT_EQ(batch.facts().finished, 5);
  EXPECT_EQ(batch.facts().places, 0);
  EXPECT_EQ(batch.facts().tokens_drawn, 9 + 90 + 1 + 50 + static_cast<std::int64_t>(asked[4].heard->tokens));
  EXPECT_FALSE(batch.advance());
}

TEST(CompletionBatch, WhatCanNeverBeDoneIsRefusedAtOnce) {
  const auto decoder = make_decoder(model_of("full"), {.memory_limit = 208 * 1000});
  CompletionBatch batch(*decoder, {.sequences = 4});
  const auto refused = [&](const CompletionRequest& request) {
    return message_of<Error>([&] { batch.add(request, std::make_shared<Heard>(1)); });
  };
  EXPECT_EQ(refused({.samples = 5}), "samples is 5, but at most 4 sequences are decoded at once; ask for fewer");
  EXPECT_EQ(refused({.samples = 0}), "generate: samples is 0, but must be at least 1");
  EXPECT_EQ(refused({.max_new_tokens = 0}), "generate: max_new_tokens is 0, but must be at least 1");
  EXPECT_EQ(refused({.prompt = {1, 256}}), "token 256 at position 1, but the vocabulary has ids 0 to 255");
  EXPECT_TRUE(refused({.sampling = {.top_p = 0.0}}).find("top_p") != std::string::npos);
  EXPECT_EQ(refused({.prompt = ids(600, 0), .max_new_tokens = 500}),
            "a prompt of 600 tokens and 500 new ones need 1 MiB for keys and values, but 0 MiB are available; give a "
            "shorter one, ask for fewer tokens or samples at a time, or use a model whose heads have windows (local, "
            "routing)");
  EXPECT_THROW(batch.add({.max_new_tokens = 1}, nullptr), InputError);
  EXPECT_FALSE(batch.advance()) << "nobody waits";
  EXPECT_EQ(batch.facts().requests, 0);
  EXPECT_THROW(CompletionBatch(*decoder, {.sequences = 0}), ConfigError);
  EXPECT_THROW(CompletionBatch(*decoder, {.prefill_block = 0}), ConfigError);
}

TEST(CompletionBatch, PlacesAreGivenInTheOrderOfComing) {
  FaultyDecoder decoder(make_decoder(model_of("routing")));
  CompletionBatch batch(decoder, {.sequences = 4});
  const Asked first = ask(batch, {.prompt = ids(3, 0), .max_new_tokens = 5, .samples = 2});
  const Asked large = ask(batch, {.prompt = ids(3, 1), .max_new_tokens = 5, .samples = 3});
  const Asked small = ask(batch, {.prompt = ids(3, 2), .max_new_tokens = 5});
  batch.advance();
  EXPECT_EQ(batch.facts().active, 2);
  EXPECT_EQ(batch.facts().places, 2);
  EXPECT_EQ(batch.facts().waiting, 2) << "nobody overtakes the one that needs three";
  for (int i = 0; i < 4; ++i) batch.advance();
  EXPECT_TRUE(first.heard->is_done());
  EXPECT_EQ(large.heard->tokens, 0U);
  batch.advance();
  EXPECT_EQ(large.heard->tokens, 3U);
  EXPECT_EQ(small.heard->tokens, 1U);
  EXPECT_EQ(batch.facts().places, 4);
  finish(batch);
  EXPECT_TRUE(small.heard->is_done());
  EXPECT_LE(*std::max_element(decoder.steps().begin(), decoder.steps().end()), 4U);
}

TEST(CompletionBatch, AReadingThatFailsForAllEndsThoseThatWereReadAndNobodyElse) {
  FaultyDecoder decoder(make_decoder(model_of("routing")));
  const auto reference = make_decoder(model_of("routing"));
  CompletionBatch batch(decoder);
  const CompletionRequest drawing{.prompt = ids(3, 0), .max_new_tokens = 12};
  const Asked begun = ask(batch, drawing);
  batch.advance();
  std::vector<Asked> read;
  for (const int first : {20, 50, 90}) read.push_back(ask(batch, {.prompt = ids(30, first), .max_new_tokens = 5}));
  decoder.fail_readings(1);
  EXPECT_TRUE(batch.advance());
  for (const Asked& each : read) EXPECT_FALSE(each.heard->failure.empty());
  EXPECT_EQ(batch.facts().failed, 3);
  const CompletionRequest later{.prompt = ids(30, 50), .max_new_tokens = 5};
  const Asked next = ask(batch, later);
  finish(batch);
  expect_equal(alone(*reference, drawing), *begun.heard, "who was drawing goes on");
  expect_equal(alone(*reference, later), *next.heard, "who comes later is read");
  EXPECT_EQ(batch.facts().places, 0);
}

TEST(CompletionBatch, APlaceIsFreeAsSoonAsASampleEnds) {
  const auto decoder = make_decoder(model_of("routing"));
  CompletionBatch batch(*decoder, {.sequences = 2});
  // The listener has enough of the first sample at once.
  struct Impatient : Heard {
    Impatient() : Heard(2) {}
    bool token(std::size_t sample, const TokenDraw& draw, std::span<const float> logits) override {
      Heard::token(sample, draw, logits);
      return sample == 1;
    }
  };
  const auto impatient = std::make_shared<Impatient>();
  batch.add({.prompt = ids(3, 0), .max_new_tokens = 50, .samples = 2}, impatient);
  const Asked next = ask(batch, {.prompt = ids(3, 1), .max_new_tokens = 2});
  batch.advance();
  EXPECT_EQ(impatient->samples[0].stop, StopReason::stopped);
  EXPECT_EQ(batch.facts().places, 1);
  batch.advance();
  EXPECT_EQ(next.heard->tokens, 1U);
  finish(batch);
  EXPECT_EQ(impatient->samples[1].tokens.size(), 50U);
}

TEST(CompletionBatch, OthersDoNotWaitForALongPrompt) {
  FaultyDecoder decoder(make_decoder(model_of("routing")));
  CompletionBatch batch(decoder, {.prefill_block = 50});
  const Asked quick = ask(batch, {.prompt = ids(3, 0), .max_new_tokens = 100});
  batch.advance();
  const Asked slow = ask(batch, {.prompt = ids(500, 1), .max_new_tokens = 3});
  const Asked late = ask(batch, {.prompt = ids(30, 7), .max_new_tokens = 3});
  std::int64_t before = decoder.tokens_read();
  for (int round = 0; slow.heard->tokens == 0; ++round) {
    batch.advance();
    EXPECT_EQ(quick.heard->tokens, static_cast<std::size_t>(round + 2)) << "a token in every round";
    EXPECT_LE(decoder.tokens_read() - before, 50 + 3) << "a block of prompts, and one token of each";
    before = decoder.tokens_read();
    ASSERT_LT(round, 20);
  }
  EXPECT_TRUE(late.heard->is_done()) << "a short prompt does not wait for a long one either";
  // Blocks end where snapshots are taken as well: after 511 tokens there would be one.
  EXPECT_EQ(slow.heard->prompts.front().tokens, 500);
  EXPECT_EQ(slow.heard->prompts.back().read, 500);
  EXPECT_GE(slow.heard->prompts.size(), 10U);
  finish(batch);
  EXPECT_EQ(decoder.sequences(), batch.facts().prefixes.snapshots);
}

TEST(CompletionBatch, ACancelledRequestIsGoneAtOnce) {
  for (const char* content : {"routing", "random"}) {
    FaultyDecoder decoder(make_decoder(model_of(content)));
    CompletionBatch batch(decoder, {.sequences = 6, .prefill_block = 50, .prefix_cache = {.bytes = 0}});
    const Asked waits = ask(batch, {.prompt = ids(5, 0), .max_new_tokens = 5});
    batch.cancel(waits.number);
    EXPECT_FALSE(batch.advance());
    const Asked reads = ask(batch, {.prompt = ids(200, 0), .max_new_tokens = 50, .samples = 2});
    const Asked draws = ask(batch, {.prompt = ids(5, 100), .max_new_tokens = 50, .samples = 3});
    const Asked stays = ask(batch, {.prompt = ids(5, 50), .max_new_tokens = 9});
    batch.advance();
    batch.advance();
    EXPECT_EQ(batch.facts().places, 6);
    batch.cancel(reads.number);
    EXPECT_EQ(decoder.sequences(), 4);
    batch.cancel(draws.number);
    EXPECT_EQ(decoder.sequences(), 1);
    EXPECT_EQ(batch.facts().places, 1);
    batch.cancel(draws.number);
    batch.cancel(12345);
    const std::size_t heard = draws.heard->tokens;
    finish(batch);
    EXPECT_EQ(draws.heard->tokens, heard) << "nothing is heard of it any more";
    EXPECT_EQ(draws.heard->ends + reads.heard->ends + waits.heard->ends, 0);
    EXPECT_TRUE(stays.heard->is_done());
    EXPECT_EQ(batch.facts().cancelled, 3);
    EXPECT_EQ(decoder.sequences(), 0);
  }
}

TEST(CompletionBatch, ARequestWaitsUntilThereIsMemory) {
  // 208 bytes per token.
  FaultyDecoder decoder(make_decoder(model_of("full"), {.memory_limit = 208 * 1000}));
  CompletionBatch batch(decoder, {.prefill_block = 1000, .prefix_cache = {.bytes = 0}});
  const Asked one = ask(batch, {.prompt = ids(300, 0), .max_new_tokens = 300});
  const Asked two = ask(batch, {.prompt = ids(300, 1), .max_new_tokens = 200});
  const Asked small = ask(batch, {.prompt = ids(10, 2), .max_new_tokens = 10});
  batch.advance();
  EXPECT_EQ(batch.facts().active, 1) << "and the small one does not overtake";
  EXPECT_EQ(batch.facts().waiting, 2);
  batch.cancel(one.number);
  batch.advance();
  EXPECT_EQ(batch.facts().active, 2);
  finish(batch);
  EXPECT_TRUE(two.heard->is_done());
  EXPECT_TRUE(small.heard->is_done());
}

TEST(CompletionBatch, SnapshotsMakeRoomForRequests) {
  const auto model = model_of("full");
  FaultyDecoder decoder(make_decoder(model, {.memory_limit = 208 * 1000}));
  const auto reference = make_decoder(model);
  CompletionBatch batch(decoder, {.prefill_block = 1000});
  for (std::int32_t i = 0; i < 6; ++i) {
    const CompletionRequest request{.prompt = ids(500, i), .max_new_tokens = 300};
    const Asked asked = ask(batch, request);
    finish(batch);
    expect_equal(alone(*reference, request), *asked.heard, std::to_string(i));
  }
  EXPECT_GT(batch.facts().prefixes.evictions, 0);
}

TEST(CompletionBatch, ARequestThatCannotBeReadFailsAloneAndSaysWhy) {
  const auto model = model_of("routing");
  const auto reference = make_decoder(model);
  FaultyDecoder decoder(make_decoder(model));
  decoder.poison(251);
  CompletionBatch batch(decoder, {.prefill_block = 20});
  Ids poisoned = ids(60, 0);
  poisoned[45] = 251;
  const CompletionRequest good{.prompt = ids(30, 0), .max_new_tokens = 20, .samples = 2, .known_tokens = 250};
  const Asked before = ask(batch, good);
  const Asked bad = ask(batch, {.prompt = poisoned, .max_new_tokens = 20});
  const Asked after = ask(batch, good);
  finish(batch);
  EXPECT_EQ(bad.heard->failure, "the poison was read");
  EXPECT_EQ(bad.heard->ends, 0);
  expect_equal(alone(*reference, good), *before.heard, "before");
  expect_equal(alone(*reference, good), *after.heard, "after");
  EXPECT_EQ(batch.facts().failed, 1);
  EXPECT_EQ(batch.facts().places, 0);
  EXPECT_EQ(decoder.sequences(), batch.facts().prefixes.snapshots);
}

TEST(CompletionBatch, ADrawThatFailsFailsItsRequestAlone) {
  const auto decoder = make_decoder(model_of("routing"));
  CompletionBatch batch(*decoder);
  // The penalty meets a token that has no logit.
  const Asked bad = ask(
      batch,
      {.prompt = {249}, .sampling = {.repetition_penalty = 2.0}, .max_new_tokens = 4, .samples = 2, .known_tokens = 9});
  const Asked good = ask(batch, {.prompt = {249}, .max_new_tokens = 4, .known_tokens = 9});
  finish(batch);
  EXPECT_EQ(bad.heard->failure,
            "token 249 is among those seen, but there are 9 logits; give ids of the same vocabulary");
  EXPECT_TRUE(good.heard->is_done());
  EXPECT_EQ(batch.facts().failed, 1);
  EXPECT_EQ(decoder->begin({}).sequence, 0);
}

// The whole step throws, with half of its work done. Whose fault it is shows when each is read by itself.
TEST(CompletionBatch, AStepThatThrowsFailsOnlyThoseThatCannotGoOn) {
  for (const char* content : {"routing", "full", "random"}) {
    const auto model = model_of(content);
    const auto reference = make_decoder(model);
    std::vector<CompletionRequest> requests;
    for (std::int32_t i = 0; i < 6; ++i) {
      requests.push_back({.prompt = ids(10 + 7 * i, i),
                          .sampling = {.top_p = 1.0, .seed = static_cast<std::uint64_t>(i)},
                          .max_new_tokens = 25,
                          .samples = 1 + i % 2});
    }
    // A token that one of them draws, so that the step after reads it.
    const std::vector<Sample> chosen = alone(*reference, requests[3]);
    const std::int32_t poison = chosen[1].tokens[9];
    FaultyDecoder decoder(make_decoder(model));
    decoder.poison(poison);
    CompletionBatch batch(decoder);
    std::vector<Asked> asked;
    for (const CompletionRequest& request : requests) asked.push_back(ask(batch, request));
    for (int round = 0; batch.advance(); ++round) {
      if (round == 4) decoder.fail_steps(1);  // nobody's fault, so that nobody fails
    }
    int failed = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::vector<Sample> expected = alone(*reference, requests[i]);
      bool reads_it = std::count(requests[i].prompt.begin(), requests[i].prompt.end(), poison) > 0;
      for (const Sample& sample : expected) {
        reads_it = reads_it || std::count(sample.tokens.begin(), sample.tokens.end() - 1, poison) > 0;
      }
      if (reads_it) {
        ++failed;
        EXPECT_EQ(asked[i].heard->failure, "the poison was read") << content << i;
      } else {
        expect_equal(expected, *asked[i].heard, content + std::to_string(i));
      }
    }
    EXPECT_GE(failed, 1);
    EXPECT_LT(failed, 6) << content << ": choose another seed";
    EXPECT_EQ(batch.facts().failed, failed);
    EXPECT_EQ(decoder.sequences(), batch.facts().prefixes.snapshots);
    // It can be used as before.
    decoder.poison(-1);
    const Asked again = ask(batch, requests[3]);
    finish(batch);
    expect_equal(chosen, *again.heard, "again");
  }
}

TEST(CompletionBatch, TargetsOfEncoderDecodersAreReadAgainAfterAFailure) {
  ExperimentConfig config = small_pairs_experiment("routing");
  config.model.initial_scale = 3.0;
  const auto model = EncoderDecoder(config, at::TensorOptions().dtype(at::kFloat)).ptr();
  const auto reference = make_decoder(model);
  FaultyDecoder decoder(make_decoder(model));
  CompletionBatch batch(decoder);
  const std::vector<CompletionRequest> requests{
      {.prompt = {3, 5, 7}, .max_new_tokens = 12, .samples = 2},
      {.prompt = {3, 5, 7, 3, 5, 7, 3, 5, 7, 3, 5, 7, 3, 5, 7, 9}, .max_new_tokens = 12},
      {.prompt = {3, 5, 7, 3, 5, 7, 3, 5, 7, 3, 5, 7, 3, 5, 7, 9}, .sampling = {.seed = 3}, .max_new_tokens = 12}};
  std::vector<Asked> asked;
  for (const CompletionRequest& request : requests) asked.push_back(ask(batch, request));
  for (int round = 0; batch.advance(); ++round) {
    if (round == 3) decoder.fail_steps(1);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    expect_equal(alone(*reference, requests[i]), *asked[i].heard, std::to_string(i));
  }
  EXPECT_EQ(asked[2].heard->prompts.back().cached_tokens, 16) << "the same source is encoded once";
}

TEST(CompletionBatch, ListenersMayAddAndCancel) {
  FaultyDecoder decoder(make_decoder(model_of("routing")));
  CompletionBatch batch(decoder);
  struct Acts : Heard {
    Acts() : Heard(2) {}
    bool token(std::size_t sample, const TokenDraw& draw, std::span<const float> logits) override {
      Heard::token(sample, draw, logits);
      if (tokens == 4) act();
      return true;
    }
    std::function<void()> act;
  };
  const Asked other = ask(batch, {.prompt = ids(5, 0), .max_new_tokens = 20, .samples = 2});
  const auto acts = std::make_shared<Acts>();
  const std::uint64_t itself = batch.add({.prompt = ids(5, 1), .max_new_tokens = 20, .samples = 2}, acts);
  const Asked last = ask(batch, {.prompt = ids(5, 2), .max_new_tokens = 20});
  Asked added;
  acts->act = [&] {
    batch.cancel(other.number);
    batch.cancel(itself);
    added = ask(batch, {.prompt = ids(5, 3), .max_new_tokens = 20});
  };
  finish(batch);
  EXPECT_EQ(acts->tokens, 4U);
  EXPECT_EQ(acts->ends, 0);
  EXPECT_FALSE(other.heard->is_done());
  EXPECT_TRUE(last.heard->is_done());
  EXPECT_TRUE(added.heard->is_done());
  EXPECT_EQ(decoder.sequences(), 0) << "prompts are too short for snapshots";
}

TEST(CompletionBatch, AListenerThatThrowsEndsItsRequestAlone) {
  FaultyDecoder decoder(make_decoder(model_of("routing")));
  CompletionBatch batch(decoder);
  struct Throws : Heard {
    Throws() : Heard(2) {}
    bool token(std::size_t sample, const TokenDraw& draw, std::span<const float> logits) override {
      Heard::token(sample, draw, logits);
      if (tokens == 4) throw std::runtime_error("enough");
      return true;
    }
  };
  const auto throws = std::make_shared<Throws>();
  batch.add({.prompt = ids(5, 1), .max_new_tokens = 20, .samples = 2}, throws);
  const Asked other = ask(batch, {.prompt = ids(5, 0), .max_new_tokens = 20});
  batch.advance();
  EXPECT_EQ(message_of<std::runtime_error>([&] { batch.advance(); }), "enough");
  EXPECT_EQ(other.heard->tokens, 2U) << "the round was done first";
  finish(batch);
  EXPECT_TRUE(other.heard->is_done());
  EXPECT_EQ(throws->tokens, 4U);
  EXPECT_EQ(decoder.sequences(), 0);
}

TEST(CompletionBatch, WhoeverIsLeftIsDropped) {
  FaultyDecoder decoder(make_decoder(model_of("routing")));
  {
    CompletionBatch batch(decoder, {.prefill_block = 30});
    ask(batch, {.prompt = ids(100, 1), .max_new_tokens = 20});
    ask(batch, {.prompt = ids(20, 2), .max_new_tokens = 20, .samples = 3});
    ask(batch, {.prompt = ids(20, 3), .max_new_tokens = 20, .samples = 3});
    for (int i = 0; i < 3; ++i) batch.advance();
    EXPECT_GT(decoder.sequences(), 3);
  }
  EXPECT_EQ(decoder.sequences(), 0);
}

}  // namespace
}  // namespace routing::completion_batch_test
