#include "serve/request/image_job.h"

#include "routing/core/base64.h"
#include "routing/data/images/png_image.h"
#include "routing/generation/image_tokens.h"

#include <ctime>
#include <string_view>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

Image decoded(const std::string& png, const ImageShape& shape) {
  Image image;
  try {
    image = decode_png(std::as_bytes(std::span(png)), "image");
  } catch (const FileError& error) {
    // Not a file of ours, but one that was sent.
    throw ApiError(400, error.what(), "image");
  }
  if (image.shape != shape) {
    throw ApiError(400, "image has " + to_string(image.shape) + " pixels, but the model draws " + to_string(shape),
                   "image");
  }
  return image;
}

}  // namespace

DecodingJob::Prepared ImageJob::prepare(ServedModel& model) {
  if (!model.is_image()) {
    throw ApiError(400, model.name + " is a model of text; POST /v1/completions continues it", "model");
  }
  shape_ = {.height = model.config().model.image_height, .width = model.config().model.image_width};
  Drawn begun;
  if (!fields_.png.empty()) {
    const Image image = decoded(fields_.png, shape_);
    std::int64_t length = upper_half_length(shape_);
    if (fields_.rows) {
      if (*fields_.rows >= shape_.height) {
        throw ApiError(400,
                       "rows is " + std::to_string(*fields_.rows) + ", but images have " +
                           std::to_string(shape_.height) + "; keep fewer, so that there is something left to draw",
                       "rows");
      }
      length = *fields_.rows * 3 * shape_.width;
    }
    begun.tokens = image_tokens(image);
    begun.tokens.resize(static_cast<std::size_t>(length));
  }
  images_.assign(static_cast<std::size_t>(fields_.choices), begun);
  const auto given = static_cast<std::int64_t>(begun.tokens.size());
  return {.requests = {{.prompt = begun.tokens,
                        .sampling = fields_.sampling,
                        .max_new_tokens = shape_.values() - given,
                        .samples = fields_.choices}},
          .prompt_tokens = given};
}

bool ImageJob::take(std::size_t choice, const TokenDraw& draw, std::span<const float> /*logits*/) {
  Drawn& image = images_[choice];
  image.tokens.push_back(draw.token);
  image.nats -= draw.log_probability;
  const auto in_row = static_cast<std::size_t>(3 * shape_.width);
  if (fields_.stream && image.tokens.size() % in_row == 0) {
    const std::size_t row = image.tokens.size() / in_row - 1;
    send_event({{"index", choice},
                {"row", row},
                {"values", std::vector<std::int32_t>(image.tokens.end() - static_cast<std::ptrdiff_t>(in_row),
                                                     image.tokens.end())}});
  }
  return true;
}

void ImageJob::end(std::size_t /*choice*/, StopReason /*reason*/) {}

Json ImageJob::json_of(std::size_t choice) const {
  const std::vector<std::uint8_t> png = encode_png(image_from_tokens(images_[choice].tokens, shape_), "image");
  return {{"index", choice},
          {"b64_json", to_base64({reinterpret_cast<const char*>(png.data()), png.size()})},
          {"nats", images_[choice].nats}};
}

void ImageJob::answer() {
  Json object{{"created", static_cast<std::int64_t>(std::time(nullptr))},
              {"model", served_name()},
              {"seed", fields_.sampling.seed}};
  add_labels(object);
  object["width"] = shape_.width;
  object["height"] = shape_.height;
  object["data"] = Json::array();
  for (std::size_t choice = 0; choice < images_.size(); ++choice) object["data"].push_back(json_of(choice));
  object["usage"] = usage();
  if (fields_.stream) {
    send_event(object);
  } else {
    send_whole(object);
  }
}

}  // namespace routing
