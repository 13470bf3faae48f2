// What models answer: the API of docs/server.md.
#include "routing/core/error.h"
#include "serve/api_server.h"
#include "serve/request/api_error.h"
#include "serve/request/api_fields.h"
#include "serve/request/image_job.h"
#include "serve/request/text_job.h"
#include "serve/request/text_requests.h"

#include <utility>

namespace routing {
namespace {

// Text and numbers of a request are checked on the I/O thread; the model is asked later.
ApiFields fields_of(const Asked& asked) {
  return ApiFields(asked.request.body);
}

}  // namespace

template <class Job, class Fields>
void ApiServer::decode(const Asked& asked, Fields fields, std::int64_t choices) {
  const auto bytes = static_cast<std::int64_t>(asked.request.body.size());
  auto job = std::make_shared<Job>(
      surroundings_, JobRequest{.reply = asked.reply, .ticket = quota_.admit(choices, bytes)}, std::move(fields));
  loop_.post([this, job] {
    jobs_.push_back(job);
    job->begin();
  });
}

void ApiServer::add_model_routes() {
  router_.add("GET", "/health", [this](const Asked& asked) {
    asked.reply->send(
        {.status = stopping_ ? 503 : 200, .body = stopping_ ? R"({"status":"stopping"})" : R"({"status":"ok"})"});
  });
  router_.add("GET", "/v1/models", [this](const Asked& asked) { on_files(asked.reply, [this] { return models(); }); });
  router_.add("GET", "/v1/models/{name...}", [this](const Asked& asked) {
    on_files(asked.reply, [this, name = asked.places.at("name")] {
      const Json all = models();
      for (const Json& model : all["data"]) {
        if (model["id"] == name) return model;
      }
      throw ApiError(404, "there is no model '" + name + "'; GET /v1/models lists those that are there", "model");
    });
  });
  const CompletionLimits limits{.max_tokens = options_.quota.tokens_per_request, .choices = options_.quota.sequences};
  router_.add("POST", "/v1/completions", [this, limits](const Asked& asked) {
    ApiFields body = fields_of(asked);
    CompletionFields fields = completion_fields(body, limits);
    const std::int64_t choices = static_cast<std::int64_t>(fields.prompts.size()) * fields.choices;
    decode<TextJob>(asked, std::move(fields), choices);
  });
  router_.add("POST", "/v1/images/completions", [this, limits](const Asked& asked) {
    ApiFields body = fields_of(asked);
    ImageFields fields = image_fields(body, limits);
    const std::int64_t choices = fields.choices;
    decode<ImageJob>(asked, std::move(fields), choices);
  });
  router_.add("POST", "/v1/score", [this](const Asked& asked) {
    ApiFields body = fields_of(asked);
    on_compute(asked, [this, fields = score_fields(body)] { return score_json(*models_.get(fields.model), fields); });
  });
  router_.add("POST", "/tokenize", [this](const Asked& asked) {
    ApiFields body = fields_of(asked);
    const std::string model = body.text("model", "");
    const std::string content = body.text("content", "");
    body.refuse_others();
    on_compute(asked, [this, model, content] { return tokenize_json(*models_.get(model), content); });
  });
  router_.add("POST", "/detokenize", [this](const Asked& asked) {
    ApiFields body = fields_of(asked);
    const std::string model = body.text("model", "");
    const std::optional<std::vector<std::int32_t>> ids = body.ids("tokens");
    body.refuse_others();
    if (!ids) throw ApiError(400, "tokens is missing; give a list of ids", "tokens");
    on_compute(asked, [this, model, ids] { return detokenize_json(*models_.get(model), *ids); });
  });
  router_.add("GET", "/metrics", [this](const Asked& asked) {
    asked.reply->send({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text()});
  });
}

}  // namespace routing
