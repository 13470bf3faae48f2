#include "routing/config/text/vocabulary_bands.h"

#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace routing::vocabulary_bands_test {
namespace {

using Bands = std::vector<VocabularyBand>;

TEST(ParseBands, AreAscendingIdsBetweenCommas) {
  EXPECT_EQ(parse_bands(""), std::vector<std::int64_t>{});
  EXPECT_EQ(parse_bands("20000"), std::vector<std::int64_t>{20000});
  EXPECT_EQ(parse_bands("20000, 60000"), (std::vector<std::int64_t>{20000, 60000}));
}

TEST(ParseBands, NameTheFirstNumberThatIsWrong) {
  const std::string rule = "; write the ids where bands end, such as 20000,60000";
  EXPECT_EQ(refusal_of([] { parse_bands("20k"); }), "model.bands: '20k' of '20k' is not a whole number above 0" + rule);
  EXPECT_EQ(refusal_of([] { parse_bands("5,,9"); }), "model.bands: '' of '5,,9' is not a whole number above 0" + rule);
  EXPECT_EQ(refusal_of([] { parse_bands("0,9"); }), "model.bands: '0' of '0,9' is not a whole number above 0" + rule);
  EXPECT_EQ(refusal_of([] { parse_bands("9,"); }), "model.bands: '' of '9,' is not a whole number above 0" + rule);
  EXPECT_EQ(refusal_of([] { parse_bands("5,9,9"); }),
            "model.bands: 9 of '5,9,9' stands after 9; write the ids where bands end in ascending order");
}

// The cuts of Baevski & Auli's code: 20,000, 40,000 and the rest of 267,735 words, 1024, 256 and 64 numbers.
TEST(VocabularyBands, OfWikiText103AreThoseOfThePaper) {
  EXPECT_EQ(vocabulary_bands({.ends = "20000,60000", .vocab_size = 267735, .width = 1024, .factor = 4.0}),
            (Bands{{0, 20000, 1024}, {20000, 40000, 256}, {60000, 207735, 64}}));
}

TEST(VocabularyBands, EmptyMeansTheWholeVocabulary) {
  EXPECT_EQ(vocabulary_bands({.ends = "", .vocab_size = 50, .width = 7}), (Bands{{0, 50, 7}}));
}

TEST(VocabularyBands, WidthsAreRoundedDown) {
  EXPECT_EQ(vocabulary_bands({.ends = "2,3,4", .vocab_size = 5, .width = 30, .factor = 2.5}),
            (Bands{{0, 2, 30}, {2, 1, 12}, {3, 1, 4}, {4, 1, 1}}));
  EXPECT_EQ(vocabulary_bands({.ends = "2", .vocab_size = 5, .width = 8, .factor = 1.0}).back().width, 8);
}

TEST(VocabularyBands, OfAnUnknownVocabularyEndWithABandWithoutWords) {
  EXPECT_EQ(vocabulary_bands({.ends = "2,3", .vocab_size = 0, .width = 16, .factor = 4.0}),
            (Bands{{0, 2, 16}, {2, 1, 4}, {3, 0, 1}}));
}

TEST(VocabularyBands, EveryBandHasAWordAndEveryWordANumber) {
  EXPECT_EQ(refusal_of([] { vocabulary_bands({.ends = "20,60", .vocab_size = 60, .width = 64}); }),
            "model.bands '20,60' end at id 60, but the vocabulary has 60 entries, so that no word is left for the last "
            "band; lower model.bands");
  EXPECT_EQ(
      refusal_of([] { vocabulary_bands({.ends = "20,60", .vocab_size = 61, .width = 15}); }),
      "model.bands '20,60' are 3 bands, but vectors of 15 numbers have none left in band 2 with model.band_factor "
      "4; write fewer bands or lower model.band_factor");
  EXPECT_EQ(refusal_of([] { vocabulary_bands({.ends = "20", .vocab_size = 61, .width = 15, .factor = 0.5}); }),
            "model.band_factor is 0.5, but it must be a finite number of at least 1");
  EXPECT_NE(refusal_of([] {
              vocabulary_bands(
                  {.ends = "20", .vocab_size = 61, .width = 15, .factor = std::numeric_limits<double>::infinity()});
            }),
            "accepted");
}

}  // namespace
}  // namespace routing::vocabulary_bands_test
