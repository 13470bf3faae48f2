// Prompts that are read in pieces, and sequences that are kept for forks: the bits of whole prompts.
#include "routing/core/error.h"
#include "routing/generation/decoder.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/segments.h"
#include "support/small_experiment.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::decoder_pieces_test {
namespace {

using Ids = std::vector<std::int32_t>;

Ids random_ids(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  const at::Tensor tokens = random_tokens(1, std::max<std::int64_t>(1, count), vocabulary, seed);
  const auto* ids = tokens.data_ptr<std::int64_t>();
  return Ids(ids, ids + count);
}

std::shared_ptr<TransformerImpl> text_model(const ExperimentConfig& config) {
  return Transformer(config, at::TensorOptions().dtype(at::kFloat)).ptr();
}

// All kinds of heads, and a model that remembers segments.
std::vector<ContentCase> all_cases() {
  std::vector<ContentCase> cases = content_cases();
  for (const char* content : {"routing", "full"}) {
    ExperimentConfig config = memory_experiment(content, 20, 28);
    config.eval.memory = 36;
    cases.push_back({std::string("memory of ") + content, config});
  }
  return cases;
}

TEST(DecoderPieces, APromptInPiecesHasTheBitsOfAWholeOneForEveryKindOfHeads) {
  for (const ContentCase& each : all_cases()) {
    const auto model = text_model(each.config);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      for (const bool allow_cache : {true, false}) {
        const auto decoder =
            make_decoder(model, {.precision = precision, .prefill_block = 13, .allow_cache = allow_cache});
        const Ids text = random_ids(71, each.config.model.vocab_size, 3);
        const std::span<const std::int32_t> tokens = text;
        const auto first = [&](std::size_t count) { return decoder->begin(tokens.first(count)); };
        // Each split ends with all but the last token, which a step reads.
        for (const std::vector<std::size_t>& split : std::vector<std::vector<std::size_t>>{
                 {70}, {1, 69}, {69, 1}, {0, 7, 1, 1, 40, 21}, {12, 13, 13, 13, 19}}) {
          const std::int64_t sequence = decoder->open({});
          std::size_t read = 0;
          for (const std::size_t piece : split) {
            const std::vector<float> logits = decoder->extend(sequence, tokens.subspan(read, piece));
            read += piece;
            const Decoder::Begun whole = first(read);
            ASSERT_EQ(logits, whole.logits) << each.name << " " << decoder->label() << " after " << read;
            decoder->drop(whole.sequence);
          }
          const Decoder::Begun whole = first(70);
          const at::Tensor next =
              decoder->step(std::vector<std::int64_t>{sequence, whole.sequence}, Ids{text[70], text[70]});
          ASSERT_TRUE(at::equal(next[0], next[1])) << each.name << " " << decoder->label();
          decoder->drop(sequence);
          decoder->drop(whole.sequence);
        }
      }
    }
  }
}

TEST(DecoderPieces, PiecesOfSeveralSequencesAtOnceAreThoseOfEachAlone) {
  const support::ThreadGuard guard;
  for (const ContentCase& each : all_cases()) {
    const auto model = text_model(each.config);
    const Ids text = random_ids(90, each.config.model.vocab_size, 8);
    const std::span<const std::int32_t> tokens = text;
    const auto alone = make_decoder(model, {.prefill_block = 13});
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      const auto decoder = make_decoder(model, {.prefill_block = 13});
      // A new one, one that goes on, its fork, one with a piece that cannot be, and a new one that reads nothing yet.
      const std::int64_t begun = decoder->begin(tokens.first(20)).sequence;
      const std::int64_t fork = decoder->fork(begun);
      const Ids wrong{1, 100000};
      const std::vector<Decoder::More> pieces{{decoder->open({}), tokens.first(47)},
                                              {begun, tokens.subspan(20, 30)},
                                              {fork, tokens.subspan(50, 1)},
                                              {decoder->open({}), wrong},
                                              {decoder->open({}), {}}};
      const std::vector<Decoder::Extended> read = decoder->extend_each(pieces);
      ASSERT_EQ(read.size(), pieces.size());
      EXPECT_THROW(std::rethrow_exception(read[3].error), InputError);
      Ids forked(text.begin(), text.begin() + 20);
      forked.push_back(text[50]);
      EXPECT_EQ(read[0].logits, alone->begin(tokens.first(47)).logits) << each.name << ", " << threads << " threads";
      EXPECT_EQ(read[1].logits, alone->begin(tokens.first(50)).logits) << each.name << ", " << threads << " threads";
      EXPECT_EQ(read[2].logits, alone->begin(forked).logits) << each.name << ", " << threads << " threads";
      EXPECT_EQ(read[4].logits, alone->begin({}).logits) << each.name << ", " << threads << " threads";
      // They all go on.
      const at::Tensor next = decoder->step(std::vector<std::int64_t>{pieces[0].sequence, begun, pieces[4].sequence},
                                            Ids{text[47], text[50], text[0]});
      EXPECT_TRUE(at::equal(next[0], at::tensor(alone->begin(tokens.first(48)).logits)));
      EXPECT_TRUE(at::equal(next[1], at::tensor(alone->begin(tokens.first(51)).logits)));
      EXPECT_TRUE(at::equal(next[2], at::tensor(alone->begin(tokens.first(1)).logits)));
    }
  }
}

TEST(DecoderPieces, WhatABeginningHasReadGoesOn) {
  const auto decoder = make_decoder(text_model(small_experiment("routing")));
  const Ids text = random_ids(50, 256, 4);
  const std::span<const std::int32_t> tokens = text;
  const std::int64_t sequence = decoder->begin(tokens.first(20)).sequence;
  EXPECT_EQ(decoder->extend(sequence, tokens.subspan(20)), decoder->begin(text).logits);
  const std::int64_t other = decoder->begin({}).sequence;
  EXPECT_EQ(decoder->extend(other, text), decoder->begin(text).logits);
}

TEST(DecoderPieces, TheTargetOfAnEncoderDecoderIsReadInPiecesToo) {
  for (const ContentCase& each : pairs_cases()) {
    const auto model = EncoderDecoder(each.config, at::TensorOptions().dtype(at::kFloat)).ptr();
    const auto decoder = make_decoder(model);
    const Ids source = random_ids(20, 40, 10);
    EXPECT_EQ(message_of<InputError>([&] { decoder->open({}); }),
              "decoder: a sequence of an encoder-decoder begins with its source");
    const std::int64_t at_once = decoder->begin(source).sequence;
    const std::int64_t stepped = decoder->fork(at_once);
    const std::vector<float> logits = decoder->extend(at_once, Ids{5, 6, 7});
    at::Tensor last;
    for (const std::int32_t token : {5, 6, 7}) last = decoder->step(std::vector<std::int64_t>{stepped}, Ids{token});
    EXPECT_TRUE(at::equal(at::tensor(logits), last[0])) << each.name;
  }
}

TEST(DecoderPieces, KeptSequencesAreForkedAndNeverRead) {
  for (const ContentCase& each : all_cases()) {
    const auto decoder = make_decoder(text_model(each.config));
    const Ids text = random_ids(60, each.config.model.vocab_size, 5);
    const std::span<const std::int32_t> tokens = text;
    const std::int64_t sequence = decoder->begin(tokens.first(25)).sequence;
    EXPECT_EQ(decoder->kept_bytes(), 0);
    const std::int64_t kept = decoder->keep(sequence);
    EXPECT_GT(decoder->kept_bytes(), 0);
    EXPECT_EQ(decoder->kept_bytes(), decoder->bytes_of(kept)) << each.name;
    EXPECT_THROW(decoder->step(std::vector<std::int64_t>{kept}, Ids{1}), InputError);
    EXPECT_THROW(decoder->extend(kept, Ids{1}), InputError);
    // Whatever becomes of the others, it stays as it is.
    decoder->extend(sequence, tokens.subspan(25));
    decoder->drop(sequence);
    for (int time = 0; time < 2; ++time) {
      const std::int64_t fork = decoder->fork(kept, {.new_tokens = 3, .prompt_tokens = 35});
      EXPECT_EQ(decoder->extend(fork, tokens.subspan(25)), decoder->begin(text).logits) << each.name;
      decoder->drop(fork);
    }
    decoder->drop(kept);
    EXPECT_EQ(decoder->kept_bytes(), 0) << each.name;
  }
}

TEST(DecoderPieces, WhatKeptSequencesShareCountsOnce) {
  const auto decoder = make_decoder(text_model(small_experiment("full")));
  const Ids text = random_ids(1000, 256, 6);
  const std::int64_t sequence = decoder->begin(text).sequence;
  const std::int64_t one = decoder->keep(sequence);
  // Two layers; two full heads with 1001 rows of 36 bytes and as many places of 16, two local heads with a window of 8.
  const std::int64_t places = 2 * (2 * 1001 + 2 * 8) * 16;
  const std::int64_t rows = 2 * (2 * 1001 + 2 * 8) * 36;
  const std::int64_t last_queries = decoder->kept_bytes() - places - rows;
  EXPECT_GE(last_queries, 0);
  EXPECT_LE(last_queries, 2 * 4 * 4 * 4);
  const std::int64_t alone = decoder->kept_bytes();
  const std::int64_t two = decoder->keep(sequence);
  EXPECT_EQ(decoder->kept_bytes(), alone + places + last_queries);
  EXPECT_EQ(decoder->bytes_of(two), alone);
  decoder->drop(one);
  EXPECT_EQ(decoder->kept_bytes(), alone);
  decoder->drop(sequence);
  EXPECT_EQ(decoder->kept_bytes(), alone);
}

TEST(DecoderPieces, MemoryIsThatWhichIsHeldAndThatWhichIsPromised) {
  // 208 bytes per token: see Decoder.APromptThatMemoryCannotHoldIsRefusedBeforeItIsRead.
  const auto decoder = make_decoder(text_model(small_experiment("full")), {.memory_limit = 1 << 20});
  const Decoder::Expected much{.new_tokens = 2500, .prompt_tokens = 500};
  EXPECT_TRUE(decoder->has_room(much));
  const std::int64_t opened = decoder->open(much);
  EXPECT_FALSE(decoder->has_room(much)) << "promised, although nothing is read";
  EXPECT_THROW(decoder->open(much), InputError);
  decoder->extend(opened, random_ids(500, 256, 7));
  EXPECT_FALSE(decoder->has_room(much)) << "what is read is not promised any more, but held";
  EXPECT_TRUE(decoder->has_room({.prompt_tokens = 1900}));
  EXPECT_FALSE(decoder->has_room({.prompt_tokens = 2100}));
  const std::int64_t kept = decoder->keep(opened);
  decoder->drop(opened);
  EXPECT_TRUE(decoder->has_room(much)) << "the snapshot holds 500 tokens and expects none";
  EXPECT_TRUE(decoder->has_room({.prompt_tokens = 4400}));
  EXPECT_FALSE(decoder->has_room({.prompt_tokens = 4700}));
  EXPECT_TRUE(decoder->has_room(kept, {.prompt_tokens = 4200})) << "a fork copies lists, not rows";
  EXPECT_FALSE(decoder->has_room(kept, {.forks = 2, .prompt_tokens = 2800}));
  EXPECT_THROW(decoder->fork(kept, {.prompt_tokens = 4700}), InputError);
  decoder->drop(kept);
  EXPECT_TRUE(decoder->has_room({.prompt_tokens = 5000}));
  EXPECT_EQ(message_of<InputError>([&] { decoder->has_room({.new_tokens = 10, .prompt_tokens = 6000}); }),
            "a prompt of 6000 tokens and 10 new ones need 2 MiB for keys and values, but 1 MiB are available; give a "
            "shorter one, ask for fewer tokens or samples at a time, or use a model whose heads have windows (local, "
            "routing)");
}

TEST(DecoderPieces, StepsUseUpWhatWasPromised) {
  const auto decoder = make_decoder(text_model(small_experiment("full")), {.memory_limit = 100 * 208});
  const std::int64_t sequence = decoder->open({.new_tokens = 50, .prompt_tokens = 10});
  decoder->extend(sequence, random_ids(10, 256, 7));
  for (int i = 0; i < 40; ++i) {
    decoder->step(std::vector<std::int64_t>{sequence}, Ids{1});
    // Position 0 is nobody's token.
    EXPECT_TRUE(decoder->has_room({.prompt_tokens = 39}));
    EXPECT_FALSE(decoder->has_room({.prompt_tokens = 41}));
  }
}

TEST(DecoderPieces, WrongPiecesAreRefusedAndChangeNothing) {
  for (const char* content : {"routing", "random"}) {
    ExperimentConfig config = small_experiment(content);
    config.model.image_height = config.model.image_width = 3;
    config.train.sequence_length = 27;
    config.patterns.local.relative = RelativePosition::none;
    const auto decoder = make_decoder(text_model(config));
    const std::int64_t sequence = decoder->open({});
    const Ids text = random_ids(26, 256, 8);
    const std::span<const std::int32_t> tokens = text;
    decoder->extend(sequence, tokens.first(20));
    EXPECT_EQ(message_of<InputError>([&] { decoder->extend(sequence, {}); }),
              "decoder: a sequence is to read no tokens; give it at least one");
    EXPECT_EQ(message_of<InputError>([&] {
                decoder->extend(sequence, Ids{1, 256});
              }),
              "token 256 at position 21, but the vocabulary has ids 0 to 255");
    EXPECT_EQ(message_of<InputError>([&] { decoder->extend(sequence, random_ids(7, 256, 9)); }),
              "a sequence of 20 tokens and 7 more, but sequences of this model end after 27; give fewer, so that there "
              "is something left to predict");
    EXPECT_THROW(decoder->extend(sequence + 1, Ids{1}), InputError);
    EXPECT_EQ(decoder->extend(sequence, tokens.subspan(20)), decoder->begin(text).logits) << content;
    EXPECT_EQ(message_of<InputError>([&] { decoder->check_prompt(random_ids(27, 256, 9)); }),
              message_of<InputError>([&] { decoder->begin(random_ids(27, 256, 9)); }));
    EXPECT_NO_THROW(decoder->check_prompt(text));
  }
}

}  // namespace
}  // namespace routing::decoder_pieces_test
