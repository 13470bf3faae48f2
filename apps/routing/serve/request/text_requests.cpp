#include "serve/request/text_requests.h"

#include "lab/heads/token_text.h"
#include "routing/evaluation/token_likelihood.h"
#include "serve/request/api_error.h"
#include "serve/request/api_fields.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUseImages = "POST /v1/images/completions draws them";

}  // namespace

std::vector<std::int32_t> ids_of(const ServedModel& model, const TextOrIds& given) {
  std::vector<std::int32_t> ids;
  if (const auto* text = std::get_if<std::string>(&given)) {
    model.text_of(kUseImages).encode(*text, ids);
  } else {
    ids = std::get<std::vector<std::int32_t>>(given);
  }
  const std::int64_t vocabulary = model.config().model.vocab_size;
  for (std::size_t place = 0; place < ids.size(); ++place) {
    if (ids[place] < vocabulary) continue;
    throw ApiError(400,
                   "tokens[" + std::to_string(place) + "] is " + std::to_string(ids[place]) + ", but the ids of " +
                       model.name + " are 0 to " + std::to_string(vocabulary - 1),
                   "tokens");
  }
  return ids;
}

ScoreFields score_fields(ApiFields& fields) {
  ScoreFields result;
  result.model = fields.text("model", "");
  result.text = text_or_tokens(fields);
  result.sequence_length = fields.maybe_whole("sequence_length", {.least = 1});
  result.stride = fields.maybe_whole("stride", {.least = 0});
  fields.refuse_others();
  return result;
}

Json score_json(ServedModel& model, const ScoreFields& fields) {
  if (model.reads_source()) {
    throw ApiError(400, model.name + " reads a source, so a text by itself has no score", "model");
  }
  const std::vector<std::int32_t> ids = ids_of(model, fields.text);
  if (ids.empty()) throw ApiError(400, "there is nothing to score: the text has no tokens", "text");
  const ExperimentConfig& config = model.config();
  std::vector<double> logprobs;
  logprobs.reserve(ids.size());
  LikelihoodOptions options{
      .sequence_length = fields.sequence_length.value_or(config.train.sequence_length),
      .stride = fields.stride.value_or(config.eval.stride),
      .batch_size = 1,
      .record_length = model.is_image() ? 3 * config.model.image_height * config.model.image_width : 0,
      .precision = model.precision};
  options.scored = [&](const ScoredWindow& window) {
    for (auto place = static_cast<std::size_t>(window.scored_from); place < window.nats.size(); ++place) {
      logprobs.push_back(-window.nats[place]);
    }
  };
  const Likelihood likelihood = token_likelihood(*model.model, ids, options);
  Json object{{"model", model.name}};
  model.add_labels(object);
  object["sequence_length"] = likelihood.sequence_length;
  object["stride"] = likelihood.stride;
  object["tokens"] = ids;
  object["logprobs"] = logprobs;
  object["sum"] = -likelihood.nats;
  if (model.is_image()) {
    object["bits_per_dim"] = likelihood.nats_per_token() / std::numbers::ln2;
  } else {
    const std::size_t bytes = model.tokenizer->decode(ids).size();
    if (bytes > 0) object["bits_per_byte"] = likelihood.nats / std::numbers::ln2 / static_cast<double>(bytes);
  }
  object["perplexity"] = std::exp(likelihood.nats_per_token());
  return object;
}

Json tokenize_json(const ServedModel& model, const std::string& text) {
  const std::vector<std::int32_t> ids = ids_of(model, text);
  Json pieces = Json::array();
  for (const TokenText& token : token_texts(model.text_of(kUseImages), ids)) pieces.push_back(token.shown);
  return {{"tokens", ids}, {"pieces", std::move(pieces)}};
}

Json detokenize_json(const ServedModel& model, const std::vector<std::int32_t>& ids) {
  const Tokenizer& tokenizer = model.text_of(kUseImages);
  return {{"content", tokenizer.decode(ids_of(model, ids))}};
}

}  // namespace routing
