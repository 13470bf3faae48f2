// What a request for completions asks for: its body, checked as far as that goes without the model.
#pragma once

#include "routing/generation/sampler.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace routing {

class ApiFields;

struct CompletionLimits {
  std::int64_t max_tokens = 1 << 20;
  std::int64_t choices = 64;  // of all prompts
};

using TextOrIds = std::variant<std::string, std::vector<std::int32_t>>;

// What completions of text and of images have in common.
struct SamplingFields {
  std::string model = {};
  SamplingOptions sampling = {};
  std::int64_t choices = 1;  // per prompt
  bool stream = false;
};

struct CompletionFields : SamplingFields {
  std::vector<TextOrIds> prompts = {};
  std::int64_t max_tokens = 256;
  std::vector<std::string> stops = {};
  bool ignore_end = false;
  bool echo = false;
  bool streams_usage = false;
  std::optional<std::int64_t> logprobs = std::nullopt;
};

struct ImageFields : SamplingFields {
  std::string png = {};  // the bytes of an image to complete; empty for none
  std::optional<std::int64_t> rows = std::nullopt;
};

// Throw an ApiError that names the field.
CompletionFields completion_fields(ApiFields& fields, const CompletionLimits& limits);
ImageFields image_fields(ApiFields& fields, const CompletionLimits& limits);
// One of a text and a list of ids, under the names "text" and "tokens".
TextOrIds text_or_tokens(ApiFields& fields);

}  // namespace routing
