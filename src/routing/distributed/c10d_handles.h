// What is behind the handles of TcpRankStore and GlooRanks: for the files of this room that talk to c10d, so that no
// other file reads its headers.
#pragma once

#include "routing/distributed/rank_group.h"
#include "routing/distributed/rank_store.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace routing {

struct TcpRankStore::Handle {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

struct GlooRanks::Handle {
  c10::intrusive_ptr<c10d::ProcessGroup> process_group;
};

}  // namespace routing
