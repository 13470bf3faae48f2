#include "routing/data/images/shrunk_images.h"

#include "routing/core/error.h"

#include <string>
#include <utility>

namespace routing {
namespace {

class ShrunkImages : public ImageSource {
 public:
  ShrunkImages(std::unique_ptr<ImageSource> source, std::int64_t factor)
      : source_(std::move(source)), factor_(factor) {}

  const SourceFacts& facts() const override { return source_->facts(); }
  ImageShape shape() const override {
    const ImageShape large = source_->shape();
    return {.height = large.height / factor_, .width = large.width / factor_};
  }
  std::int64_t images(std::string_view part) const override { return source_->images(part); }

  void read(std::string_view part, const ImageSink& sink) const override {
    const ImageShape large = source_->shape();
    source_->read(part,
                  [&](std::span<const std::uint8_t> values) { sink(shrink_image(values, large, factor_).values); });
  }

 private:
  std::unique_ptr<ImageSource> source_;
  std::int64_t factor_;
};

std::string divisors_of(std::int64_t number) {
  std::vector<std::string> divisors;
  for (std::int64_t candidate = 1; candidate <= number; ++candidate) {
    if (number % candidate == 0) divisors.push_back(std::to_string(candidate));
  }
  return joined(divisors);
}

}  // namespace

Image shrink_image(std::span<const std::uint8_t> values, const ImageShape& shape, std::int64_t factor) {
  require<InputError>(factor >= 1 && shape.height % factor == 0 && shape.width % factor == 0, "an image of ",
                      to_string(shape), " pixels cannot be shrunk by ", factor, "; give a factor that divides both");
  require<InputError>(static_cast<std::int64_t>(values.size()) == shape.values(), "an image of ", to_string(shape),
                      " pixels has ", shape.values(), " values, but ", values.size(), " were given");
  Image small{.shape = {.height = shape.height / factor, .width = shape.width / factor}, .values = {}};
  small.values.reserve(static_cast<std::size_t>(small.shape.values()));
  const std::int64_t area = factor * factor;
  for (std::int64_t y = 0; y < small.shape.height; ++y) {
    for (std::int64_t x = 0; x < small.shape.width; ++x) {
      for (std::int64_t channel = 0; channel < 3; ++channel) {
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < factor; ++i) {
          const std::int64_t first = 3 * ((factor * y + i) * shape.width + factor * x) + channel;
          for (std::int64_t j = 0; j < factor; ++j) sum += values[static_cast<std::size_t>(first + 3 * j)];
        }
        small.values.push_back(static_cast<std::uint8_t>((sum + area / 2) / area));
      }
    }
  }
  return small;
}

std::unique_ptr<ImageSource> shrink_images(std::unique_ptr<ImageSource> source, std::int64_t image_size) {
  const ImageShape large = source->shape();
  if (image_size == 0 || (image_size == large.height && image_size == large.width)) return source;
  require<ConfigError>(large.height == large.width, "data.image_size is ", image_size, ", but the images are ",
                       to_string(large),
                       " pixels (height x width) and only square ones are shrunk; set it to 0, or make "
                       "the images square");
  require<ConfigError>(image_size > 0 && large.height % image_size == 0, "data.image_size is ", image_size,
                       ", but the images are ", to_string(large),
                       " pixels and are shrunk by whole numbers only; set it "
                       "to one of ",
                       divisors_of(large.height), ", or to 0 to leave them as they are");
  return std::make_unique<ShrunkImages>(std::move(source), large.height / image_size);
}

}  // namespace routing
