#include "routing/distributed/watch/heartbeat.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

RankKeys keys_of_attempt(int attempt) {
  return {.prefix = "routing/" + std::to_string(attempt) + "/"};
}

std::optional<RankFailure> failure_in(RankStore& store, const std::string& key, int ranks) {
  const std::optional<RankFailure> failure = failure_from_record(store.get(key).value_or(""));
  const bool is_ours = failure && failure->rank >= -1 && failure->rank < ranks;
  return is_ours ? failure : std::nullopt;
}

Jury::Jury(RankStore& store, RankKeys keys, int ranks, std::chrono::milliseconds timeout)
    : store_(store), keys_(std::move(keys)), ranks_(ranks), judge_(ranks, judge_limits(timeout), Clock::now()) {}

std::int64_t Jury::last_step() {
  std::int64_t step = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (const auto beat = beat_from_text(store_.get(keys_.beat(rank)).value_or(""))) step = std::max(step, beat->step);
  }
  return step;
}

std::optional<RankFailure> Jury::look() {
  if (const auto verdict = failure_in(store_, keys_.verdict(), ranks_)) return verdict;
  std::vector<std::optional<RankBeat>> beats;
  std::optional<RankFailure> failure;
  for (int rank = 0; rank < ranks_; ++rank) {
    beats.push_back(beat_from_text(store_.get(keys_.beat(rank)).value_or("")));
    const auto failed = failure_in(store_, keys_.failed(rank), ranks_);
    if (!failure) failure = failed;
  }
  const auto judged = judge_.look(beats, Clock::now());
  if (!failure) failure = judged;
  if (failure) store_.set(keys_.verdict(), to_record(*failure));
  return failure;
}

Heartbeat::Heartbeat(std::unique_ptr<RankStore> store, RankStatus& status, Options options)
    : store_(std::move(store)), status_(status), options_(std::move(options)), last_answer_(Clock::now()) {
  if (options_.judges) jury_ = std::make_unique<Jury>(*store_, options_.keys, options_.ranks, options_.timeout);
  beats_ = std::thread([this] { beat_loop(); });
  guard_ = std::thread([this] { guard_loop(); });
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  beats_.join();
  guard_.join();
}

// Whether to go on after it.
bool Heartbeat::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stop_; });
}

void Heartbeat::report(const RankFailure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (verdict_) return;
    verdict_ = failure;
    if (quiet_) {
      changed_.notify_all();
      return;
    }
  }
  changed_.notify_all();
  let_others_read();
  if (options_.lost) options_.lost(failure);
}

// The store goes with the rank that keeps it: before it ends, the others must have seen the verdict there.
void Heartbeat::let_others_read() {
  if (keeps_store()) pause(3 * beat_period(options_.timeout));
}

RankFailure Heartbeat::store_lost(const std::string& how) const {
  return {.rank = options_.rank_keeps_store ? 0 : -1,
          .step = status_.step(),
          .reason = (options_.rank_keeps_store ? "the store that it keeps at " : "the store at ") + options_.master +
                    " " + how};
}

// One after the other: an older beat must not come after the last one.
void Heartbeat::send_beat() {
  const std::lock_guard lock(sending_);
  store_->set(options_.keys.beat(options_.rank), to_text(status_.beat()));
}

void Heartbeat::beat_loop() {
  const std::chrono::milliseconds period = beat_period(options_.timeout);
  do {
    try {
      send_beat();
      std::optional<RankFailure> failure;
      if (jury_) {
        failure = jury_->look();
      } else {
        failure = failure_in(*store_, options_.keys.verdict(), options_.ranks);
      }
      {
        const std::lock_guard lock(mutex_);
        last_answer_ = Clock::now();
      }
      if (failure) report(*failure);
    } catch (const StoreError&) {
      // The other end has closed the connection: it will not come back.
      report(store_lost("is gone"));
      return;
    }
  } while (pause(period));
}

// A cut network shows as a call that does not return.
void Heartbeat::guard_loop() {
  const std::chrono::milliseconds period = beat_period(options_.timeout);
  const std::chrono::milliseconds limit = judge_limits(options_.timeout).silent;
  while (pause(period)) {
    std::chrono::milliseconds silence{0};
    {
      const std::lock_guard lock(mutex_);
      silence = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last_answer_);
    }
    if (silence < limit) continue;
    report(store_lost("has not answered for " + to_text(silence) + "; rank " + std::to_string(options_.rank) +
                      " has lost its network, or the other side is stopped"));
  }
}

void Heartbeat::finish() {
  status_.enter(RankPhase::ended);
  {
    const std::lock_guard lock(mutex_);
    quiet_ = true;
  }
  try {
    send_beat();
    const auto deadline = Clock::now() + options_.timeout;
    for (int rank = 0; keeps_store() && rank < options_.ranks && Clock::now() < deadline;) {
      const auto beat = beat_from_text(store_->get(options_.keys.beat(rank)).value_or(""));
      if (beat && beat->phase == RankPhase::ended) {
        ++rank;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  } catch (const StoreError&) {
    // The one that keeps it has already left: it waits for us only so long.
  }
}

RankFailure Heartbeat::fail(const std::string& reason, bool secondary) {
  RankFailure own{.rank = options_.rank, .step = status_.step(), .reason = reason};
  std::unique_lock lock(mutex_);
  quiet_ = true;
  const bool judged = verdict_.has_value();
  const bool answers = Clock::now() - last_answer_ < 2 * beat_period(options_.timeout);
  lock.unlock();
  status_.enter(RankPhase::ended);
  if (!judged && !secondary) {
    try {
      if (answers) store_->set(options_.keys.failed(options_.rank), to_record(own));
    } catch (const StoreError&) {
      return own;
    }
    let_others_read();
    return own;
  }
  lock.lock();
  // Somebody judges within the time of silence; a little more for the way.
  const auto limit = judge_limits(options_.timeout);
  changed_.wait_for(lock, limit.waiting, [this] { return verdict_.has_value(); });
  RankFailure result = verdict_.value_or(own);
  lock.unlock();
  let_others_read();
  return result;
}

}  // namespace routing
