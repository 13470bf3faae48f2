// What one query sees in one group.
#pragma once

#include <cstdint>

namespace routing::kernels {

// Keys per tile of the online softmax. Tiles begin at multiples of it, so shifting all ranks of a group by a multiple
// changes no bit.
inline constexpr std::int64_t kAttendTile = 64;

// Ranks count from the start of the group's key list. RepeatedKeys may take more keys out of the interval. Where they
// would take all that are left, the interval is empty instead.
struct QueryView {
  std::int32_t key_from = 0;  // sees ranks key_from … key_to - 1
  std::int32_t key_to = 0;
  std::int32_t place = 0;       // keys of the group at positions up to the query's own
  std::int32_t self_rank = -1;  // its own rank among the visible keys that it must skip; -1 if there is none
  bool sees_nothing() const { return key_to - key_from - (self_rank >= 0 ? 1 : 0) == 0; }
};

// Keys inside of views that their query has seen in an earlier one of its groups, where RepeatRule::once lets them
// count only there: a bit for each, in words that are a tile of keys each.
struct RepeatedKeys {
  static constexpr std::int64_t kNone = INT64_MIN;
  // Of each view: where the word of tile 0 would stand, or kNone for a view without repeats. Null where no view has
  // any.
  const std::int64_t* first_word = nullptr;
  const std::uint64_t* words = nullptr;

  bool any() const { return first_word != nullptr; }
  // Of ranks tile * kAttendTile and on. The view must have a key in that tile. Inlined always: a copy compiled for one
  // instruction set must not serve the others.
  [[gnu::always_inline]] std::uint64_t in_tile(std::int64_t view, std::int64_t tile) const {
    return first_word == nullptr || first_word[view] == kNone ? 0 : words[first_word[view] + tile];
  }
  // The rank must be one of the view's.
  bool holds(std::int64_t view, std::int64_t rank) const {
    return (in_tile(view, rank / kAttendTile) >> (rank % kAttendTile) & 1U) != 0;
  }
};

}  // namespace routing::kernels
