// What one query sees in one group.
#pragma once

#include <cstdint>

namespace routing::kernels {

// Keys per tile of the online softmax. Tiles begin at multiples of it, so shifting all ranks of a group by a multiple
// changes no bit.
inline constexpr std::int64_t kAttendTile = 64;

// Ranks count from the start of the group's key list.
struct QueryView {
  std::int32_t key_from = 0;  // sees ranks key_from … key_to - 1
  std::int32_t key_to = 0;
  std::int32_t place = 0;       // keys of the group at positions up to the query's own
  std::int32_t self_rank = -1;  // its own rank among the visible keys that it must skip; -1 if there is none
  bool sees_nothing() const { return key_to - key_from - (self_rank >= 0 ? 1 : 0) == 0; }
};

}  // namespace routing::kernels
