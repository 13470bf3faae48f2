// Snapshots of prompts: which is found, which goes, and what they weigh.
#include "routing/generation/prefix_cache.h"

#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace routing::prefix_cache_test {
namespace {

using Ids = std::vector<std::int32_t>;
using Lengths = std::vector<std::int64_t>;

std::unique_ptr<Decoder> decoder_of(const std::string& content, const DecoderOptions& options = {}) {
  return make_decoder(Transformer(small_experiment(content), at::TensorOptions().dtype(at::kFloat)).ptr(), options);
}

Ids ids(std::int64_t count, std::int32_t first) {
  Ids made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), first);
  for (std::int32_t& id : made) id %= 256;
  return made;
}

Ids joined(Ids one, const Ids& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

// Reads a prompt and keeps what comes of it.
void keep(PrefixCache& cache, Decoder& decoder, const Ids& prompt) {
  Decoder::Begun begun = decoder.begin(prompt);
  cache.insert(prompt, begun.sequence, std::make_shared<const std::vector<float>>(std::move(begun.logits)));
  decoder.drop(begun.sequence);
}

TEST(PrefixCache, FindsTheLongestBeginningWithItsLogits) {
  const auto decoder = decoder_of("routing");
  PrefixCache cache(*decoder, {});
  const Ids prompt = ids(60, 0);
  EXPECT_EQ(cache.find(prompt).sequence, -1);
  keep(cache, *decoder, ids(20, 0));
  keep(cache, *decoder, ids(40, 0));
  keep(cache, *decoder, joined(ids(40, 0), ids(20, 100)));
  const PrefixCache::Found found = cache.find(prompt);
  EXPECT_EQ(found.tokens, 40);
  EXPECT_EQ(*found.logits, decoder->begin(ids(40, 0)).logits);
  const std::int64_t fork = decoder->fork(found.sequence, {.prompt_tokens = 20});
  EXPECT_EQ(decoder->extend(fork, std::span(prompt).subspan(40)), decoder->begin(prompt).logits);
  EXPECT_EQ(cache.find(ids(39, 0)).tokens, 20);
  EXPECT_EQ(cache.find(ids(39, 1)).sequence, -1);
}

TEST(PrefixCache, SaysWhereSnapshotsAreWorthWhile) {
  const auto decoder = decoder_of("routing", {.prefill_block = 32});
  PrefixCache cache(*decoder, {.least_tokens = 20});
  EXPECT_EQ(cache.places(ids(200, 0)), (Lengths{31, 63, 127, 200})) << "blocks are of the start and 31 tokens";
  EXPECT_EQ(cache.places(ids(10, 0)), (Lengths{10}));
  keep(cache, *decoder, ids(90, 0));
  EXPECT_EQ(cache.places(joined(ids(50, 0), ids(60, 100))), (Lengths{31, 50, 63, 110})) << "where it parts";
  EXPECT_EQ(cache.places(joined(ids(19, 0), ids(60, 100))), (Lengths{31, 63, 79})) << "that is too short";
  EXPECT_EQ(cache.places({}), (Lengths{0}));
  const auto whole = decoder_of("random");
  PrefixCache of_whole(*whole, {});
  keep(of_whole, *whole, ids(90, 0));
  EXPECT_EQ(of_whole.places(joined(ids(50, 0), ids(60, 100))), (Lengths{110}));
}

TEST(PrefixCache, PromptsThatAreReadAsAWholeAreFoundAsAWhole) {
  const auto decoder = decoder_of("random");
  PrefixCache cache(*decoder, {});
  keep(cache, *decoder, ids(30, 0));
  EXPECT_EQ(cache.find(ids(40, 0)).sequence, -1);
  EXPECT_EQ(cache.find(ids(30, 0)).tokens, 30);
}

TEST(PrefixCache, TheLongestUnusedGoesFirst) {
  const auto decoder = decoder_of("routing");
  PrefixCache cache(*decoder, {});
  for (const std::int32_t first : {0, 50, 100}) keep(cache, *decoder, ids(30, first));
  cache.count(ids(30, 0), cache.find(ids(30, 0)));
  keep(cache, *decoder, ids(30, 50));  // it is there: that is a use too
  EXPECT_EQ(cache.facts().snapshots, 3);
  const auto is_there = [&](std::int32_t first) { return cache.find(ids(30, first)).sequence >= 0; };
  EXPECT_TRUE(cache.evict());
  EXPECT_FALSE(is_there(100));
  EXPECT_TRUE(cache.evict());
  EXPECT_FALSE(is_there(0));
  EXPECT_TRUE(is_there(50));
  EXPECT_TRUE(cache.evict());
  EXPECT_FALSE(cache.evict());
  EXPECT_EQ(cache.facts().evictions, 3);
  EXPECT_EQ(cache.facts().bytes, 0);
  EXPECT_EQ(decoder->kept_bytes(), 0);
}

TEST(PrefixCache, NeverHoldsMoreThanItMayAndKeepsTheLastUsed) {
  for (const char* content : {"routing", "full", "balanced"}) {
    const auto decoder = decoder_of(content == std::string("balanced") ? "random" : content);
    constexpr std::int64_t kLimit = 60'000;
    PrefixCache cache(*decoder, {.bytes = kLimit});
    for (std::int32_t i = 0; i < 100; ++i) {
      const Ids prompt = joined(ids(20 + i % 7, 0), ids(30 + i % 11, i));
      keep(cache, *decoder, prompt);
      const PrefixCache::Facts facts = cache.facts();
      ASSERT_LE(facts.bytes, kLimit) << content;
      ASSERT_GE(facts.bytes, decoder->kept_bytes() + facts.snapshots * 256 * 4) << "rows and logits";
      ASSERT_GE(cache.find(prompt).sequence, 0) << content;
      ASSERT_EQ(facts.insertions, i + 1);
      ASSERT_EQ(facts.snapshots + facts.evictions, facts.insertions);
    }
    EXPECT_GT(cache.facts().evictions, 0);
    EXPECT_GT(cache.facts().snapshots, 2);
  }
}

TEST(PrefixCache, WhatIsTooLargeDrivesNobodyOut) {
  const auto decoder = decoder_of("full");
  PrefixCache cache(*decoder, {.bytes = 40'000});
  keep(cache, *decoder, ids(30, 0));
  const PrefixCache::Facts before = cache.facts();
  keep(cache, *decoder, ids(1000, 1));
  EXPECT_EQ(cache.facts().snapshots, before.snapshots);
  EXPECT_EQ(cache.facts().bytes, before.bytes);
  EXPECT_EQ(cache.facts().evictions, 0);
}

TEST(PrefixCache, WithoutBytesNothingIsKept) {
  const auto decoder = decoder_of("routing");
  PrefixCache cache(*decoder, {.bytes = 0, .least_tokens = 0});
  keep(cache, *decoder, ids(30, 0));
  EXPECT_EQ(cache.find(ids(30, 0)).sequence, -1);
  EXPECT_EQ(cache.places(ids(600, 0)), (Lengths{600}));
  cache.count(ids(30, 0), {});
  EXPECT_EQ(cache.facts().misses, 0) << "nobody looked";
  EXPECT_EQ(cache.facts().insertions, 0);
}

TEST(PrefixCache, CountsHitsMissesAndTokens) {
  const auto decoder = decoder_of("routing");
  PrefixCache cache(*decoder, {});
  cache.count(ids(30, 0), cache.find(ids(30, 0)));
  keep(cache, *decoder, ids(30, 0));
  cache.count(ids(45, 0), cache.find(ids(45, 0)));
  cache.count(ids(30, 0), cache.find(ids(30, 0)));
  EXPECT_EQ(cache.facts().misses, 1);
  EXPECT_EQ(cache.facts().hits, 2);
  EXPECT_EQ(cache.facts().tokens_saved, 60);
}

TEST(PrefixCache, ShortBeginningsAreNotKept) {
  const auto decoder = decoder_of("routing");
  PrefixCache cache(*decoder, {.least_tokens = 16});
  keep(cache, *decoder, ids(15, 0));
  EXPECT_EQ(cache.facts().snapshots, 0);
  keep(cache, *decoder, ids(16, 0));
  EXPECT_EQ(cache.facts().snapshots, 1);
}

// Where memory for keys and values is short, snapshots are not what takes it.
TEST(PrefixCache, ASnapshotThatMemoryDoesNotHoldIsNotTaken) {
  const auto decoder = decoder_of("full", {.memory_limit = 208 * 110});
  PrefixCache cache(*decoder, {});
  Decoder::Begun begun = decoder->begin(ids(100, 0), {.new_tokens = 9});
  cache.insert(ids(100, 0), begun.sequence, std::make_shared<const std::vector<float>>(begun.logits));
  EXPECT_EQ(cache.facts().snapshots, 0);
}

TEST(PrefixCache, IsEmptyForTheDecoderOnceItIsGone) {
  const auto decoder = decoder_of("routing");
  {
    PrefixCache cache(*decoder, {});
    keep(cache, *decoder, ids(30, 0));
  }
  EXPECT_EQ(decoder->kept_bytes(), 0);
  EXPECT_EQ(decoder->begin({}).sequence, 0);
}

TEST(PrefixCache, ImpossibleLimitsAreRefused) {
  const auto decoder = decoder_of("routing");
  EXPECT_THROW(PrefixCache(*decoder, {.bytes = -1}), ConfigError);
  EXPECT_THROW(PrefixCache(*decoder, {.least_tokens = -1}), ConfigError);
}

}  // namespace
}  // namespace routing::prefix_cache_test
