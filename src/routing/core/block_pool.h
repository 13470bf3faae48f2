// Large blocks of memory that are kept for the next who asks.
//
// A step of training makes the same large tensors again and again. From malloc each would be new memory: the system
// clears it page by page when it is first used and takes it back when it is freed. Here a block that comes back waits
// for the next of nearly its size; blocks from 8 MiB on lie on pages of 2 MiB where the system has them.
//
// How much may wait: blocks in use and waiting ones together never take more than 9/8 of the most that was in use at
// once, and what no longer fits goes back to the system, longest unused first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace routing {

class BlockPool {
 public:
  BlockPool() = default;
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // At least `bytes`, aligned to a page; what is in it is undefined. Throws std::bad_alloc. Any thread.
  void* take(std::size_t bytes);
  // False if the block is not one of this pool's.
  bool give_back(void* block);
  // Hands all waiting blocks to the system.
  void release_waiting();

  struct Usage {
    std::size_t in_use = 0;   // bytes, rounded up to whole blocks
    std::size_t waiting = 0;  // bytes
    std::size_t most_in_use = 0;
    std::int64_t reused = 0;  // calls of take() that found a waiting block
  };
  Usage usage() const;

 private:
  struct Waiting {
    void* block = nullptr;
    std::size_t bytes = 0;
  };
  friend BlockPool& block_pool();
  void* take_waiting(std::size_t bytes);
  void* take_new(std::size_t bytes);
  void release_all_waiting();
  void make_room(std::size_t bytes);

  mutable std::mutex mutex_;
  std::unordered_map<void*, std::size_t> taken_;
  std::vector<Waiting> waiting_;  // in the order in which they came back
  Usage usage_;
};

// The one pool of this process; never destroyed, because tensors may outlive everything. Children of fork() may use it.
BlockPool& block_pool();

}  // namespace routing
