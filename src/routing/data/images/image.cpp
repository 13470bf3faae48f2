#include "routing/data/images/image.h"

#include "routing/core/error.h"

#include <system_error>

namespace routing {
namespace {

constexpr std::size_t kChannels = 3;

std::size_t pixels_of(std::size_t from, std::size_t to) {
  require<InputError>(from == to && from % kChannels == 0, "an image of ", from, " values cannot become one of ", to,
                      "; give two spans of one length, a multiple of 3");
  return from / kChannels;
}

}  // namespace

void raster_from_planar(std::span<const std::uint8_t> planar, std::span<std::uint8_t> raster) {
  const std::size_t pixels = pixels_of(planar.size(), raster.size());
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      raster[kChannels * pixel + channel] = planar[pixels * channel + pixel];
    }
  }
}

void planar_from_raster(std::span<const std::uint8_t> raster, std::span<std::uint8_t> planar) {
  const std::size_t pixels = pixels_of(raster.size(), planar.size());
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      planar[pixels * channel + pixel] = raster[kChannels * pixel + channel];
    }
  }
}

std::string to_string(const ImageShape& shape) {
  return std::to_string(shape.height) + " x " + std::to_string(shape.width);
}

}  // namespace routing
