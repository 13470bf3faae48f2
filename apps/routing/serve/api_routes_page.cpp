// What the page asks for, and the page itself.
#include "inputs/run_files.h"
#include "lab/runs/model_header.h"
#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "serve/api_server.h"
#include "serve/page/page_model.h"
#include "serve/page/page_patterns.h"
#include "serve/request/api_error.h"
#include "serve/request/api_fields.h"
#include "serve/request/text_requests.h"
#include "shell/json_text.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

// A whole number of the query.
std::int64_t query_number(const http::Request& request, const std::string& name, std::int64_t without) {
  const std::optional<std::string> text = http::query_value(request, name);
  if (!text) return without;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) {
    throw ApiError(400, name + " is " + *text + ", but must be a whole number, 0 or more", name);
  }
  return value;
}

// Seconds after which a silent stream of events shows that it lives.
constexpr int kTicksBetweenComments = 15;

struct TextFields {
  std::string model;
  TextOrIds text;
};

TextFields text_fields(ApiFields& body) {
  return {.model = body.text("model", ""), .text = text_or_tokens(body)};
}

AskedModel asked_model(const ServedModel& model) {
  return {.name = model.name,
          .identity = model.identity,
          .model = model.model.get(),
          .tokenizer = model.tokenizer.get(),
          .precision = model.precision};
}

constexpr ApiFields::Range kPlace{.least = 0, .most = std::numeric_limits<std::int32_t>::max()};

}  // namespace

// On the files thread.
Json ApiServer::model_json(const ServedRun& run) {
  const std::filesystem::path file = model_file(run.folder, options_.checkpoint);
  const FileStamp stamp = stamp_of(file);
  auto& [seen, described] = described_[run.id];
  if (seen == stamp) return described;
  const ModelHeader header = read_model_header(file);
  const ExperimentConfig config = header.config();
  const bool is_image = config.model.image_height > 0;
  const bool reads_source = config.model.encoder_layers > 0;
  constexpr std::int64_t kNanoseconds = 1000000000;
  Json model{{"id", run.id},
             {"object", "model"},
             {"created", stamp.changed / kNanoseconds},
             {"owned_by", "routing"},
             {"kind", is_image       ? "image"
                      : reads_source ? "symbols"
                                     : "text"},
             {"parameters", header.parameters},
             {"vocabulary", config.model.vocab_size},
             {"sequence_length", config.train.sequence_length},
             {"layers", config.model.layers},
             {"validity", header.text("validity")}};
  if (is_image) {
    model["width"] = config.model.image_width;
    model["height"] = config.model.image_height;
  }
  if (!header.text("data_label").empty()) model["data_label"] = header.text("data_label");
  model["audit"] = header.text("audit").empty() ? "not audited" : header.text("audit");
  seen = stamp;
  described = model;
  return model;
}

Json ApiServer::models() {
  Json all = Json::array();
  for (const ServedRun& run : catalog_.runs()) {
    Json model;
    std::string problem;
    try {
      model = model_json(run);
    } catch (const Error& error) {
      problem = error.what();
    }
    const std::lock_guard lock(readings_mutex_);
    const bool is_loaded = std::find(loaded_.begin(), loaded_.end(), run.id) != loaded_.end();
    // What is loaded goes on serving, whatever became of its file.
    if (model.is_null() && !is_loaded) continue;
    if (model.is_null()) model = {{"id", run.id}, {"object", "model"}, {"created", 0}, {"owned_by", "routing"}};
    model["loaded"] = is_loaded;
    const auto known = problems_.find(run.id);
    if (known != problems_.end()) problem = known->second;
    if (!problem.empty()) model["problem"] = catalog_.without_paths(problem);
    all.push_back(std::move(model));
  }
  return {{"object", "list"}, {"data", std::move(all)}};
}

void ApiServer::add_page_routes() {
  const auto add_run_route = [this](const std::string& what, std::function<Json(const Asked&)> make) {
    router_.add("GET", "/api/runs/{id}/" + what, [this, make = std::move(make)](const Asked& asked) {
      on_files(asked.reply, [asked, make] { return make(asked); });
    });
  };
  router_.add("GET", "/api/runs",
              [this](const Asked& asked) { on_files(asked.reply, [this] { return pages_.runs(); }); });
  add_run_route("config", [this](const Asked& asked) { return pages_.config(asked.places.at("id")); });
  add_run_route("metrics", [this](const Asked& asked) {
    return pages_.metrics(asked.places.at("id"), query_number(asked.request, "after", 0));
  });
  add_run_route("clusters", [this](const Asked& asked) {
    return pages_.clusters(asked.places.at("id"), query_number(asked.request, "after", -1));
  });
  add_run_route("samples", [this](const Asked& asked) { return pages_.samples(asked.places.at("id")); });
  router_.add("GET", "/api/runs/{id}/samples/{file}", [this](const Asked& asked) {
    files_->post([this, asked] {
      try {
        asked.reply->send(
            {.content_type = "image/png", .body = pages_.sample_image(asked.places.at("id"), asked.places.at("file"))});
      } catch (const std::exception& error) {
        send_error(*asked.reply, error);
      }
    });
  });
  router_.add("GET", "/api/events", [this](const Asked& asked) { begin_events(asked); });

  router_.add("POST", "/api/tokens", [this](const Asked& asked) {
    ApiFields body(asked.request.body);
    const TextFields fields = text_fields(body);
    body.refuse_others();
    on_compute(asked, [this, fields] {
      const std::shared_ptr<ServedModel> model = models_.get(fields.model);
      return page_tokens(asked_model(*model), ids_of(*model, fields.text));
    });
  });
  router_.add("POST", "/api/clusters", [this](const Asked& asked) {
    ApiFields body(asked.request.body);
    const TextFields fields = text_fields(body);
    const AskedHead head{.layer = body.whole("layer", 0, kPlace), .head = body.whole("head", 0, kPlace)};
    body.refuse_others();
    on_compute(asked, [this, fields, head] {
      const std::shared_ptr<ServedModel> model = models_.get(fields.model);
      return page_clusters(asked_model(*model), ids_of(*model, fields.text), head, probes_);
    });
  });
  router_.add("POST", "/api/attention", [this](const Asked& asked) {
    ApiFields body(asked.request.body);
    const TextFields fields = text_fields(body);
    const AskedPosition position{.position = body.whole("position", 0, kPlace),
                                 .layer = body.maybe_whole("layer", kPlace),
                                 .head = body.maybe_whole("head", kPlace)};
    body.refuse_others();
    on_compute(asked, [this, fields, position] {
      const std::shared_ptr<ServedModel> model = models_.get(fields.model);
      return page_attention(asked_model(*model), ids_of(*model, fields.text), position, probes_);
    });
  });
  router_.add("GET", "/api/patterns", [](const Asked& asked) { send_json(*asked.reply, page_patterns()); });
  router_.add("POST", "/api/patterns", [this](const Asked& asked) {
    const ApiFields body(asked.request.body);
    on_compute(asked, [request = body.object()] { return page_pattern_rows(request); });
  });
}

void ApiServer::begin_events(const Asked& asked) {
  RunWatcher::Watched watched{.run = http::query_value(asked.request, "run").value_or(""),
                              .metrics = query_number(asked.request, "after", 0)};
  const bool taken = files_->post([this, reply = asked.reply, watched] {
    try {
      const std::uint64_t number = watcher_.add(watched);
      reply->when_gone([this, number] {
        files_->post([this, number] {
          watcher_.remove(number);
          watching_.erase(number);
        });
      });
      watching_[number] = reply;
      reply->begin({.content_type = "text/event-stream",
                    .headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}});
      // What is there now comes at once.
      tell_watchers();
    } catch (const std::exception& error) {
      send_error(*reply, error);
    }
  });
  if (!taken) throw ApiError(429, "too many questions about runs wait already; come back later");
}

void ApiServer::tell_watchers() {
  try {
    catalog_.refresh();
    for (const RunWatcher::Event& event : watcher_.poll()) {
      const auto found = watching_.find(event.watcher);
      if (found == watching_.end()) continue;
      found->second->write("event: " + std::string(event.name) + "\ndata: " + *event.data + "\n\n");
    }
    if (++ticks_ % kTicksBetweenComments != 0) return;
    for (const auto& [number, reply] : watching_) reply->write(":\n\n");
  } catch (const std::exception& error) {
    note_(error.what());
  }
}

}  // namespace routing
