#include "routing/generation/image_tokens.h"

#include "routing/core/error.h"
#include "routing/data/images/png_image.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace routing::image_tokens_test {
namespace {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::uint8_t>;

Image counting_image(std::int64_t height, std::int64_t width) {
  Image image{.shape = {.height = height, .width = width}, .values = {}};
  image.values.resize(static_cast<std::size_t>(image.shape.values()));
  std::iota(image.values.begin(), image.values.end(), std::uint8_t{1});
  return image;
}

TEST(ImageTokens, AreTheValuesInRasterOrder) {
  // Two rows of two pixels: red, green; blue, white.
  const Image image{.shape = {.height = 2, .width = 2}, .values = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}};
  EXPECT_EQ(image_tokens(image), (Ids{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}));
  EXPECT_EQ(image_from_tokens(image_tokens(image), image.shape), image);
}

TEST(ImageTokens, UpperHalfHasTheMiddleRowOfAnOddNumber) {
  EXPECT_EQ(upper_half_tokens(counting_image(2, 1)), (Ids{1, 2, 3}));
  EXPECT_EQ(upper_half_tokens(counting_image(3, 1)), (Ids{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(upper_half_tokens(counting_image(1, 2)), (Ids{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(upper_half_length({.height = 32, .width = 32}), 1536);
  EXPECT_EQ(upper_half_length({.height = 5, .width = 2}), 18);
  EXPECT_EQ(upper_half_tokens(counting_image(5, 2)).size(), 18U);
}

TEST(ImageTokens, FewerTokensLeaveTheRestUnknown) {
  EXPECT_EQ(image_from_tokens(Ids{9, 8, 7, 6}, {.height = 2, .width = 1}).values, (Values{9, 8, 7, 6, 128, 128}));
  EXPECT_EQ(image_from_tokens(Ids{}, {.height = 1, .width = 1}, 3).values, (Values{3, 3, 3}));
  const Image image = counting_image(4, 3);
  const Image half = image_from_tokens(upper_half_tokens(image), image.shape, 0);
  EXPECT_EQ(Values(half.values.begin(), half.values.begin() + 18),
            Values(image.values.begin(), image.values.begin() + 18));
  EXPECT_EQ(Values(half.values.begin() + 18, half.values.end()), Values(18, 0));
}

TEST(ImageTokens, TokensAndValuesThatDoNotFitAreRefused) {
  const ImageShape pixel{.height = 1, .width = 1};
  EXPECT_NE(message_of<InputError>([&] {
              image_from_tokens(Ids{0, 255, 256}, pixel);
            }).find("token 2 of the image is 256, but values of pixels are 0 to 255"),
            std::string::npos);
  EXPECT_THROW(image_from_tokens(Ids{-1}, pixel), InputError);
  EXPECT_NE(message_of<InputError>([&] {
              image_from_tokens(Ids{1, 2, 3, 4}, pixel);
            }).find("4 tokens are too many for an image of 1 x 1 pixels, which has 3"),
            std::string::npos);
  EXPECT_THROW(image_from_tokens(Ids{}, {.height = 0, .width = 4}), InputError);
  EXPECT_THROW(image_tokens({.shape = pixel, .values = {1, 2}}), InputError);
  EXPECT_THROW(upper_half_tokens({.shape = pixel, .values = {1, 2, 3, 4}}), InputError);
}

TEST(ImageTokens, FilesOfAnotherSizeAreRefusedWithBothSizes) {
  const TemporaryFolder folder;
  const Image image = counting_image(3, 5);
  write_png(folder / "a.png", image);
  EXPECT_EQ(read_png_of_shape(folder / "a.png", image.shape), image);
  const std::string message =
      message_of<FileError>([&] { read_png_of_shape(folder / "a.png", {.height = 5, .width = 3}); });
  EXPECT_NE(message.find("a.png: the image has 3 x 5 pixels, but the model makes images of 5 x 3"), std::string::npos)
      << message;
  EXPECT_THROW(read_png_of_shape(folder / "none.png", image.shape), FileError);
}

}  // namespace
}  // namespace routing::image_tokens_test
