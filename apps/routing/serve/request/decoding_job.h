// A request that decodes: from the queue to its answer, whole or as a stream. Lives on the thread that computes; the
// handle of the answer is told from there.
#pragma once

#include "routing/generation/completion_batch.h"
#include "routing/serving/http/reply.h"
#include "serve/compute_loop.h"
#include "serve/quota.h"
#include "serve/request/api_error.h"
#include "serve/request/completion_fields.h"
#include "serve/served_models.h"
#include "serve/server_metrics.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace routing {

// What all jobs share; outlives them.
struct JobSurroundings {
  ComputeLoop& loop;
  ServedModels& models;
  ServerMetrics& metrics;
  double most_seconds = 600.0;                                        // of a request, from its arrival on
  std::function<std::string(const std::string&)> without_paths = {};  // of messages
};

// What came with the request.
struct JobRequest {
  std::shared_ptr<http::Reply> reply = {};
  std::shared_ptr<QuotaTicket> ticket = {};
  std::chrono::steady_clock::time_point arrived = std::chrono::steady_clock::now();
};

class DecodingJob : public std::enable_shared_from_this<DecodingJob> {
 public:
  DecodingJob(JobSurroundings& surroundings, JobRequest request)
      : surroundings_(surroundings), request_(std::move(request)) {}
  virtual ~DecodingJob() = default;
  DecodingJob(const DecodingJob&) = delete;
  DecodingJob& operator=(const DecodingJob&) = delete;

  // Puts its prompts into the model's batch, or answers why not.
  void begin();
  // Ends it now, if it has not ended: the client hears why, if it still listens.
  void stop(const ApiError& reason);
  bool is_late(std::chrono::steady_clock::time_point now) const;
  bool has_ended() const { return ended_; }

 protected:
  struct Prepared {
    std::vector<CompletionRequest> requests = {};  // one for each prompt; none where nothing is to be drawn
    std::int64_t prompt_tokens = 0;                // of all prompts
  };
  virtual const SamplingFields& fields() const = 0;
  // Choices are numbered prompt after prompt. Throws what is wrong with the request.
  virtual Prepared prepare(ServedModel& model) = 0;

  // False: the choice is at its end.
  virtual bool take(std::size_t choice, const TokenDraw& draw, std::span<const float> logits) = 0;
  virtual void end(std::size_t choice, StopReason reason) = 0;
  // The whole answer; of a stream what is still to be sent before [DONE].
  virtual void answer() = 0;

  // Of the model: its name and what its likelihoods are worth.
  const std::string& served_name() const { return model_->name; }
  void add_labels(nlohmann::ordered_json& object) const { model_->add_labels(object); }
  nlohmann::ordered_json usage() const;
  // An event of a stream, which begins with the first.
  void send_event(const nlohmann::ordered_json& object);
  void send_event_text(const std::string& json);
  void send_whole(const nlohmann::ordered_json& object) const;

 private:
  class Listener;
  void add(Prepared prepared);
  void heard_prompt(std::size_t prompt, const CompletionListener::Prompt& read);
  bool heard_token(std::size_t choice, const TokenDraw& draw, std::span<const float> logits);
  void heard_end(std::size_t choice, StopReason reason);
  void heard_failure(const std::string& reason);
  void write(std::string text);
  void finish(int status);

  JobSurroundings& surroundings_;  // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): outlives all jobs
  JobRequest request_;
  std::shared_ptr<ServedModel> model_ = {};
  std::vector<std::uint64_t> in_batch_ = {};
  std::vector<std::int64_t> cached_tokens_ = {};  // of each prompt
  std::int64_t prompt_tokens_ = 0;
  std::int64_t new_tokens_ = 0;
  std::size_t open_choices_ = 0;
  std::chrono::steady_clock::time_point last_token_ = {};
  bool streaming_ = false;
  bool ended_ = false;
};

}  // namespace routing
