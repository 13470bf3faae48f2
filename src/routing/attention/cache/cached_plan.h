// The plan of some new tokens over keys that are kept (head_cache.h).
#pragma once

#include "routing/kernels/attend/attend.h"
#include "routing/kernels/attend/query_view.h"
#include "routing/kernels/attend/repeated_keys.h"

#include <cstdint>
#include <vector>

namespace routing {

// Which keys the new queries of some sequences read; what its pointers point to lives as long as it does.
class CachedPlan {
 public:
  // For the kernels; q holds one row a new token, k and v are the rows of the store (with strides of 0 between units).
  kernels::AttendPlan plan() const;
  // Positions of the keys that a new token reads, list after list; `sequence` and `token` as in the call.
  std::vector<std::int32_t> keys_of(std::int64_t sequence, std::int64_t head, std::int64_t token) const;

 private:
  friend class HeadCache;
  void clear();
  std::int64_t sequences_ = 0, heads_ = 0, tokens_ = 0, store_rows_ = 0;
  std::vector<std::int32_t> query_order_, key_order_, key_rows_, query_origins_, member_rank_;
  std::vector<std::int64_t> groups_, unit_offsets_, member_offsets_, member_group_, view_offsets_;
  std::vector<kernels::QueryView> views_;
  kernels::RepeatWords repeats_;
};

}  // namespace routing
