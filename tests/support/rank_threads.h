// Ranks as threads of one process: each with a session of its own, over 127.0.0.1.
#pragma once

#include "routing/distributed/group/rendezvous.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace routing::support {

// Calls body(group) once for each rank, at the same time. The exceptions of the ranks, in their order: null for those
// that came through.
inline std::vector<std::exception_ptr> try_over_ranks(int ranks, const std::function<void(RankGroup&)>& body) {
  constexpr std::chrono::seconds kPatience{60};
  // A rank that leaves cuts its connections, though others may still be on their way out of the same collective. So
  // they wait for each other; but not for ever, because cut connections are what frees a rank that waits for a failed
  // one.
  constexpr std::chrono::seconds kLongestGoodbye{3};
  const TcpRankStore store({}, TcpRankStore::Role::keep, kPatience);
  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;
  const auto wait_for_all = [&] {
    std::unique_lock lock(mutex);
    ++ended;
    changed.notify_all();
    changed.wait_for(lock, kLongestGoodbye, [&] { return ended == ranks; });
  };
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::exception_ptr& error = errors[static_cast<std::size_t>(rank)];
      try {
        RankSession session({.rank = rank,
                             .size = ranks,
                             .local_rank = rank,
                             .master_address = "127.0.0.1",
                             .master_port = store.port(),
                             .store_is_kept = true},
                            {.timeout = kPatience});
        session.join();
        try {
          body(session.group());
        } catch (...) {
          error = std::current_exception();
        }
        wait_for_all();
        if (!error) session.finish();
      } catch (...) {
        error = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// The same; throws the first of the exceptions.
inline void over_ranks(int ranks, const std::function<void(RankGroup&)>& body) {
  for (const std::exception_ptr& error : try_over_ranks(ranks, body)) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace routing::support
