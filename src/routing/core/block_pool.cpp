#include "routing/core/block_pool.h"

#include <algorithm>
#include <new>
#include <pthread.h>
#include <sys/mman.h>

namespace routing {
namespace {

constexpr std::size_t kSmallUnit = std::size_t{64} << 10U;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
// From here on a block starts on a huge page and fills the last one: at most a quarter is wasted.
constexpr std::size_t kHugeFrom = 4 * kHugePage;

std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes >= kHugeFrom ? kHugePage : kSmallUnit;
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

void* map(std::size_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  return block;
}

// Linux aligns mappings to small pages: map some more and cut off the ends.
void* map_block(std::size_t bytes) {
  if (bytes < kHugeFrom) return map(bytes);
  char* whole = static_cast<char*>(map(bytes + kHugePage));
  const std::size_t front = (kHugePage - reinterpret_cast<std::uintptr_t>(whole) % kHugePage) % kHugePage;
  if (front > 0) munmap(whole, front);
  if (front < kHugePage) munmap(whole + front + bytes, kHugePage - front);
  madvise(whole + front, bytes, MADV_HUGEPAGE);  // a wish: without huge pages it still works
  return whole + front;
}

}  // namespace

BlockPool::~BlockPool() {
  release_waiting();
}

// The smallest that fits without wasting more than a quarter.
void* BlockPool::take_waiting(std::size_t bytes) {
  auto best = waiting_.end();
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (it->bytes < bytes || it->bytes > bytes + bytes / 4) continue;
    if (best == waiting_.end() || it->bytes < best->bytes) best = it;
  }
  if (best == waiting_.end()) return nullptr;
  void* block = best->block;
  taken_.emplace(block, best->bytes);
  usage_.waiting -= best->bytes;
  usage_.in_use += best->bytes;
  ++usage_.reused;
  waiting_.erase(best);
  return block;
}

void BlockPool::make_room(std::size_t bytes) {
  const std::size_t most = std::max(usage_.most_in_use, usage_.in_use + bytes);
  std::size_t released = 0;
  while (released < waiting_.size() && usage_.in_use + bytes + usage_.waiting > most + most / 8) {
    munmap(waiting_[released].block, waiting_[released].bytes);
    usage_.waiting -= waiting_[released].bytes;
    ++released;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(released));
}

void BlockPool::release_all_waiting() {
  for (const Waiting& waiting : waiting_) munmap(waiting.block, waiting.bytes);
  waiting_.clear();
  usage_.waiting = 0;
}

void* BlockPool::take_new(std::size_t bytes) {
  make_room(bytes);
  void* block = nullptr;
  try {
    block = map_block(bytes);
  } catch (const std::bad_alloc&) {
    release_all_waiting();  // what nobody uses may be what is missing
    block = map_block(bytes);
  }
  try {
    taken_.emplace(block, bytes);
  } catch (...) {
    munmap(block, bytes);
    throw;
  }
  usage_.in_use += bytes;
  return block;
}

void* BlockPool::take(std::size_t bytes) {
  bytes = rounded(bytes);
  const std::lock_guard lock(mutex_);
  void* block = take_waiting(bytes);
  if (block == nullptr) block = take_new(bytes);
  usage_.most_in_use = std::max(usage_.most_in_use, usage_.in_use);
  return block;
}

bool BlockPool::give_back(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(block);
  if (found == taken_.end()) return false;
  waiting_.push_back({block, found->second});
  usage_.in_use -= found->second;
  usage_.waiting += found->second;
  taken_.erase(found);
  make_room(0);
  return true;
}

void BlockPool::release_waiting() {
  const std::lock_guard lock(mutex_);
  release_all_waiting();
}

BlockPool::Usage BlockPool::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

BlockPool& block_pool() {
  static auto* pool = [] {
    auto* made = new BlockPool;
    // A child of fork() must not find the lock held by a thread that it does not have.
    pthread_atfork([] { block_pool().mutex_.lock(); }, [] { block_pool().mutex_.unlock(); },
                   [] { block_pool().mutex_.unlock(); });
    return made;
  }();
  return *pool;
}

namespace {

// Made before main: a child forked while another thread makes the pool would wait for that thread forever.
[[maybe_unused]] const BlockPool& made_early = block_pool();

}  // namespace

}  // namespace routing
