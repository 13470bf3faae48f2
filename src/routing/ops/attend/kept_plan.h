// A plan of some new tokens over rows of keys and values that are kept from call to call.
//
// Decoding makes one for every token, so it is not tensors: plain lists whose memory is used again. What each query
// sees is written down with them, because whoever keeps the rows knows it without a search.
#pragma once

#include "routing/ops/attend/visibility.h"

#include <cstdint>
#include <vector>

namespace routing {

// Lists have the names and the meaning that they have in Plan, but numbers of queries are those of the new tokens, from
// 0, and the ranks of a group begin with some key whose true rank is a multiple of kAttendTile.
struct KeptPlan {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t num_queries = 0;  // new tokens of each sequence
  std::int64_t num_keys = 0;     // rows of the store
  std::vector<std::int32_t> query_order = {};
  std::vector<std::int32_t> key_order = {};      // true positions
  std::vector<std::int32_t> key_rows = {};       // where in the store the keys of key_order are
  std::vector<std::int32_t> query_origins = {};  // [batch * heads]: the position of the first new token
  std::vector<std::int64_t> groups = {};         // [groups, 4]
  std::vector<std::int64_t> unit_offsets = {};
  std::vector<std::int64_t> member_offsets = {};
  std::vector<std::int64_t> member_group = {};
  std::vector<std::int32_t> member_rank = {};
  PlanViews views = {};

  // Empties all lists and keeps their memory.
  void clear();
  // Positions of the keys that a new token reads, list after list.
  std::vector<std::int32_t> keys_of(std::int64_t sequence, std::int64_t head, std::int64_t token) const;
};

// As the kernels take it; the plan must outlive what is returned.
kernels::AttendPlan kernel_plan(const KeptPlan& plan);

// RepeatRule::once, for a plan whose views say nothing of repeats yet.
void mark_repeats(KeptPlan& plan);

}  // namespace routing
