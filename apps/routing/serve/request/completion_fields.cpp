#include "serve/request/completion_fields.h"

#include "routing/core/base64.h"
#include "serve/request/api_error.h"
#include "serve/request/api_fields.h"

#include <array>
#include <random>
#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostStops = 16;
constexpr std::int64_t kMostLikeliest = 20;
// What JavaScript's numbers hold exactly, so that the answer can say it.
constexpr std::int64_t kLargestSeed = (std::int64_t{1} << 53) - 1;

std::int64_t drawn_seed() {
  std::random_device device;
  const std::uint64_t bits = (std::uint64_t{device()} << 32U) | device();
  return static_cast<std::int64_t>(bits & static_cast<std::uint64_t>(kLargestSeed));
}

void read_sampling(ApiFields& fields, SamplingFields& to, const CompletionLimits& limits) {
  to.model = fields.text("model", "");
  SamplingOptions& options = to.sampling;
  options.temperature = fields.number("temperature", options.temperature);
  options.top_p = fields.number("top_p", options.top_p);
  options.min_p = fields.number("min_p", options.min_p);
  options.repetition_penalty = fields.number("repetition_penalty", options.repetition_penalty);
  options.top_k = fields.whole("top_k", options.top_k, {});
  const std::optional<std::int64_t> seed = fields.maybe_whole("seed", {.least = 0, .most = kLargestSeed});
  options.seed = static_cast<std::uint64_t>(seed ? *seed : drawn_seed());
  to.choices = fields.whole("n", 1, {.least = 1, .most = limits.choices});
  to.stream = fields.flag("stream", false);
  validate(options);
  // Of OpenAI's and llama.cpp's clients.
  fields.ignore("user");
  fields.ignore("best_of", {to.choices});
  fields.ignore("presence_penalty", {0, 0.0});
  fields.ignore("frequency_penalty", {0, 0.0});
  fields.ignore("logit_bias", {Json::object()});
  fields.ignore("cache_prompt", {true});
}

std::vector<TextOrIds> prompts_of(ApiFields& fields) {
  const Json& given = fields.value("prompt");
  if (given.is_null()) return {std::string()};
  if (given.is_string()) return {given.get<std::string>()};
  if (given.is_array() && !given.empty() && given.front().is_number()) return {ApiFields::ids_of(given, "prompt")};
  std::vector<TextOrIds> prompts;
  if (given.is_array()) {
    for (const Json& each : given) {
      if (each.is_string()) {
        prompts.emplace_back(each.get<std::string>());
      } else {
        prompts.emplace_back(ApiFields::ids_of(each, "prompt[" + std::to_string(prompts.size()) + "]"));
      }
    }
  }
  if (prompts.empty()) {
    throw ApiError(400, "prompt must be a text, a list of texts, a list of ids or a list of lists of ids", "prompt");
  }
  return prompts;
}

}  // namespace

CompletionFields completion_fields(ApiFields& fields, const CompletionLimits& limits) {
  CompletionFields result;
  read_sampling(fields, result, limits);
  result.prompts = prompts_of(fields);
  result.echo = fields.flag("echo", false);
  result.max_tokens =
      fields.whole("max_tokens", result.max_tokens, {.least = result.echo ? 0 : 1, .most = limits.max_tokens});
  result.stops = fields.texts("stop", kMostStops);
  for (const std::string& stop : result.stops) {
    if (stop.empty()) throw ApiError(400, "stop has an empty text, which would stand everywhere; leave it out", "stop");
  }
  result.ignore_end = fields.flag("ignore_end", false);
  result.logprobs = fields.maybe_whole("logprobs", {.least = 0, .most = kMostLikeliest});
  const Json& options = fields.value("stream_options");
  if (!options.is_null()) {
    const bool fits =
        options.is_object() && (options.empty() || (options.size() == 1 && options.contains("include_usage") &&
                                                    options.at("include_usage").is_boolean()));
    if (!fits) throw ApiError(400, R"(stream_options must be {"include_usage": true} or false)", "stream_options");
    result.streams_usage = options.value("include_usage", false);
  }
  fields.ignore("suffix", {""});
  fields.refuse_others();
  return result;
}

ImageFields image_fields(ApiFields& fields, const CompletionLimits& limits) {
  ImageFields result;
  read_sampling(fields, result, limits);
  const std::string image = fields.text("image", "");
  const std::optional<std::string> bytes = from_base64(image);
  if (!bytes) throw ApiError(400, "image is no base64; send the bytes of a PNG file so encoded", "image");
  result.png = *bytes;
  result.rows = fields.maybe_whole("rows", {});
  if (result.rows && result.png.empty()) {
    throw ApiError(400, "rows is for an image that is completed, but there is no image", "rows");
  }
  fields.ignore("response_format", {"b64_json"});
  fields.refuse_others();
  return result;
}

TextOrIds text_or_tokens(ApiFields& fields) {
  const bool has_text = fields.has("text");
  if (has_text == fields.has("tokens")) {
    throw ApiError(400,
                   has_text ? "text and tokens were both given; one is enough"
                            : "there is neither text nor tokens; give one of them",
                   "text");
  }
  std::optional<std::vector<std::int32_t>> ids = fields.ids("tokens");
  const std::string text = fields.text("text", "");
  if (ids) return std::move(*ids);
  return text;
}

}  // namespace routing
