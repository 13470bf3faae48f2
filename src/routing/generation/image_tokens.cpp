#include "routing/generation/image_tokens.h"

#include "routing/core/error.h"
#include "routing/data/images/png_image.h"

#include <limits>

namespace routing {
namespace {

constexpr std::int32_t kHighestValue = std::numeric_limits<std::uint8_t>::max();

void require_values(const Image& image) {
  require<InputError>(static_cast<std::int64_t>(image.values.size()) == image.shape.values(), "an image of ",
                      to_string(image.shape), " pixels has ", image.shape.values(), " values, but ",
                      image.values.size(), " were given; give red, green and blue of every pixel");
}

}  // namespace

std::vector<std::int32_t> image_tokens(const Image& image) {
  require_values(image);
  return {image.values.begin(), image.values.end()};
}

std::int64_t upper_half_length(const ImageShape& shape) {
  return 3 * shape.width * ((shape.height + 1) / 2);
}

std::vector<std::int32_t> upper_half_tokens(const Image& image) {
  std::vector<std::int32_t> tokens = image_tokens(image);
  tokens.resize(static_cast<std::size_t>(upper_half_length(image.shape)));
  return tokens;
}

Image image_from_tokens(std::span<const std::int32_t> tokens, const ImageShape& shape, std::uint8_t unknown) {
  require<InputError>(shape.height >= 1 && shape.width >= 1, "an image of ", to_string(shape),
                      " pixels cannot be made; give at least one row and one column");
  require<InputError>(static_cast<std::int64_t>(tokens.size()) <= shape.values(), tokens.size(),
                      " tokens are too many for an image of ", to_string(shape), " pixels, which has ", shape.values(),
                      "; give the tokens of one image");
  Image image{.shape = shape, .values = std::vector<std::uint8_t>(static_cast<std::size_t>(shape.values()), unknown)};
  for (std::size_t place = 0; place < tokens.size(); ++place) {
    require<InputError>(tokens[place] >= 0 && tokens[place] <= kHighestValue, "token ", place, " of the image is ",
                        tokens[place], ", but values of pixels are 0 to ", kHighestValue,
                        "; is this a model of images?");
    image.values[place] = static_cast<std::uint8_t>(tokens[place]);
  }
  return image;
}

Image read_png_of_shape(const std::filesystem::path& path, const ImageShape& shape) {
  const ImageShape found = read_png_shape(path);
  require<FileError>(found == shape, path.string(), ": the image has ", to_string(found),
                     " pixels, but the model makes images of ", to_string(shape),
                     "; cut or scale it to that size (height x width)");
  return read_png(path);
}

}  // namespace routing
