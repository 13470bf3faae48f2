#include "routing/data/images/shrunk_images.h"

#include "data/images/image_files.h"
#include "routing/core/error.h"
#include "routing/data/images/cifar10.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

namespace routing::shrunk_images_test {
namespace {

// Two images of one part.
class TwoImages : public ImageSource {
 public:
  explicit TwoImages(ImageShape shape) : shape_(shape) {
    facts_ = {.format = "images", .parts = {{.name = "train", .files = {"somewhere"}}}, .missing = "much"};
  }
  const SourceFacts& facts() const override { return facts_; }
  ImageShape shape() const override { return shape_; }
  std::int64_t images(std::string_view) const override { return 2; }
  void read(std::string_view, const ImageSink& sink) const override {
    for (const std::uint8_t value : Values{8, 9}) sink(Values(static_cast<std::size_t>(shape_.values()), value));
  }

 private:
  SourceFacts facts_;
  ImageShape shape_;
};

TEST(ShrunkImages, MeansAreRoundedToTheNearestWithHalvesUp) {
  // Reds 1, 2, 3, 4 have the mean 2.5, greens 0, 0, 0, 1 have 0.25, blues 255 stay.
  const Values square{1, 0, 255, 2, 0, 255, 3, 0, 255, 4, 1, 255};
  const Image small = shrink_image(square, {.height = 2, .width = 2}, 2);
  EXPECT_EQ(small.shape, (ImageShape{.height = 1, .width = 1}));
  EXPECT_EQ(small.values, (Values{3, 0, 255}));
}

TEST(ShrunkImages, EveryPixelTakesItsOwnSquare) {
  // Two rows of four pixels become one of two.
  const Values wide{10, 0, 0, 20, 0, 0, 50, 1, 0, 60, 1, 0,  //
                    30, 0, 0, 40, 0, 0, 70, 1, 0, 80, 1, 4};
  const Image small = shrink_image(wide, {.height = 2, .width = 4}, 2);
  EXPECT_EQ(small.shape, (ImageShape{.height = 1, .width = 2}));
  EXPECT_EQ(small.values, (Values{25, 0, 0, 65, 1, 1}));
}

TEST(ShrunkImages, FactorOneChangesNothing) {
  const Values values{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(shrink_image(values, {.height = 1, .width = 2}, 1).values, values);
}

TEST(ShrunkImages, FactorsAndValuesThatDoNotFitAreRefused) {
  const Values values(18);
  EXPECT_EQ(message_of<InputError>([&] { shrink_image(values, {.height = 2, .width = 3}, 2); }),
            "an image of 2 x 3 pixels cannot be shrunk by 2; give a factor that divides both");
  EXPECT_EQ(message_of<InputError>([&] { shrink_image(values, {.height = 2, .width = 3}, 0); }),
            "an image of 2 x 3 pixels cannot be shrunk by 0; give a factor that divides both");
  EXPECT_EQ(message_of<InputError>([&] { shrink_image(values, {.height = 2, .width = 2}, 2); }),
            "an image of 2 x 2 pixels has 12 values, but 18 were given");
}

TEST(ShrunkImages, SourceGivesSmallImagesAndTheFactsOfTheLargeOnes) {
  const auto source = shrink_images(std::make_unique<TwoImages>(ImageShape{.height = 6, .width = 6}), 2);
  EXPECT_EQ(source->shape(), (ImageShape{.height = 2, .width = 2}));
  EXPECT_EQ(source->images("train"), 2);
  EXPECT_EQ(source->facts().missing, "much");
  EXPECT_EQ(all_images(*source, "train"), (std::vector{Values(12, 8), Values(12, 9)}));
}

TEST(ShrunkImages, SizeZeroAndTheSameSizeLeaveTheSourceAsItIs) {
  for (const std::int64_t size : {0, 6}) {
    auto source = std::make_unique<TwoImages>(ImageShape{.height = 6, .width = 6});
    const ImageSource* const before = source.get();
    EXPECT_EQ(shrink_images(std::move(source), size).get(), before);
  }
}

TEST(ShrunkImages, SizesThatDoNotDivideAreRefusedWithThoseThatDo) {
  const auto message = [](ImageShape shape, std::int64_t size) {
    return message_of<ConfigError>([&] { shrink_images(std::make_unique<TwoImages>(shape), size); });
  };
  const std::string rest =
      ", but the images are 32 x 32 pixels and are shrunk by whole numbers only; set it to one of 1, 2, 4, 8, 16, 32, "
      "or "
      "to 0 to leave them as they are";
  EXPECT_EQ(message({.height = 32, .width = 32}, 12), "data.image_size is 12" + rest);
  EXPECT_EQ(message({.height = 32, .width = 32}, 64), "data.image_size is 64" + rest);
  EXPECT_EQ(message({.height = 32, .width = 32}, -2), "data.image_size is -2" + rest);
  EXPECT_EQ(
      message({.height = 32, .width = 48}, 16),
      "data.image_size is 16, but the images are 32 x 48 pixels (height x width) and only square ones are shrunk; "
      "set it to 0, or make the images square");
}

TEST(ShrunkImages, RealBatchAtSixteenHasTheChecksumOfNumpy) {
  const auto data = real_images("cifar10");
  if (data.empty()) GTEST_SKIP() << "cifar10 is not in ROUTING_TEST_DATA";
  EXPECT_EQ(checksum(*shrink_images(open_cifar10(data), 16), "train"), 0x4feacc91U);
}

}  // namespace
}  // namespace routing::shrunk_images_test
