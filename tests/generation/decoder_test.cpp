// Decoders with and without a cache, against the model's own passes over whole sequences.
#include "routing/generation/decoder.h"

#include "routing/core/error.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "routing/ops/dense/packed_weights.h"
#include "support/message_of.h"
#include "support/segments.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::decoder_test {
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

// What a pass over the whole text says of the token after it.
at::Tensor expected_logits(TransformerImpl& model, const Ids& ids, MatmulPrecision precision) {
  const std::vector<std::int64_t> tokens(ids.begin(), ids.end());
  return model.next_logits(tokens, {.precision = precision});
}

bool equals(const std::vector<float>& logits, const at::Tensor& expected) {
  return at::equal(at::tensor(logits), expected);
}

TEST(Decoder, BothKindsPredictWhatTheModelDoes) {
  for (const ContentCase& each : content_cases()) {
    const auto model = text_model(each.config);
    for (const bool allow_cache : {true, false}) {
      const auto decoder = make_decoder(model, {.prefill_block = 7, .allow_cache = allow_cache});
      const bool cached = allow_cache && each.name != "random" && each.name != "balanced";
      EXPECT_EQ(decoder->label(), cached ? "cached" : "re-runs the prefix") << each.name;
      EXPECT_EQ(decoder->reason().empty(), cached);
      EXPECT_EQ(decoder->vocabulary_size(), 256);
      Ids text = random_ids(30, 256, 3);
      const Decoder::Begun begun = decoder->begin(text);
      EXPECT_TRUE(equals(begun.logits, expected_logits(*model, text, MatmulPrecision::fp32))) << each.name;
      for (int i = 0; i < 5; ++i) {
        const Ids next = random_ids(1, 256, 100 + static_cast<std::uint64_t>(i));
        text.push_back(next[0]);
        const at::Tensor logits = decoder->step(std::vector<std::int64_t>{begun.sequence}, next);
        EXPECT_TRUE(at::equal(logits[0], expected_logits(*model, text, MatmulPrecision::fp32))) << each.name;
      }
    }
  }
}

// Prompts that end inside, at the end and at the beginning of a segment, and tokens beyond.
TEST(Decoder, AModelThatRemembersDecodesWhatSegmentsPredict) {
  for (const std::string content : {"local", "full", "routing", "convolution", "most_used"}) {
    const bool compresses = content == "convolution" || content == "most_used";
    ExperimentConfig config = memory_experiment(compresses ? "full" : content, 20, 28);
    config.eval.memory = 36;
    if (compresses) {
      config.memory.compressed = 6;
      config.memory.compression = parse_word<Compression>(content, "compression");
    }
    const auto model = text_model(config);
    for (const std::int64_t length : {0, 19, 20, 21, 50}) {
      const at::Tensor text = random_tokens(1, length + 45, 37, 6);
      model->eval();
      const at::NoGradGuard no_gradient;
      const at::Tensor expected = logits_by_segments(*model, text, {20, 36});
      const auto* id = text.data_ptr<std::int64_t>();
      for (const bool allow_cache : {true, false}) {
        const auto decoder = make_decoder(model, {.prefill_block = 7, .allow_cache = allow_cache});
        EXPECT_EQ(decoder->label(), allow_cache && !compresses ? "cached" : "re-runs the prefix");
        const Decoder::Begun begun = decoder->begin(Ids(id, id + length));
        EXPECT_TRUE(equals(begun.logits, expected[0][length])) << content << length << allow_cache;
        const std::vector<std::int64_t> sequence{decoder->fork(begun.sequence)};
        for (std::int64_t i = length; i + 1 < text.size(1); ++i) {
          const at::Tensor logits = decoder->step(sequence, Ids{static_cast<std::int32_t>(id[i])});
          EXPECT_TRUE(at::equal(logits[0], expected[0][i + 1])) << content << i << allow_cache;
        }
      }
    }
  }
}

TEST(Decoder, TheBlockInWhichAPromptIsReadChangesNoBit) {
  const auto model = text_model(small_experiment("routing"));
  const Ids prompt = random_ids(300, 256, 4);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor expected = expected_logits(*model, prompt, precision);
    for (const std::int64_t block : {1, 13, 64, 300, 301, 1000}) {
      const auto decoder = make_decoder(model, {.precision = precision, .prefill_block = block});
      EXPECT_TRUE(equals(decoder->begin(prompt).logits, expected)) << block;
    }
  }
}

TEST(Decoder, AnEmptyPromptBeginsFromNothing) {
  const auto model = text_model(small_experiment("routing"));
  for (const bool allow_cache : {true, false}) {
    const auto decoder = make_decoder(model, {.allow_cache = allow_cache});
    EXPECT_TRUE(equals(decoder->begin({}).logits, expected_logits(*model, {}, MatmulPrecision::fp32)));
  }
}

TEST(Decoder, ForksAndOthersDoNotFeelEachOther) {
  for (const char* content : {"routing", "random"}) {
    const auto model = text_model(small_experiment(content));
    const auto decoder = make_decoder(model);
    Ids one = random_ids(25, 256, 5);
    Ids two = random_ids(3, 256, 6);
    const std::int64_t a = decoder->begin(one).sequence;
    const std::int64_t b = decoder->begin(two).sequence;
    const std::int64_t c = decoder->fork(a);
    Ids three = one;
    one.push_back(7);
    two.push_back(8);
    three.push_back(9);
    const at::Tensor logits = decoder->step(std::vector<std::int64_t>{c, b, a}, Ids{9, 8, 7});
    EXPECT_TRUE(at::equal(logits[0], expected_logits(*model, three, MatmulPrecision::fp32)));
    EXPECT_TRUE(at::equal(logits[1], expected_logits(*model, two, MatmulPrecision::fp32)));
    EXPECT_TRUE(at::equal(logits[2], expected_logits(*model, one, MatmulPrecision::fp32)));
    decoder->drop(a);
    EXPECT_THROW(decoder->step(std::vector<std::int64_t>{a}, Ids{1}), InputError);
    three.push_back(1);
    EXPECT_TRUE(at::equal(decoder->step(std::vector<std::int64_t>{c}, Ids{1})[0],
                          expected_logits(*model, three, MatmulPrecision::fp32)));
  }
}

TEST(Decoder, SaysWhyItReRunsThePrefixAndWhatToDo) {
  const auto decoder = make_decoder(text_model(small_experiment("random")));
  EXPECT_EQ(
      decoder->reason(),
      "layer 0: random heads draw from the whole sequence, so each new token runs the whole prefix again; a model "
      "with routing.selection = threshold or nearest, local, strided, fixed, lsh or full heads decodes with a cache");
}

TEST(Decoder, TokensOutsideOfTheVocabularyAreNamed) {
  const auto decoder = make_decoder(text_model(small_experiment("routing")));
  EXPECT_EQ(message_of<InputError>([&] {
              decoder->begin(Ids{1, 2, 256});
            }),
            "token 256 at position 2, but the vocabulary has ids 0 to 255");
  const std::int64_t sequence = decoder->begin(Ids{1, 2}).sequence;
  EXPECT_EQ(message_of<InputError>([&] { decoder->step(std::vector<std::int64_t>{sequence}, Ids{-3}); }),
            "token -3 at position 2, but the vocabulary has ids 0 to 255");
}

TEST(Decoder, APromptThatMemoryCannotHoldIsRefusedBeforeItIsRead) {
  const auto model = text_model(small_experiment("full"));
  // Two layers, two full heads, keys and values of 4 floats and 20 bytes of bookkeeping: 208 bytes per token.
  const auto decoder = make_decoder(model, {.memory_limit = 2 << 20});
  const Ids prompt = random_ids(20'000, 256, 7);
  EXPECT_EQ(
      message_of<InputError>([&] { decoder->begin(prompt, {.new_tokens = 1000}); }),
      "a prompt of 20000 tokens and 1000 new ones need 5 MiB for keys and values, but 2 MiB are available; give a "
      "shorter one, ask for fewer tokens or samples at a time, or use a model whose heads have windows (local, "
      "routing)");
  EXPECT_EQ(decoder->cache_bytes(), 0);
  const std::int64_t one = decoder->begin(random_ids(1000, 256, 7), {.new_tokens = 5000}).sequence;
  // What the first sequence may still take is not there for the second, until it and its forks are gone.
  EXPECT_THROW(decoder->begin(random_ids(1000, 256, 7), {.new_tokens = 5000}), InputError);
  const std::int64_t fork = decoder->fork(one);
  decoder->drop(one);
  EXPECT_THROW(decoder->begin(random_ids(1000, 256, 7), {.new_tokens = 5000}), InputError);
  decoder->drop(fork);
  for (int i = 0; i < 3; ++i) decoder->drop(decoder->begin(random_ids(1000, 256, 7), {.new_tokens = 5000}).sequence);
  EXPECT_THROW(decoder->begin(Ids{1}, {.new_tokens = std::int64_t{1} << 62}), InputError);
  // A fork copies lists: 16 bytes per token and full head.
  EXPECT_NO_THROW(decoder->drop(decoder->begin(random_ids(4000, 256, 7), {.forks = 4}).sequence));
  EXPECT_THROW(decoder->begin(random_ids(4000, 256, 7), {.forks = 6}), InputError);
}

TEST(Decoder, MemoryOfASourceIsLookedForToo) {
  ExperimentConfig config = small_pairs_experiment("full");
  config.model.positions = PositionKind::sinusoidal;
  const auto decoder =
      make_decoder(EncoderDecoder(config, at::TensorOptions().dtype(at::kFloat)).ptr(), {.memory_limit = 1 << 20});
  EXPECT_NO_THROW(decoder->drop(decoder->begin(random_ids(100, 40, 7)).sequence));
  // Two layers, four full heads of cross-attention: 416 bytes per token of the source.
  EXPECT_THROW(decoder->begin(random_ids(4000, 40, 7)), InputError);
}

TEST(Decoder, ASequenceTakesOneTokenAStep) {
  for (const char* content : {"routing", "random"}) {
    const auto decoder = make_decoder(text_model(small_experiment(content)));
    const std::int64_t one = decoder->begin(Ids{1, 2}).sequence;
    EXPECT_THROW(decoder->step(std::vector<std::int64_t>{one, one}, Ids{3, 4}), InputError);
    EXPECT_THROW(decoder->step(std::vector<std::int64_t>{one}, Ids{3, 4}), InputError);
  }
}

TEST(Decoder, LongPromptsTellHowFarTheyAre) {
  std::vector<std::pair<std::int64_t, std::int64_t>> seen;
  const auto decoder =
      make_decoder(text_model(small_experiment("local")),
                   {.prefill_block = 20, .progress = [&](auto done, auto all) { seen.emplace_back(done, all); }});
  decoder->begin(random_ids(49, 256, 8));
  EXPECT_EQ(seen, (std::vector<std::pair<std::int64_t, std::int64_t>>{{20, 50}, {40, 50}, {50, 50}}));
}

TEST(Decoder, MemoryDoesNotGrowWithTheTextWhereHeadsHaveWindows) {
  const auto decoder = make_decoder(text_model(small_experiment("routing")), {.prefill_block = 64});
  const std::int64_t first = decoder->begin(random_ids(500, 256, 9)).sequence;
  const std::int64_t bytes = decoder->cache_bytes();
  decoder->drop(first);
  decoder->begin(random_ids(5000, 256, 9));
  EXPECT_EQ(decoder->cache_bytes(), bytes);
}

TEST(Decoder, TheModelsWeightsStayPackedFromTokenToToken) {
  const std::size_t limit = packed_weights_limit();
  set_packed_weights_limit(1000);
  const auto model = text_model(small_experiment("routing"));
  const auto decoder = make_decoder(model);
  EXPECT_GE(packed_weights_limit(), static_cast<std::size_t>(model->num_parameters()) * 4);
  const std::int64_t sequence = decoder->begin(Ids{1, 2}).sequence;
  const PackedWeightsState before = packed_weights_state();
  EXPECT_GE(before.entries, 2U * 6U + 1U) << "all matrices of both layers and the output";
  decoder->step(std::vector<std::int64_t>{sequence}, Ids{3});
  EXPECT_EQ(packed_weights_state().entries, before.entries);
  EXPECT_EQ(packed_weights_state().bytes, before.bytes);
  set_packed_weights_limit(limit);
}

TEST(Decoder, ImagesEnd) {
  ExperimentConfig config = small_experiment("routing");
  config.model.image_height = config.model.image_width = 3;
  config.train.sequence_length = 27;
  config.patterns.local.relative = RelativePosition::none;
  const auto decoder = make_decoder(text_model(config));
  EXPECT_EQ(decoder->longest_sequence(), 27);
  EXPECT_NO_THROW(decoder->begin(random_ids(26, 256, 1)));
  EXPECT_EQ(message_of<InputError>([&] { decoder->begin(random_ids(27, 256, 1)); }),
            "a prompt of 27 tokens, but sequences of this model end after 27; give fewer, so that there is something "
            "left to predict");
}

TEST(Decoder, EncoderDecodersBeginWithTheirSource) {
  for (const ContentCase& each : pairs_cases()) {
    const std::shared_ptr<EncoderDecoderImpl> model =
        EncoderDecoder(each.config, at::TensorOptions().dtype(at::kFloat)).ptr();
    const auto decoder = make_decoder(model);
    EXPECT_TRUE(decoder->reads_source());
    EXPECT_THROW(decoder->begin({}), InputError);
    const Ids source = random_ids(20, 40, 10);
    const at::NoGradGuard no_gradient;
    at::Tensor sources = at::empty({1, 20}, at::kLong);
    std::copy(source.begin(), source.end(), sources.data_ptr<std::int64_t>());
    const auto expected = [&](const std::vector<std::int64_t>& target) {
      at::Tensor targets = at::zeros({1, static_cast<std::int64_t>(target.size()) + 1}, at::kLong);
      std::copy(target.begin(), target.end(), targets.data_ptr<std::int64_t>());
      return model->logits({.tokens = targets, .source = sources}, {})[0][targets.size(1) - 1];
    };
    const Decoder::Begun begun = decoder->begin(source);
    EXPECT_TRUE(equals(begun.logits, expected({}))) << each.name;
    const std::int64_t fork = decoder->fork(begun.sequence);
    const at::Tensor logits = decoder->step(std::vector<std::int64_t>{begun.sequence, fork}, Ids{5, 6});
    EXPECT_TRUE(at::equal(logits[0], expected({5}))) << each.name;
    EXPECT_TRUE(at::equal(logits[1], expected({6}))) << each.name;
  }
}

}  // namespace
}  // namespace routing::decoder_test
