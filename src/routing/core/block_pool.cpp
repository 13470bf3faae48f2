#include "routing/core/block_pool.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <pthread.h>
#include <sys/mman.h>

namespace routing {
namespace {

constexpr std::size_t kUnit = std::size_t{64} << 10U;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
// Of a region, at least. Only pages that somebody writes to take memory.
constexpr std::size_t kRegion = std::size_t{64} << 20U;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

// Linux aligns mappings to small pages: map some more and cut off the ends.
char* map_region(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* whole = static_cast<char*>(mapped);
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

// The smallest free part that is large enough, of equal ones the lowest; null if there is none.
char* BlockPool::best_fit(std::size_t bytes) const {
  auto best = free_.end();
  for (auto part = free_.begin(); part != free_.end(); ++part) {
    if (part->second >= bytes && (best == free_.end() || part->second < best->second)) best = part;
  }
  return best == free_.end() ? nullptr : best->first;
}

char* BlockPool::add_region(std::size_t bytes) {
  bytes = std::max(kRegion, round_up(bytes, kHugePage));
  char* region = nullptr;
  try {
    region = map_region(bytes);
  } catch (const std::bad_alloc&) {
    give_all_to_system();  // what nobody uses may be what is missing
    region = map_region(bytes);
  }
  try {
    regions_.emplace(region, bytes);
    free_.emplace(region, bytes);
  } catch (...) {
    regions_.erase(region);
    munmap(region, bytes);
    throw;
  }
  return region;
}

// Joined with its neighbours. Regions that happen to lie side by side stay apart: each goes back as it came.
void BlockPool::add_free(char* begin, std::size_t bytes) {
  auto part = free_.emplace(begin, bytes).first;
  const auto join = [&](auto first, auto second) {
    if (first->first + first->second != second->first || regions_.count(second->first) > 0) return;
    first->second += second->second;
    free_.erase(second);
  };
  if (std::next(part) != free_.end()) join(part, std::next(part));
  if (part != free_.begin()) join(std::prev(part), part);
}

// Somebody else counts this stretch of memory from now on. Returns how much of it was used.
std::size_t BlockPool::forget_used(char* begin, std::size_t bytes) {
  char* const end = begin + bytes;
  std::size_t found = 0;
  auto one = used_.upper_bound(begin);
  if (one != used_.begin()) --one;
  while (one != used_.end() && one->first < end) {
    char* const one_begin = one->first;
    char* const one_end = one_begin + one->second.bytes;
    const std::uint64_t since = one->second.since;
    if (one_end <= begin) {
      ++one;
      continue;
    }
    found += static_cast<std::size_t>(std::min(end, one_end) - std::max(begin, one_begin));
    one = used_.erase(one);
    if (one_begin < begin) used_.emplace(one_begin, Used{static_cast<std::size_t>(begin - one_begin), since});
    if (one_end > end) used_.emplace(end, Used{static_cast<std::size_t>(one_end - end), since});
  }
  usage_.waiting -= found;
  return found;
}

void BlockPool::make_room() {
  while (usage_.in_use + usage_.waiting > usage_.most_in_use + usage_.most_in_use / 8) {
    const auto oldest = std::min_element(used_.begin(), used_.end(),
                                         [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
    madvise(oldest->first, oldest->second.bytes, MADV_DONTNEED);
    usage_.waiting -= oldest->second.bytes;
    used_.erase(oldest);
  }
}

void BlockPool::give_all_to_system() {
  for (const auto& [begin, used] : used_) madvise(begin, used.bytes, MADV_DONTNEED);
  used_.clear();
  usage_.waiting = 0;
  for (auto region = regions_.begin(); region != regions_.end();) {
    const auto part = free_.find(region->first);
    if (part == free_.end() || part->second != region->second) {
      ++region;
      continue;
    }
    munmap(region->first, region->second);
    free_.erase(part);
    region = regions_.erase(region);
  }
}

void* BlockPool::take(std::size_t bytes) {
  bytes = round_up(bytes, kUnit);
  const std::lock_guard lock(mutex_);
  char* block = best_fit(bytes);
  if (block == nullptr) block = add_region(bytes);
  taken_.emplace(block, bytes);
  const std::size_t rest = free_.at(block) - bytes;
  free_.erase(block);
  if (rest > 0) free_.emplace(block + bytes, rest);
  if (forget_used(block, bytes) > 0) ++usage_.reused;
  usage_.in_use += bytes;
  usage_.most_in_use = std::max(usage_.most_in_use, usage_.in_use);
  make_room();
  return block;
}

bool BlockPool::give_back(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(block);
  if (found == taken_.end()) return false;
  const std::size_t bytes = found->second;
  taken_.erase(found);
  add_free(static_cast<char*>(block), bytes);
  used_.emplace(static_cast<char*>(block), Used{bytes, ++clock_});
  usage_.in_use -= bytes;
  usage_.waiting += bytes;
  make_room();
  return true;
}

void BlockPool::release_waiting() {
  const std::lock_guard lock(mutex_);
  give_all_to_system();
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
