#include "routing/generation/image_sheet.h"

#include "routing/core/error.h"
#include "routing/data/images/png_image.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::image_sheet_test {
namespace {

// An image of one colour: red, green and blue are all the letter.
Image tile(char letter, std::int64_t height = 1, std::int64_t width = 1) {
  Image image{.shape = {.height = height, .width = width}, .values = {}};
  image.values.assign(static_cast<std::size_t>(image.shape.values()), static_cast<std::uint8_t>(letter));
  return image;
}

std::vector<Image> tiles(const std::string& letters) {
  std::vector<Image> images;
  for (const char letter : letters) images.push_back(tile(letter));
  return images;
}

// One letter per pixel, one line per row; the background of these tests is a point.
std::vector<std::string> drawn(const Image& sheet) {
  std::vector<std::string> rows(static_cast<std::size_t>(sheet.shape.height));
  for (std::size_t at = 0; at < sheet.values.size(); at += 3) {
    EXPECT_EQ(sheet.values[at], sheet.values[at + 1]);
    EXPECT_EQ(sheet.values[at], sheet.values[at + 2]);
    rows[at / 3 / static_cast<std::size_t>(sheet.shape.width)] += static_cast<char>(sheet.values[at]);
  }
  return rows;
}

using Rows = std::vector<std::string>;

TEST(ContactSheet, HandWorkedGridWithMarginAndMagnification) {
  SheetOptions options{.columns = 2, .magnification = 2, .margin = 1, .background = {'.', '.', '.'}};
  EXPECT_EQ(drawn(contact_sheet(tiles("abc"), options)), (Rows{".......",  //
                                                               ".aa.bb.",  //
                                                               ".aa.bb.",  //
                                                               ".......",  //
                                                               ".cc....",  //
                                                               ".cc....",  //
                                                               "......."}));
  options = {.columns = 9, .magnification = 1, .margin = 0, .background = {'.', '.', '.'}};
  EXPECT_EQ(drawn(contact_sheet(tiles("abc"), options)), (Rows{"abc"}));
}

// Rows and columns, and channels, are not swapped.
TEST(ContactSheet, PixelsKeepTheirPlacesAndColours) {
  const Image image{.shape = {.height = 2, .width = 3},
                    .values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}};
  EXPECT_EQ(contact_sheet(std::vector<Image>{image}, {.magnification = 1, .margin = 0}), image);
  const Image doubled = contact_sheet(std::vector<Image>{image}, {.magnification = 2, .margin = 0});
  EXPECT_EQ(doubled.shape, (ImageShape{.height = 4, .width = 6}));
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 6; ++column) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        EXPECT_EQ(doubled.values[3 * (6 * row + column) + channel], 1 + 9 * (row / 2) + 3 * (column / 2) + channel);
      }
    }
  }
  const Image framed =
      contact_sheet(std::vector<Image>{tile(0)}, {.magnification = 1, .margin = 1, .background = {1, 2, 3}});
  EXPECT_EQ(framed.values, (std::vector<std::uint8_t>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 0, 0, 0,  //
                                                      1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(ContactSheet, GroupsStaySideBySide) {
  const SheetOptions options{
      .group = 3, .columns = 2, .magnification = 1, .margin = 2, .gap = 1, .background = {'.', '.', '.'}};
  EXPECT_EQ(drawn(contact_sheet(tiles("abcdefghi"), options)), (Rows{"................",  //
                                                                     "................",  //
                                                                     "..a.b.c..d.e.f..",  //
                                                                     "................",  //
                                                                     "................",  //
                                                                     "..g.h.i.........",  //
                                                                     "................",  //
                                                                     "................"}));
}

TEST(ContactSheet, IsNearlySquareUnlessToldOtherwise) {
  const auto shape_of = [](std::size_t count, std::int64_t group) {
    const SheetOptions options{.group = group, .magnification = 1, .margin = 0, .gap = 0};
    return contact_sheet(std::vector<Image>(count, tile('x')), options).shape;
  };
  EXPECT_EQ(shape_of(1, 1), (ImageShape{.height = 1, .width = 1}));
  EXPECT_EQ(shape_of(2, 1), (ImageShape{.height = 1, .width = 2}));
  EXPECT_EQ(shape_of(5, 1), (ImageShape{.height = 2, .width = 3}));
  EXPECT_EQ(shape_of(16, 1), (ImageShape{.height = 4, .width = 4}));
  EXPECT_EQ(shape_of(17, 1), (ImageShape{.height = 4, .width = 5}));
  EXPECT_EQ(shape_of(12, 3), (ImageShape{.height = 4, .width = 3}));  // four triples below each other
  EXPECT_EQ(shape_of(36, 3), (ImageShape{.height = 6, .width = 6}));
  // The default: 32 x 32 pixels are seen as 128 x 128, with 8 around.
  EXPECT_EQ(contact_sheet(std::vector<Image>(4, tile('x', 32, 32))).shape, (ImageShape{.height = 280, .width = 280}));
}

TEST(ContactSheet, SurvivesTheWayThroughAFile) {
  const TemporaryFolder folder;
  const Image sheet = contact_sheet(tiles("abcdef"));
  write_png(folder / "sheet.png", sheet);
  EXPECT_EQ(read_png(folder / "sheet.png"), sheet);
}

TEST(ContactSheet, WhatCannotBeASheetIsRefusedWithBothNumbers) {
  const auto message = [](const std::vector<Image>& images, const SheetOptions& options) {
    return message_of<InputError>([&] { contact_sheet(images, options); });
  };
  EXPECT_NE(message({}, {}).find("no images"), std::string::npos);
  EXPECT_NE(message({tile('a', 2, 3), tile('b', 3, 2)}, {})
                .find("image 2 of 2 has 3 x 2 pixels, but the first one has 2 x 3"),
            std::string::npos);
  EXPECT_NE(
      message({{.shape = {.height = 1, .width = 1}, .values = {1}}}, {}).find("has 1 values, but 1 x 1 pixels have 3"),
      std::string::npos);
  EXPECT_NE(message(tiles("abcd"), {.group = 3}).find("4 images cannot be put together in groups of 3"),
            std::string::npos);
  EXPECT_NE(message(std::vector<Image>(3, tile('a', 32, 32)), {.columns = 1, .magnification = 100})
                .find("would have 9632 x 3216 pixels, but 8192"),
            std::string::npos);
  EXPECT_NE(message({Image{}}, {}).find("images of 0 x 0 pixels"), std::string::npos);
}

TEST(ContactSheet, OptionsOutOfRangeAreRefusedByName) {
  const auto message = [](const SheetOptions& options) {
    return message_of<ConfigError>([&] { contact_sheet(tiles("a"), options); });
  };
  EXPECT_NE(message({.group = 0}).find("group is 0, but 1 to"), std::string::npos);
  EXPECT_NE(message({.columns = -1}).find("columns is -1, but 0 to"), std::string::npos);
  EXPECT_NE(message({.magnification = 0}).find("magnification is 0, but 1 to 256"), std::string::npos);
  EXPECT_NE(message({.margin = -1}).find("margin is -1, but 0 to"), std::string::npos);
  EXPECT_NE(message({.gap = 5000}).find("gap is 5000, but 0 to 1024"), std::string::npos);
}

TEST(SheetColumns, AreWhereTheImagesBegin) {
  const SheetOptions options{.group = 2, .columns = 2, .magnification = 2, .margin = 3, .gap = 1};
  EXPECT_EQ(sheet_columns(8, {.height = 1, .width = 5}, options), (std::vector<std::int64_t>{3, 14, 27, 38}));
  EXPECT_EQ(sheet_columns(2, {.height = 1, .width = 5}, options), (std::vector<std::int64_t>{3, 14}));
  EXPECT_NE(message_of<InputError>([&] { sheet_columns(3, {.height = 1, .width = 5}, options); }).find("groups of 2"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::image_sheet_test
