// One image in memory, and the two orders in which files keep its values.
#pragma once

#include "routing/data/sources/source.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

struct Image {
  ImageShape shape;
  std::vector<std::uint8_t> values;  // red, green and blue of every pixel, row after row
  friend bool operator==(const Image&, const Image&) = default;
};

// Files of CIFAR-10 and of ImageNet-64 in NumPy's format keep all reds of an image, then all greens, then all blues,
// each row after row. With n pixels, for pixel p and channel c:
//
//   raster[3 * p + c] = planar[n * c + p]
//
// Both spans have the same length, a multiple of 3 (else InputError), and do not overlap.
void raster_from_planar(std::span<const std::uint8_t> planar, std::span<std::uint8_t> raster);
void planar_from_raster(std::span<const std::uint8_t> raster, std::span<std::uint8_t> planar);

// "32 x 48": height, then width.
std::string to_string(const ImageShape& shape);

}  // namespace routing
