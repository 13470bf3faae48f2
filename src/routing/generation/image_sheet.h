// Many small images on one sheet, to be looked at.
#pragma once

#include "routing/data/images/image.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace routing {

struct SheetOptions {
  // Images that belong together and stay side by side: 3 for original, given half and completion.
  std::int64_t group = 1;
  // Groups in a row; 0 for as many as make the sheet's longer side shortest, the wider sheet among equals.
  std::int64_t columns = 0;
  std::int64_t magnification = 4;  // each pixel becomes a square of so many
  std::int64_t margin = 8;         // pixels between groups and around them
  std::int64_t gap = 2;            // pixels between the images of a group
  std::array<std::uint8_t, 3> background{255, 255, 255};
};

// The images row by row, from the top left. Places without an image have the background's colour. A row has no more
// groups than there are.
//
//   height  rows x H + (rows + 1) x margin              H = magnification x height of an image
//   width   columns x G + (columns + 1) x margin        G = group x magnification x width + (group - 1) x gap
//
// Throws  ConfigError  options out of range
//         InputError   no images, images of different shapes, values that do not fit a shape, a last group that is not
//                      full, or a sheet larger than a PNG file may be (kLargestPngSide)
Image contact_sheet(std::span<const Image> images, const SheetOptions& options = {});

// Where the columns of images of such a sheet begin, from left to right, in its pixels: of every group in a row, one
// for each of its images. `images` is a multiple of the group, and above 0.
std::vector<std::int64_t> sheet_columns(std::int64_t images, const ImageShape& shape, const SheetOptions& options);

}  // namespace routing
