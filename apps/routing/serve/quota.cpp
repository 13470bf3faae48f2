#include "serve/quota.h"

#include "serve/request/api_error.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace routing {
namespace {

constexpr double kWeightOfLast = 0.1;
constexpr int kLongestWait = 60;

}  // namespace

QuotaTicket::~QuotaTicket() {
  const std::lock_guard lock(quota_->mutex_);
  Quota::Taken& taken = quota_->taken_;
  --taken.requests;
  taken.sequences -= sequences_;
  taken.bytes -= bytes_;
  taken.tokens -= tokens_;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
  quota_->usual_seconds_ += kWeightOfLast * (seconds - quota_->usual_seconds_);
}

void QuotaTicket::add_tokens(std::int64_t tokens) {
  const QuotaLimits& limits = quota_->limits_;
  const std::lock_guard lock(quota_->mutex_);
  if (tokens > limits.tokens_per_request) {
    throw ApiError(400, "the request has " + std::to_string(tokens) + " tokens, prompts and max_tokens together, but " +
                            std::to_string(limits.tokens_per_request) + " are the most; ask for fewer");
  }
  if (quota_->taken_.tokens + tokens > limits.tokens) quota_->refuse("tokens", quota_->taken_.tokens, limits.tokens);
  quota_->taken_.tokens += tokens;
  tokens_ += tokens;
}

std::shared_ptr<QuotaTicket> Quota::admit(std::int64_t sequences, std::int64_t bytes) {
  if (sequences > limits_.sequences) {
    throw ApiError(400,
                   "the request has " + std::to_string(sequences) + " choices of all its prompts, but " +
                       std::to_string(limits_.sequences) + " are decoded side by side; ask for fewer",
                   "n");
  }
  const std::lock_guard lock(mutex_);
  const std::int64_t most = limits_.sequences + limits_.waiting;
  if (taken_.sequences + sequences > most) refuse("sequences", taken_.sequences, most);
  if (taken_.bytes + bytes > limits_.bytes) refuse("bytes", taken_.bytes, limits_.bytes);
  // Before anything is taken: this may throw.
  std::shared_ptr<QuotaTicket> ticket(new QuotaTicket(*this, 0, 0));
  ++taken_.requests;
  taken_.sequences += ticket->sequences_ = sequences;
  taken_.bytes += ticket->bytes_ = bytes;
  return ticket;
}

Quota::Taken Quota::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

int Quota::retry_after() const {
  const double waves =
      static_cast<double>(taken_.sequences) / static_cast<double>(std::max<std::int64_t>(1, limits_.sequences));
  return std::clamp(static_cast<int>(std::ceil(waves * usual_seconds_)), 1, kLongestWait);
}

void Quota::refuse(const char* what, std::int64_t taken, std::int64_t limit) {
  ++taken_.refused;
  throw ApiError(429, "the queue is full: " + std::to_string(taken) + " of " + std::to_string(limit) + " " + what +
                          " are taken; come back later")
      .with_retry_after(retry_after());
}

}  // namespace routing
