// The text of a choice and its tokens, while they come.
#include "serve/request/choice_text.h"

#include "routing/data/tokenizers/byte_tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace routing::choice_text_test {
namespace {

using Json = nlohmann::ordered_json;

// Every byte is as likely as the others, but for 'e', which is the likeliest.
std::vector<float> logits() {
  std::vector<float> all(256, 0.0F);
  all['e'] = 1.0F;
  return all;
}

TokenDraw draw_of(char byte) {
  const auto token = static_cast<std::int32_t>(static_cast<unsigned char>(byte));
  return {.token = token, .log_probability = log_probability(logits(), token)};
}

// What comes with each byte of the text, then with its end.
std::vector<ChoiceText::Piece> pieces_of(const std::string& text, const ChoiceText::Options& options) {
  const ByteTokenizer tokenizer;
  ChoiceText choice(tokenizer, options);
  std::vector<ChoiceText::Piece> pieces;
  for (const char byte : text) {
    const bool goes_on = choice.add(draw_of(byte), logits());
    pieces.push_back(choice.take());
    if (!goes_on) return pieces;
  }
  choice.finish();
  pieces.push_back(choice.take());
  return pieces;
}

TEST(ChoiceText, TokensComeWithTheirText) {
  const auto pieces = pieces_of("ab", {.logprobs = 1});
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].text, "a");
  EXPECT_EQ(pieces[0].logprobs["tokens"], Json({"a"}));
  EXPECT_EQ(pieces[0].logprobs["token_ids"], Json({97}));
  EXPECT_EQ(pieces[0].logprobs["text_offset"], Json({0}));
  EXPECT_EQ(pieces[0].logprobs["top_ids"], Json::array({Json({101})}));
  const double sum = std::log(255.0 + std::exp(1.0));
  EXPECT_NEAR(pieces[0].logprobs["token_logprobs"][0].get<double>(), -sum, 1e-12);
  // The likeliest, and the one that was taken.
  EXPECT_EQ(pieces[0].logprobs["top_logprobs"][0].size(), 2U);
  EXPECT_NEAR(pieces[0].logprobs["top_logprobs"][0]["e"].get<double>(), 1.0 - sum, 1e-12);
  EXPECT_EQ(pieces[1].logprobs["text_offset"], Json({1}));
  EXPECT_EQ(pieces[2].text, "");
  EXPECT_TRUE(pieces[2].logprobs.is_null());
}

TEST(ChoiceText, WithoutLogprobsThereAreNone) {
  for (const auto& piece : pieces_of("abc", {})) EXPECT_TRUE(piece.logprobs.is_null());
}

TEST(ChoiceText, HalfACharacterWaitsWithItsToken) {
  const auto pieces = pieces_of("x\xc3\xa9y", {.logprobs = 0, .characters = 10});
  ASSERT_EQ(pieces.size(), 5U);
  EXPECT_EQ(pieces[1].text, "");
  EXPECT_TRUE(pieces[1].logprobs.is_null());
  EXPECT_EQ(pieces[2].text, "\xc3\xa9");
  EXPECT_EQ(pieces[2].logprobs["tokens"], Json({"bytes:\\xc3", "bytes:\\xa9"}));
  // Characters, and the second byte stands where its character does.
  EXPECT_EQ(pieces[2].logprobs["text_offset"], Json({11, 11}));
  EXPECT_EQ(pieces[3].logprobs["text_offset"], Json({12}));
}

TEST(ChoiceText, TokensOfAStopTextAreNeverGivenOut) {
  const auto pieces = pieces_of("ab##c", {.stops = {"##"}, .logprobs = 0});
  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(pieces[2].text, "");
  EXPECT_TRUE(pieces[2].logprobs.is_null());
  EXPECT_EQ(pieces[3].text, "");
  EXPECT_TRUE(pieces[3].logprobs.is_null());
}

TEST(ChoiceText, BeginningOfAStopTextComesWhenItIsNone) {
  const auto pieces = pieces_of("a#b", {.stops = {"##"}, .logprobs = 0});
  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(pieces[1].text, "");
  EXPECT_EQ(pieces[2].text, "#b");
  EXPECT_EQ(pieces[2].logprobs["tokens"], Json({"#", "b"}));
  const auto at_end = pieces_of("a#", {.stops = {"##"}, .logprobs = 0});
  EXPECT_EQ(at_end.back().text, "#");
  EXPECT_EQ(at_end.back().logprobs["tokens"], Json({"#"}));
}

TEST(ChoiceText, AllPiecesTogetherAreTheText) {
  const std::string text = "na\xc3\xafve \xe2\x82\xac#1 \xf0\x9f\x98\x80 end";
  std::string all;
  std::size_t tokens = 0;
  for (const auto& piece : pieces_of(text, {.stops = {"#2"}, .logprobs = 2})) {
    all += piece.text;
    if (!piece.logprobs.is_null()) tokens += piece.logprobs["tokens"].size();
  }
  EXPECT_EQ(all, text);
  EXPECT_EQ(tokens, text.size());
}

TEST(ChoiceText, CharactersAreCodePoints) {
  EXPECT_EQ(count_characters(""), 0U);
  EXPECT_EQ(count_characters("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), 4U);
}

}  // namespace
}  // namespace routing::choice_text_test
