// Images made smaller by a whole number.
#pragma once

#include "routing/data/images/image.h"
#include "routing/data/sources/source.h"

#include <cstdint>
#include <memory>
#include <span>

namespace routing {

// Every pixel becomes the mean of a square of factor x factor pixels, each channel on its own, rounded to the nearest
// whole number (halves up):
//
//   small[y][x][c] = floor((sum over i, j < factor of large[factor * y + i][factor * x + j][c] + factor² / 2) /
//   factor²)
//
// Throws  InputError  the factor is below 1 or does not divide height and width, or the values do not fit the shape
Image shrink_image(std::span<const std::uint8_t> values, const ImageShape& shape, std::int64_t factor);

// The source with its images shrunk to image_size x image_size; the source itself if image_size is 0 or already its
// height. Facts and order are those of the source.
//
// Throws  ConfigError  the images are not square, or image_size does not divide their height
std::unique_ptr<ImageSource> shrink_images(std::unique_ptr<ImageSource> source, std::int64_t image_size);

}  // namespace routing
