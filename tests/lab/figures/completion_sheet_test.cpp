#include "lab/figures/completion_sheet.h"

#include "routing/core/error.h"
#include "routing/generation/image_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace routing::completion_sheet_test {
namespace {

Image plain(std::uint8_t value, std::int64_t side = 32) {
  Image image{.shape = {.height = side, .width = side}, .values = {}};
  image.values.assign(static_cast<std::size_t>(image.shape.values()), value);
  return image;
}

// Whether anything is written in the columns of the strip at the top.
bool has_caption(const Image& sheet, std::int64_t left, std::int64_t width) {
  for (std::int64_t row = 0; row < kCaptionHeight; ++row) {
    for (std::int64_t column = left; column < left + width; ++column) {
      if (sheet.values[static_cast<std::size_t>(3 * (row * sheet.shape.width + column))] < 200) return true;
    }
  }
  return false;
}

TEST(CompletionSheet, EveryColumnOfImagesHasACaptionAndTheImagesStayWhatTheyAre) {
  const std::vector<Image> originals{plain(10), plain(20)};
  const std::vector<Image> made{plain(30), plain(40), plain(50), plain(60)};
  const Image sheet = completion_sheet(originals, made, 2);
  const std::vector<std::int64_t> lefts = sheet_columns(8, originals[0].shape, {.group = 4});
  ASSERT_EQ(lefts.size(), 4U);
  for (const std::int64_t left : lefts) EXPECT_TRUE(has_caption(sheet, left, 128)) << left;
  EXPECT_FALSE(has_caption(sheet, 0, 8)) << "the margin";
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return sheet.values[static_cast<std::size_t>(3 * ((kCaptionHeight + row) * sheet.shape.width + column))];
  };
  EXPECT_EQ(at(9, lefts[0] + 1), 10);
  EXPECT_EQ(at(9, lefts[2] + 1), 30);
  EXPECT_EQ(at(9, lefts[3] + 1), 40);
  EXPECT_EQ(at(8 + 128 + 9, lefts[0] + 1), 20);
}

TEST(CompletionSheet, SmallImagesAreMagnifiedUntilCaptionsCanBeRead) {
  const Image sheet = completion_sheet({plain(1, 8)}, {plain(2, 8)}, 1);
  EXPECT_EQ(sheet.shape.width, 3 * 128 + 2 * 2 + 2 * 8);
}

TEST(CompletionSheet, WithoutOriginalsTheImagesStandAlone) {
  const std::vector<Image> made{plain(1), plain(2)};
  EXPECT_EQ(completion_sheet({}, made, 1), contact_sheet(made));
  EXPECT_THROW(completion_sheet({}, {}, 1), InputError);
}

TEST(CompletionSheet, TooManyForASheetAreShownSmallerThenFewer) {
  std::vector<Image> originals(2000, plain(1, 64));
  const Image sheet = completion_sheet(originals, originals, 1);
  EXPECT_GT(sheet.shape.height, kCaptionHeight);
  EXPECT_TRUE(has_caption(sheet, 0, sheet.shape.width));
}

TEST(WithCaptions, PutsAStripOverTheSheet) {
  const Image sheet = plain(7, 100);
  const std::vector<ColumnCaption> captions{{.left = 50, .width = 50, .text = "right, and much too long for it"}};
  const Image result = with_captions(sheet, captions);
  EXPECT_EQ(result.shape.height, 100 + kCaptionHeight);
  EXPECT_TRUE(std::equal(sheet.values.begin(), sheet.values.end(), result.values.end() - 30000));
  EXPECT_TRUE(has_caption(result, 50, 50));
  EXPECT_FALSE(has_caption(result, 0, 49));
}

}  // namespace
}  // namespace routing::completion_sheet_test
