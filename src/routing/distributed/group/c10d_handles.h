// What is behind the handles of TcpRankStore and RankGroup: for the files of this room that talk to c10d, so that no
// other file reads its headers.
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/distributed/group/tcp_rank_store.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <exception>

namespace routing {

struct TcpRankStore::Handle {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

// As a ConnectionError of this rank, with the first line of what Gloo said.
[[noreturn]] void throw_connection_lost(int rank, const std::exception& error);

struct RankGroup::Handle {
  c10::intrusive_ptr<c10d::ProcessGroup> process_group;
};

}  // namespace routing
