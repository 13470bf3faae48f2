// Ranks that watch over each other while the thread that trains may be stuck in a collective.
//
// Every rank leaves a beat in the store and looks there for a verdict. One of them, or the process that started them,
// judges. A rank that cannot reach the store any more gives its own verdict.
#pragma once

#include "routing/distributed/watch/rank_judge.h"
#include "routing/distributed/watch/rank_status.h"
#include "routing/distributed/watch/rank_store.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace routing {

// The words of one attempt in the store.
struct RankKeys {
  std::string prefix = {};
  std::string beat(int rank) const { return prefix + "beat/" + std::to_string(rank); }
  std::string failed(int rank) const { return prefix + "failed/" + std::to_string(rank); }
  std::string verdict() const { return prefix + "verdict"; }
};
RankKeys keys_of_attempt(int attempt);

// The failure that stands under a key; nothing for a word that no rank of so many wrote.
std::optional<RankFailure> failure_in(RankStore& store, const std::string& key, int ranks);

// Reads all beats and failures and leaves a verdict, if there is reason for one. The first verdict stays.
class Jury {
 public:
  Jury(RankStore& store, RankKeys keys, int ranks, std::chrono::milliseconds timeout);
  std::optional<RankFailure> look();
  // The last finished step by what the ranks said.
  std::int64_t last_step();

 private:
  RankStore& store_;
  RankKeys keys_;
  int ranks_;
  RankJudge judge_;
};

class Heartbeat {
 public:
  struct Options {
    int rank = 0;
    int ranks = 1;
    std::chrono::milliseconds timeout{60000};
    bool judges = false;
    std::string master = {};       // where the store is, for messages
    bool rank_keeps_store = true;  // rank 0 does; otherwise somebody who is not a rank
    RankKeys keys = {};
    // Called once, from a thread of its own, when the run cannot go on.
    std::function<void(const RankFailure&)> lost = {};
  };
  // Takes a connection to the store of its own: calls must not wait for those of others.
  Heartbeat(std::unique_ptr<RankStore> store, RankStatus& status, Options options);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // This rank ends as planned; if it keeps the store, it waits until all do, up to `timeout`.
  void finish();
  // This rank ends because of an error, which the others are told. Returns the verdict on the whole run: its own error
  // unless somebody failed before it. `secondary` says that it only lost a connection: then the one that broke it is
  // waited for.
  RankFailure fail(const std::string& reason, bool secondary);

 private:
  void send_beat();
  void beat_loop();
  void guard_loop();
  void report(const RankFailure& failure);
  RankFailure store_lost(const std::string& how) const;
  void let_others_read();
  bool pause(std::chrono::milliseconds time);
  bool keeps_store() const { return options_.rank == 0 && options_.rank_keeps_store; }

  std::unique_ptr<RankStore> store_;
  RankStatus& status_;
  Options options_;
  std::unique_ptr<Jury> jury_;
  std::mutex sending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool quiet_ = false;  // the thread that trains has taken over
  std::optional<RankFailure> verdict_;
  std::chrono::steady_clock::time_point last_answer_;
  std::thread beats_, guard_;
};

}  // namespace routing
