// A prompt that ranks read together, a piece each: the last one has what one process has, bit for bit, and goes on.
#include "distributed/rank_threads.h"
#include "routing/distributed/rank_pieces.h"
#include "routing/generation/decoder.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::split_prompt_test {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::size_t kPrompt = 71;
constexpr std::size_t kMore = 6;

std::shared_ptr<SequenceModel> model_of(const ExperimentConfig& config) {
  return Transformer(config, at::TensorOptions().dtype(at::kFloat)).ptr();
}

// What a model says after a prompt and after each of the next tokens.
std::vector<Ids> said(Decoder& decoder, const Ids& text) {
  const auto bits = [](const float* numbers, std::size_t count) {
    const auto* words = reinterpret_cast<const std::int32_t*>(numbers);
    return Ids(words, words + count);
  };
  const std::span<const std::int32_t> tokens = text;
  const Decoder::Begun begun = decoder.begin(tokens.first(kPrompt));
  std::vector<Ids> all{bits(begun.logits.data(), begun.logits.size())};
  for (std::size_t i = kPrompt; i < text.size() && !begun.logits.empty(); ++i) {
    const at::Tensor row = decoder.step(std::vector<std::int64_t>{begun.sequence}, tokens.subspan(i, 1)).contiguous();
    all.push_back(bits(row.data_ptr<float>(), static_cast<std::size_t>(row.numel())));
  }
  decoder.drop(begun.sequence);
  return all;
}

TEST(SplitPrompts, GoOnFromTheLastRankWithTheBitsOfOneProcess) {
  for (const ContentCase& each : content_cases()) {
    if (!model_of(each.config)->reason_against_cache().empty()) continue;
    const at::Tensor drawn = random_tokens(1, kPrompt + kMore, each.config.model.vocab_size, 3).to(at::kInt);
    const Ids text(drawn.data_ptr<std::int32_t>(), drawn.data_ptr<std::int32_t>() + drawn.numel());
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const std::vector<Ids> whole = said(*make_decoder(model_of(each.config), {.precision = precision}), text);
      for (const int ranks : {1, 2, 4}) {
        as_ranks(ranks, [&](const Group& group) {
          RankPieces pieces(*group);
          const auto decoder = make_decoder(model_of(each.config), {.precision = precision, .pieces = &pieces});
          const std::vector<Ids> own = said(*decoder, text);
          if (group->rank() + 1 == ranks) {
            EXPECT_TRUE(own == whole) << each.name << " over " << ranks;
          } else {
            EXPECT_EQ(own, std::vector<Ids>{Ids{}}) << "nothing is known before the last piece";
          }
        });
      }
    }
  }
}

TEST(SplitPrompts, NeedACacheAndATokenForEachRank) {
  OneRank alone;
  RankPieces pieces(alone);
  const auto reason_of = [&](const ExperimentConfig& config, bool allow_cache) {
    return message_of<ConfigError>(
        [&] { make_decoder(model_of(config), {.allow_cache = allow_cache, .pieces = &pieces}); });
  };
  EXPECT_NE(reason_of(small_experiment("random"), true).find("cannot be split over ranks: "), std::string::npos);
  EXPECT_NE(reason_of(small_experiment("local"), false).find("a cache was not wanted"), std::string::npos);
  as_ranks(3, [&](const Group& group) {
    RankPieces of_three(*group);
    const auto decoder = make_decoder(model_of(small_experiment("local")), {.pieces = &of_three});
    EXPECT_EQ(message_of<InputError>([&] { decoder->begin(Ids{1}); }),
              "a prompt of 1 tokens for 3 ranks; give a longer one, or start fewer ranks");
  });
}

}  // namespace
}  // namespace routing::split_prompt_test
