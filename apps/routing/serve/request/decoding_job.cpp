#include "serve/request/decoding_job.h"

#include "shell/json_text.h"

#include <numeric>
#include <utility>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

// Of a prompt that is read in more pieces than this, the client of a stream hears how far it is.
constexpr std::int64_t kSilentTokens = 512;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

}  // namespace

// Holds the job as long as the batch may call it.
class DecodingJob::Listener : public CompletionListener {
 public:
  Listener(std::shared_ptr<DecodingJob> job, std::size_t prompt, std::size_t first_choice)
      : job_(std::move(job)), prompt_(prompt), first_choice_(first_choice) {}
  void prompt_read(const Prompt& prompt) override { job_->heard_prompt(prompt_, prompt); }
  bool token(std::size_t sample, const TokenDraw& draw, std::span<const float> logits) override {
    return job_->heard_token(first_choice_ + sample, draw, logits);
  }
  void ended(std::size_t sample, StopReason reason) override { job_->heard_end(first_choice_ + sample, reason); }
  void failed(const std::string& reason) override { job_->heard_failure(reason); }

 private:
  std::shared_ptr<DecodingJob> job_;
  std::size_t prompt_;
  std::size_t first_choice_;
};

void DecodingJob::begin() {
  if (request_.reply->gone()) return;
  try {
    model_ = surroundings_.models.get(fields().model);
    add(prepare(*model_));
  } catch (const std::exception& error) {
    stop(api_error_of(error));
    return;
  }
  const std::weak_ptr<DecodingJob> self = weak_from_this();
  request_.reply->when_gone([self, &loop = surroundings_.loop] {
    loop.post([self] {
      if (const auto job = self.lock()) job->stop(ApiError(499, "the client is gone"));
    });
  });
  if (open_choices_ == 0 && !ended_) {
    answer();
    finish(200);
  }
}

void DecodingJob::add(Prepared prepared) {
  prompt_tokens_ = prepared.prompt_tokens;
  std::int64_t tokens = prompt_tokens_;
  for (const CompletionRequest& each : prepared.requests) {
    tokens += each.max_new_tokens * each.samples;
    open_choices_ += static_cast<std::size_t>(each.samples);
  }
  request_.ticket->add_tokens(tokens);
  cached_tokens_.assign(prepared.requests.size(), 0);
  std::size_t choice = 0;
  for (std::size_t prompt = 0; prompt < prepared.requests.size(); ++prompt) {
    const auto samples = static_cast<std::size_t>(prepared.requests[prompt].samples);
    in_batch_.push_back(model_->batch->add(std::move(prepared.requests[prompt]),
                                           std::make_shared<Listener>(shared_from_this(), prompt, choice)));
    choice += samples;
  }
}

void DecodingJob::stop(const ApiError& reason) {
  if (ended_) return;
  for (const std::uint64_t number : in_batch_) model_->batch->cancel(number);
  const std::string message = reason.names_paths ? surroundings_.without_paths(reason.what()) : reason.what();
  const Json error = error_json(reason.status(), message, reason.param());
  if (streaming_) {
    write("data: " + json_text(error) + "\n\n");
    request_.reply->end();
  } else {
    http::Response response{.status = reason.status(), .body = json_text(error)};
    if (reason.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(reason.retry_after));
    request_.reply->send(std::move(response));
  }
  finish(reason.status());
}

bool DecodingJob::is_late(Clock::time_point now) const {
  return !ended_ && std::chrono::duration<double>(now - request_.arrived).count() > surroundings_.most_seconds;
}

Json DecodingJob::usage() const {
  return {{"prompt_tokens", prompt_tokens_},
          {"completion_tokens", new_tokens_},
          {"total_tokens", prompt_tokens_ + new_tokens_},
          {"prompt_tokens_details",
           {{"cached_tokens", std::accumulate(cached_tokens_.begin(), cached_tokens_.end(), std::int64_t{0})}}}};
}

void DecodingJob::write(std::string text) {
  if (!streaming_) {
    streaming_ = true;
    request_.reply->begin(
        {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}});
  }
  request_.reply->write(std::move(text));
}

void DecodingJob::send_event(const Json& object) {
  send_event_text(json_text(object));
}

void DecodingJob::send_event_text(const std::string& json) {
  write("data: " + json + "\n\n");
}

void DecodingJob::send_whole(const Json& object) const {
  request_.reply->send({.body = json_text(object)});
}

void DecodingJob::heard_prompt(std::size_t prompt, const CompletionListener::Prompt& read) {
  cached_tokens_[prompt] = read.cached_tokens;
  if (!fields().stream || read.tokens <= kSilentTokens || read.read >= read.tokens) return;
  write(": reading " + std::to_string(read.read) + " of " + std::to_string(read.tokens) + "\n\n");
}

bool DecodingJob::heard_token(std::size_t choice, const TokenDraw& draw, std::span<const float> logits) {
  const Clock::time_point now = Clock::now();
  if (new_tokens_++ == 0) {
    surroundings_.metrics.first_token_after(seconds_since(request_.arrived));
  } else if (choice == 0) {
    surroundings_.metrics.token_after(std::chrono::duration<double>(now - last_token_).count());
  }
  if (choice == 0) last_token_ = now;
  return take(choice, draw, logits);
}

void DecodingJob::heard_end(std::size_t choice, StopReason reason) {
  end(choice, reason);
  if (--open_choices_ > 0 || ended_) return;
  answer();
  finish(200);
}

void DecodingJob::heard_failure(const std::string& reason) {
  // The batch has let go of this prompt already; the others are cancelled.
  stop(ApiError(503, reason));
}

void DecodingJob::finish(int status) {
  if (status == 200 && streaming_) {
    request_.reply->write("data: [DONE]\n\n");
    request_.reply->end();
  }
  ended_ = true;
  surroundings_.metrics.finished({.status = status,
                                  .seconds = seconds_since(request_.arrived),
                                  .prompt_tokens = prompt_tokens_,
                                  .new_tokens = new_tokens_});
  request_.ticket.reset();
  // The model's batch holds this job, and others hold the model.
  model_.reset();
}

}  // namespace routing
