// The part of HeadCache that says what sequences hold, and keeps some of them for forks.
#include "routing/attention/cache/head_cache.h"

#include <utility>

namespace routing {

void HeadCache::keep_sequence(std::int64_t sequence) {
  Sequence& kept = at(sequence);
  if (std::exchange(kept.kept, true)) return;
  keepers_.resize(holders_.size(), 0);
  kept_places_ += places_of(kept);
  for_each_place(kept, [&](std::size_t row) { rows_kept_ += keepers_[row]++ == 0 ? 1 : 0; });
}

std::int64_t HeadCache::places_of(const Sequence& sequence) {
  std::int64_t places = 0;
  for (const List& list : sequence.lists) places += list.size();
  return places;
}

std::int64_t HeadCache::bytes_in_use() const {
  std::int64_t places = 0;
  for (const Sequence& sequence : sequences_) places += places_of(sequence);
  return rows_in_use() * bytes_per_row() + places * kBytesPerPlace;
}

std::int64_t HeadCache::rows_in_use() const {
  std::size_t free = free_rows_.size();
  for (const Sequence& sequence : sequences_) free += sequence.spare.size();
  return used_rows_ - static_cast<std::int64_t>(free);
}

std::int64_t HeadCache::bytes_of(std::int64_t sequence) const {
  std::vector<bool> counted(holders_.size(), false);
  std::int64_t rows = 0;
  for_each_place(at(sequence), [&](std::size_t row) {
    rows += counted[row] ? 0 : 1;
    counted[row] = true;
  });
  return rows * bytes_per_row() + places_of(at(sequence)) * kBytesPerPlace;
}

// A key, a value, and how many hold them.
std::int64_t HeadCache::bytes_per_row() const {
  return store_.bytes_per_row() + std::int64_t{sizeof(std::uint32_t)};
}

}  // namespace routing
