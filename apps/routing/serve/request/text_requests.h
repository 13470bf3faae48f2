// What is asked about a text in one piece: its tokens and what they cost. On the thread that computes.
#pragma once

#include "serve/request/completion_fields.h"
#include "serve/served_model.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// The ids of a request's text, or those it gave. Throws an ApiError for a model that has no text, and for ids that it
// does not know.
std::vector<std::int32_t> ids_of(const ServedModel& model, const TextOrIds& given);

struct ScoreFields {
  std::string model = {};
  TextOrIds text = {};
  std::optional<std::int64_t> sequence_length = std::nullopt;
  std::optional<std::int64_t> stride = std::nullopt;
};
ScoreFields score_fields(ApiFields& fields);
nlohmann::ordered_json score_json(ServedModel& model, const ScoreFields& fields);

// {"tokens", "pieces"}
nlohmann::ordered_json tokenize_json(const ServedModel& model, const std::string& text);
// {"content"}
nlohmann::ordered_json detokenize_json(const ServedModel& model, const std::vector<std::int32_t>& ids);

}  // namespace routing
