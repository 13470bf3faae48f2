// Completed images on one sheet: original, given half and completions side by side, with captions over the columns.
#pragma once

#include "routing/data/images/image.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace routing {

// The images alone if there are no originals; else a group for each original, with `each` of the images made, in
// order. What does not fit a PNG file is shown smaller; of more than fit, the first.
//
// Throws  InputError  no images, or images of different shapes
Image completion_sheet(const std::vector<Image>& originals, const std::vector<Image>& made, std::size_t each);

struct ColumnCaption {
  std::int64_t left = 0;  // pixels of the sheet
  std::int64_t width = 0;
  std::string text = {};
};

// The sheet, untouched, under a strip of kCaptionHeight rows with each caption centred over its column. Captions that
// are too long are written smaller.
inline constexpr std::int64_t kCaptionHeight = 28;
Image with_captions(const Image& sheet, std::span<const ColumnCaption> captions);

}  // namespace routing
