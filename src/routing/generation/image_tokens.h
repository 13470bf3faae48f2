// Images as the tokens that models of images read and write: the values of red, green and blue of every pixel, row
// after row (model/image_embedding.h). Token i of an image of W columns is channel i mod 3 of the pixel in row i / (3
// W) and column i / 3 mod W.
#pragma once

#include "routing/data/images/image.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace routing {

std::vector<std::int32_t> image_tokens(const Image& image);

// How many tokens the upper half of an image has: those of its first ceil(height / 2) rows.
std::int64_t upper_half_length(const ImageShape& shape);

// The prompt of a completion: the first upper_half_length() tokens.
std::vector<std::int32_t> upper_half_tokens(const Image& image);

// The image of its first tokens; values that have none are `unknown`, a grey unless told otherwise.
//
// Throws  InputError  more tokens than the image has values, a shape without pixels, or a token that is not a value of
//                     0 … 255; the message names its place
Image image_from_tokens(std::span<const std::int32_t> tokens, const ImageShape& shape, std::uint8_t unknown = 128);

// The image of a PNG file that is to be completed by a model of images of this shape.
//
// Throws  FileError  as read_png(), or the image has another size
Image read_png_of_shape(const std::filesystem::path& path, const ImageShape& shape);

}  // namespace routing
