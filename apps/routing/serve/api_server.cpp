#include "serve/api_server.h"

#include "inputs/run_files.h"
#include "routing/core/memory.h"
#include "routing/serving/http/access_policy.h"
#include "routing/serving/http/tokens.h"
#include "serve/request/api_error.h"
#include "shell/json_text.h"

#include <thread>
#include <utility>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
// How often the compute thread looks for late requests and writes down its numbers.
constexpr std::chrono::milliseconds kLook{100};

http::AccessPolicy policy_of(const ServeOptions& options) {
  http::AccessPolicy policy{.loopback = http::is_loopback(options.host),
                            .own_names = options.names,
                            .open_paths = {"/health"},
                            .origins = options.origins};
  if (!options.token_file.empty()) policy.tokens = http::read_tokens(options.token_file);
  return policy;
}

http::Response error_response(int status, const std::string& message) {
  return {.status = status, .body = json_text(error_json(status, message))};
}

}  // namespace

ApiServer::ApiServer(const ServeOptions& options, std::function<void(const std::string&)> note)
    : options_(options),
      note_(std::move(note)),
      catalog_({options.runs.begin(), options.runs.end()}),
      quota_(options.quota),
      models_({.most_loaded = options.models,
               .checkpoint = options.checkpoint,
               .precision = options.precision,
               .batch = {.sequences = options.quota.sequences,
                         .prefill_block = options.prefill_block,
                         .prefix_cache = {.bytes = options.prefix_cache * kMebibyte}},
               .decoder = {.prefill_block = options.prefill_block},
               .folder_of = [this](const std::string& name) -> std::optional<std::filesystem::path> {
                 try {
                   return catalog_.folder_of(name);
                 } catch (const NotFoundError&) {
                   return std::nullopt;
                 }
               },
               .only_name = [this] { return only_model(); }}),
      probes_(options.probe_cache * kMebibyte),
      surroundings_{.loop = loop_,
                    .models = models_,
                    .metrics = metrics_,
                    .most_seconds = options.request_seconds,
                    .without_paths = [this](const std::string& text) { return catalog_.without_paths(text); }},
      pages_(catalog_),
      watcher_(pages_) {
  catalog_.refresh();
  add_model_routes();
  add_page_routes();
  add_static_routes();
  http::Limits limits;
  limits.body_bytes = static_cast<std::size_t>(options.body_limit * kMebibyte);
  limits.connections = static_cast<std::size_t>(options.connections);
  http_ = std::make_unique<http::Server>(http::ServerOptions{
      .address = {options.host, static_cast<std::uint16_t>(options.port)},
      .limits = limits,
      .handler = [this](http::Request request,
                        std::shared_ptr<http::Reply> reply) { handle(std::move(request), std::move(reply)); },
      .admit = [policy = policy_of(options)](
                   const http::Request& request) { return http::check_access(policy, request, error_response); },
      .error_body = error_response,
      .problem = note_});
  files_ = std::make_unique<FileWorker>([this] { tell_watchers(); });
}

ApiServer::~ApiServer() = default;

void ApiServer::run(const std::function<bool()>& stops) {
  std::thread io([this] { http_->run(); });
  const auto end = [&] {
    for (const std::weak_ptr<DecodingJob>& each : jobs_) {
      if (const auto job = each.lock()) job->stop(ApiError(503, "the server was stopped before this was done"));
    }
    http_->stop();
    io.join();
    files_.reset();
  };
  try {
    loop_.run({.advance = [this] { return advance(); }, .goes_on = [&] { return goes_on(stops); }});
  } catch (...) {
    end();
    throw;
  }
  end();
}

void ApiServer::handle(http::Request request, std::shared_ptr<http::Reply> reply) {
  Asked asked{.request = std::move(request), .reply = std::move(reply)};
  const std::shared_ptr<http::Reply> answer = asked.reply;
  try {
    if (stopping_ && asked.request.path != "/health") {
      throw ApiError(503, "the server is stopping; what it had begun is being finished");
    }
    const AskedHandler& handler = router_.find(asked);
    handler(std::move(asked));
  } catch (const std::exception& error) {
    send_error(*answer, error);
  }
}

void ApiServer::send_json(http::Reply& reply, const Json& object) {
  reply.send({.body = json_text(object), .headers = {{"Cache-Control", "no-store"}}});
}

void ApiServer::send_error(http::Reply& reply, const std::exception& thrown) const {
  const ApiError error =
      dynamic_cast<const NotFoundError*>(&thrown) != nullptr ? ApiError(404, thrown.what()) : api_error_of(thrown);
  if (error.status() == 500) note_(error.what());
  const std::string message = error.names_paths ? catalog_.without_paths(error.what()) : error.what();
  http::Response response{.status = error.status(),
                          .body = json_text(error_json(error.status(), message, error.param()))};
  if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  if (!error.allow.empty()) response.headers.emplace_back("Allow", error.allow);
  reply.send(std::move(response));
}

void ApiServer::on_files(const std::shared_ptr<http::Reply>& reply, std::function<Json()> make) {
  const bool taken = files_->post([this, reply, make = std::move(make)] {
    if (reply->gone()) return;
    try {
      send_json(*reply, make());
    } catch (const std::exception& error) {
      send_error(*reply, error);
    }
  });
  if (taken) return;
  throw ApiError(429, "too many questions about runs wait already; come back later").with_retry_after(1);
}

void ApiServer::on_compute(const Asked& asked, std::function<Json()> make) {
  const auto bytes = static_cast<std::int64_t>(asked.request.body.size());
  loop_.post_long(
      [this, reply = asked.reply, ticket = quota_.admit(1, bytes), arrived = Clock::now(), make = std::move(make)] {
        if (reply->gone()) return;
        try {
          if (std::chrono::duration<double>(Clock::now() - arrived).count() > options_.request_seconds) {
            throw ApiError(503, "the request waited longer than a request may take; come back later");
          }
          send_json(*reply, make());
        } catch (const std::exception& error) {
          send_error(*reply, error);
        }
      });
}

// The name to take where a request gives none.
std::string ApiServer::only_model() const {
  std::vector<std::string> names;
  for (const ServedRun& run : catalog_.runs()) {
    try {
      model_file(run.folder, options_.checkpoint);
      names.push_back(run.id);
    } catch (const Error&) {
      // Trained, but not saved yet.
    }
  }
  if (names.size() == 1) return names.front();
  if (names.empty()) throw ApiError(404, "no run has a model yet; wait for its first checkpoint", "model");
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  throw ApiError(400, "model is missing, and there are several: " + all, "model");
}

bool ApiServer::goes_on(const std::function<bool()>& stops) {
  if (!stopping_) {
    if (!stops()) return true;
    stopping_ = true;
    stopped_at_ = Clock::now();
    http_->stop_accepting();
    files_->post([this] {
      for (const auto& [number, reply] : watching_) reply->end();
    });
    note_("stopping; finishing what was begun");
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - stopped_at_).count();
  return (!models_.is_idle() || loop_.waiting() > 0) && seconds < options_.request_seconds;
}

bool ApiServer::advance() {
  const bool any = models_.advance();
  const Clock::time_point now = Clock::now();
  if (now - looked_ < kLook) return any;
  looked_ = now;
  for (const std::weak_ptr<DecodingJob>& each : jobs_) {
    const auto job = each.lock();
    if (job == nullptr || !job->is_late(now)) continue;
    job->stop(ApiError(503, "the request took longer than " +
                                std::to_string(static_cast<int>(options_.request_seconds)) +
                                " seconds, which is the most; ask for fewer tokens"));
  }
  std::erase_if(jobs_, [](const std::weak_ptr<DecodingJob>& each) {
    const auto job = each.lock();
    return job == nullptr || job->has_ended();
  });
  publish_readings();
  return any;
}

}  // namespace routing
