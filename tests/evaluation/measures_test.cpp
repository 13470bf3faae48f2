#include "routing/evaluation/measures.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace routing::measures_test {
namespace {

std::vector<std::string> keys(const std::vector<Measure>& all) {
  std::vector<std::string> names;
  for (const Measure& measure : all) names.push_back(measure.key);
  return names;
}

TEST(Score, IsBitsForBytesAndImagesAndPerplexityForWords) {
  EXPECT_DOUBLE_EQ(score(TokenKind::bytes, std::log(8.0)), 3.0);
  EXPECT_DOUBLE_EQ(score(TokenKind::subpixels, std::log(4.0)), 2.0);
  EXPECT_DOUBLE_EQ(score(TokenKind::words, std::log(20.0)), 20.0);
  EXPECT_DOUBLE_EQ(score(TokenKind::subwords, std::log(5.0)), 5.0);
  EXPECT_EQ(score_unit(TokenKind::bytes).key, "bits_per_byte");
  EXPECT_EQ(score_unit(TokenKind::subpixels).name, "bits/dim");
  EXPECT_EQ(score_unit(TokenKind::words).event, "ppl");
  EXPECT_EQ(score_unit(TokenKind::subwords).key, "perplexity");
}

TEST(Measures, OfBytesAndImagesAreOneNumber) {
  const std::vector<Measure> bytes = measures(TokenKind::bytes, {.nats = 10.0 * std::log(2.0), .tokens = 5});
  EXPECT_EQ(keys(bytes), (std::vector<std::string>{"bits_per_byte"}));
  EXPECT_DOUBLE_EQ(bytes[0].value, 2.0);
  const std::vector<Measure> images = measures(TokenKind::subpixels, {.nats = 9.0 * std::log(2.0), .tokens = 3});
  EXPECT_EQ(keys(images), (std::vector<std::string>{"bits_per_dim"}));
  EXPECT_DOUBLE_EQ(images[0].value, 3.0);
}

TEST(Measures, OfWordsCountLineEndsAndGiveBitsPerByteToo) {
  const std::vector<Measure> all =
      measures(TokenKind::words, {.nats = 100.0 * std::log(2.0), .tokens = 10, .words = 9, .bytes = 50});
  EXPECT_EQ(keys(all), (std::vector<std::string>{"perplexity", "bits_per_byte"}));
  EXPECT_NEAR(all[0].value, 1024.0, 1e-9);
  EXPECT_EQ(all[0].note, "10 words, one end per line among them");
  EXPECT_NEAR(all[1].value, 2.0, 1e-12);
}

TEST(Measures, OfSubwordsAreNormalisedByWords) {
  const ScoredTokens scored{.nats = 20.0 * std::log(3.0), .tokens = 20, .words = 10, .bytes = 40};
  const std::vector<Measure> all = measures(TokenKind::subwords, scored);
  EXPECT_EQ(keys(all), (std::vector<std::string>{"perplexity", "word_perplexity", "bits_per_byte"}));
  EXPECT_NEAR(all[0].value, 3.0, 1e-12);
  EXPECT_NEAR(all[1].value, 9.0, 1e-12) << "twice as many nats per word as per subword";
  EXPECT_EQ(all[1].note, "10 words");
}

TEST(Measures, TheAuthorsRuleTakesTheirRatioAndSaysSo) {
  // docs/facts.md E4: 33.2 per word is 2.8065 nats per subword.
  const std::vector<Measure> all = measures(TokenKind::subwords, {.nats = 2806.5, .tokens = 1000, .words = 1}, 1.248);
  EXPECT_NEAR(all[1].value, 33.2, 0.01);
  EXPECT_EQ(all[1].note, "the authors' rule, 1.248 subwords per word");
}

TEST(Measures, WhatIsNotKnownIsLeftOut) {
  EXPECT_EQ(keys(measures(TokenKind::subwords, {.nats = 1.0, .tokens = 1})), (std::vector<std::string>{"perplexity"}));
  EXPECT_EQ(keys(measures(TokenKind::words, {.nats = 1.0, .tokens = 1})), (std::vector<std::string>{"perplexity"}));
  EXPECT_THROW(measures(TokenKind::bytes, {}), InputError);
}

}  // namespace
}  // namespace routing::measures_test
