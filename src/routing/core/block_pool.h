// Large blocks of memory that are kept for the next who asks.
//
// A step of training makes the same large tensors again and again. From malloc each would be new memory: the system
// clears it page by page when it is first used and takes it back when it is freed. Here blocks are cut from regions of
// pages of 2 MiB (where the system has them); what comes back is joined with its free neighbours and waits, so that
// later blocks of whatever size, gradients where activations were, find memory that was used before.
//
// How much may wait: blocks in use and used memory that waits together never take more than 9/8 of the most that was in
// use at once. What no longer fits goes back to the system, longest unused first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

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
  // Hands all that waits to the system.
  void release_waiting();

  struct Usage {
    std::size_t in_use = 0;   // bytes, rounded up to whole blocks
    std::size_t waiting = 0;  // bytes of free memory that was used and not handed back
    std::size_t most_in_use = 0;
    std::int64_t reused = 0;  // calls of take() that found such memory
  };
  Usage usage() const;

 private:
  struct Used {
    std::size_t bytes = 0;
    std::uint64_t since = 0;
  };
  friend BlockPool& block_pool();
  char* best_fit(std::size_t bytes) const;
  char* add_region(std::size_t bytes);
  void add_free(char* begin, std::size_t bytes);
  std::size_t forget_used(char* begin, std::size_t bytes);
  void make_room();
  void give_all_to_system();

  mutable std::mutex mutex_;
  std::map<char*, std::size_t> regions_;
  std::map<char*, std::size_t> free_;  // free parts of regions; neighbours are joined
  std::map<char*, Used> used_;         // what of them was used: since then it takes memory
  std::unordered_map<void*, std::size_t> taken_;
  std::uint64_t clock_ = 0;
  Usage usage_;
};

// The one pool of this process; never destroyed, because tensors may outlive everything. Children of fork() may use it.
BlockPool& block_pool();

}  // namespace routing
