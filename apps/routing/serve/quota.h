// How much may wait and run at a time. What is too much is refused at once, with a time to come back, instead of being
// taken and forgotten. Any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

namespace routing {

struct QuotaLimits {
  std::int64_t sequences = 64;    // decoded side by side
  std::int64_t waiting = 256;     // sequences that wait for their turn
  std::int64_t bytes = 64 << 20;  // of bodies, waiting and running
  std::int64_t tokens = 4 << 20;  // of prompts and of what was asked for, waiting and running
  std::int64_t tokens_per_request = 1 << 20;
};

class Quota;

// What a request takes; given back when the last owner lets go.
class QuotaTicket {
 public:
  ~QuotaTicket();
  QuotaTicket(const QuotaTicket&) = delete;
  QuotaTicket& operator=(const QuotaTicket&) = delete;
  // Once they are known. Throws an ApiError: 400 for more than any request may have, 429 where others take too many.
  void add_tokens(std::int64_t tokens);

 private:
  friend class Quota;
  QuotaTicket(Quota& quota, std::int64_t sequences, std::int64_t bytes)
      : quota_(&quota), sequences_(sequences), bytes_(bytes) {}
  Quota* quota_;
  std::int64_t sequences_;
  std::int64_t bytes_;
  std::int64_t tokens_ = 0;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

class Quota {
 public:
  explicit Quota(const QuotaLimits& limits) : limits_(limits) {}
  // Throws an ApiError: 400 for more sequences than are ever decoded side by side, 429 where the queue is full.
  std::shared_ptr<QuotaTicket> admit(std::int64_t sequences, std::int64_t bytes);
  const QuotaLimits& limits() const { return limits_; }
  struct Taken {
    std::int64_t requests = 0;
    std::int64_t sequences = 0;
    std::int64_t bytes = 0;
    std::int64_t tokens = 0;
    std::int64_t refused = 0;  // since the start
  };
  Taken taken() const;

 private:
  friend class QuotaTicket;
  // Seconds until as many sequences as wait have had their turn, by how long requests took of late.
  int retry_after() const;
  [[noreturn]] void refuse(const char* what, std::int64_t taken, std::int64_t limit);

  QuotaLimits limits_;
  mutable std::mutex mutex_;
  Taken taken_ = {};
  double usual_seconds_ = 1.0;  // of a request, the later ones counting more
};

}  // namespace routing
