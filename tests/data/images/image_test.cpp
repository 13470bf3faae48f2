#include "routing/data/images/image.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <vector>

namespace routing::image_test {
namespace {

using Values = std::vector<std::uint8_t>;

TEST(ImageOrders, TwoPixelsHandWorked) {
  const Values planar{1, 2, 11, 12, 21, 22};
  const Values raster{1, 11, 21, 2, 12, 22};
  Values found(6);
  raster_from_planar(planar, found);
  EXPECT_EQ(found, raster);
  planar_from_raster(raster, found);
  EXPECT_EQ(found, planar);
}

TEST(ImageOrders, SpansThatDoNotFitAreRefused) {
  const Values six(6);
  Values three(3);
  Values four(4);
  EXPECT_EQ(message_of<InputError>([&] { raster_from_planar(six, three); }),
            "an image of 6 values cannot become one of 3; give two spans of one length, a multiple of 3");
  EXPECT_EQ(message_of<InputError>([&] { planar_from_raster(four, four); }),
            "an image of 4 values cannot become one of 4; give two spans of one length, a multiple of 3");
}

TEST(ImageShapes, AreWrittenHeightFirst) {
  EXPECT_EQ(to_string({.height = 32, .width = 48}), "32 x 48");
}

}  // namespace
}  // namespace routing::image_test
