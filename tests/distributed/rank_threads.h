// Ranks as threads of one process, each with a session of its own; rank 0 keeps the store.
#pragma once

#include "routing/distributed/group/rendezvous.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace routing {

// A port of this machine that nobody has.
inline std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  EXPECT_TRUE(bound);
  ::close(socket);
  return ntohs(address.sin_port);
}

inline RankPlace local_place(int rank, int size, std::uint16_t port) {
  return {.rank = rank, .size = size, .local_rank = rank, .master_address = "127.0.0.1", .master_port = port};
}

using Group = std::shared_ptr<RankGroup>;

// Calls body(group) for every rank at once. What a rank throws is a failure of the test; the others then lose their
// connection to it and end too. Ranks that wait for one another for ever end the program.
inline void as_ranks(int ranks, const std::function<void(const Group&)>& body) {
  const std::uint16_t port = free_port();
  std::atomic<bool> failed{false};
  const auto run = [&](int rank) {
    try {
      RankSession session(local_place(rank, ranks, port),
                          {.timeout = std::chrono::seconds(30), .lost = [&](const RankFailure& failure) {
                             if (failed) return;
                             std::fprintf(stderr, "%s\n", failure.text().c_str());
                             std::abort();
                           }});
      try {
        session.join();
        session.status().enter(RankPhase::computing);
        body(session.shared_group());
        session.finish();
      } catch (...) {
        failed = true;
        throw;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << " of " << ranks << ": " << error.what();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(run, rank);
    // Who comes before the store is there tries again a second later.
    if (rank == 0 && ranks > 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (std::thread& thread : threads) thread.join();
}

// The same bits, NaNs and zeros with signs included.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.detach().contiguous();
  const at::Tensor right = b.detach().contiguous();
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type() &&
         std::string_view(static_cast<const char*>(left.data_ptr()), left.nbytes()) ==
             std::string_view(static_cast<const char*>(right.data_ptr()), right.nbytes());
}

}  // namespace routing
