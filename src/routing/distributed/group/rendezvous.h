// How ranks find each other: one keeps a store, all sign in, rank 0 calls the roll.
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/distributed/watch/heartbeat.h"
#include "routing/distributed/watch/rank_place.h"

#include <chrono>
#include <functional>
#include <memory>

namespace routing {

// The ranks did not come together: too few, too many, or with different ideas of how many there are.
class RendezvousError : public Error {
 public:
  using Error::Error;
};

struct RankOptions {
  std::chrono::milliseconds timeout{60000};
  // Called from another thread, once, when the run cannot go on: see Heartbeat.
  std::function<void(const RankFailure&)> lost = {};
};

// Who is there and under which number: the roll of one attempt. For RankSession and its tests.
struct Roll {
  int rank = 0;
  int size = 1;
};

// This process as one of several: connected, watched, and counted.
class RankSession {
 public:
  // Finds the store, or keeps it. Throws a StoreError. `status` is what the others are told about this rank.
  RankSession(RankPlace place, RankOptions options,
              std::shared_ptr<RankStatus> status = std::make_shared<RankStatus>());
  ~RankSession();
  // Waits up to options.timeout for all ranks. At a later attempt, where a rank keeps the store, it waits a quarter of
  // that, and goes on with those that have come, counted anew. Throws a RendezvousError or a ConnectionError.
  void join();

  // Once joined.
  RankGroup& group() { return *group_; }
  RankStatus& status() { return *status_; }
  // Do the others notice if this rank is lost?
  bool is_watched() const { return heartbeat_ != nullptr; }
  const std::shared_ptr<RankGroup>& shared_group() const { return group_; }
  int local_rank() const { return place_.local_rank; }
  // Both are the end of it; see Heartbeat.
  void finish();
  RankFailure fail(const std::string& reason, bool secondary);

 private:
  StoreAddress address() const { return {.host = place_.master_address, .port = place_.master_port}; }
  std::unique_ptr<TcpRankStore> visit() const;
  void start_heartbeat(const RankKeys& keys, const Roll& roll);

  RankPlace place_;
  RankOptions options_;
  std::unique_ptr<TcpRankStore> kept_;
  std::unique_ptr<TcpRankStore> store_;
  std::shared_ptr<RankStatus> status_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::shared_ptr<RankGroup> group_;
};

struct RollOptions {
  std::chrono::milliseconds patience{60000};
  // Go on with those that have come when the time is up; rank 0 must be one of them.
  bool take_who_came = false;
};
Roll call_the_roll(RankStore& store, const RankKeys& keys, const RankPlace& place, const RollOptions& options);

// This machine's own address as seen on the way to another one.
std::string own_address_towards(const std::string& host, std::uint16_t port);

}  // namespace routing
