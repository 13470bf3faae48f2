#include "routing/data/image.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <vector>

namespace routing {
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

TEST(ImageParts, AreFoundByNameOrRefused) {
  const SourceFacts facts{
      .format = "images", .parts = {{.name = "train", .files = {}}, {.name = "test", .files = {}}}, .missing = ""};
  EXPECT_EQ(&require_part(facts, "test"), &facts.parts[1]);
  EXPECT_EQ(message_of<InputError>([&] { require_part(facts, "valid"); }),
            "the part \"valid\" is not in these images data, which have train, test; ask for one of those");
}

TEST(ImageParts, ListsLeaveOutWhatIsEmpty) {
  EXPECT_EQ(joined({"", "a", "", "b", ""}), "a, b");
  EXPECT_EQ(joined({}), "");
}

TEST(ImageParts, WhatIsNoFolderIsNotOne) {
  EXPECT_TRUE(is_there("/dev/null"));
  EXPECT_FALSE(is_folder("/dev/null"));
  EXPECT_TRUE(is_folder("/"));
  EXPECT_FALSE(is_there("/dev/null/below"));
  EXPECT_FALSE(is_folder("/dev/null/below"));
}

}  // namespace
}  // namespace routing
