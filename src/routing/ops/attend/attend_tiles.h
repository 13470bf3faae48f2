// Cuts a plan into tiles of queries and packs tiles of like size into batches, padded, as index tensors for the
// reference implementation.
#pragma once

#include "routing/ops/attend/plan.h"
#include "routing/ops/attend/visibility.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// Up to kQueries queries of one group and the hull of the keys they see.
struct AttendTile {
  static constexpr std::int64_t kQueries = 64;
  std::int64_t unit, group;
  std::int64_t query_first, num_queries;  // query ranks inside the group
  std::int64_t key_first, num_keys;       // key ranks inside the group
};

// Tiles m, query slots t, key slots j. Padded slots point at row 0 and see nothing.
struct TileBatch {
  at::Tensor entry;           // int64 [valid queries]: entry of PlanViews of each valid (m, t), in order
  at::Tensor valid_slot;      // int64 [valid queries]: m * T + t of each valid slot
  at::Tensor query_row;       // int64 [m, t]: unit * num_queries + row
  at::Tensor key_row;         // int64 [m, j]: unit * num_keys + row
  at::Tensor padded_query;    // bool [m, t, 1]
  at::Tensor padded_key;      // bool [m, j, 1]
  at::Tensor query_position;  // int64 [m, t]
  at::Tensor key_position;    // int64 [m, j]
  at::Tensor query_place;     // int64 [m, t]: place among the tile's keys, less one
  at::Tensor visible;         // bool [m, t, j]
  at::Tensor unit;            // int64 [m]
  at::Tensor group_in_unit;   // int64 [m]
};

// All tiles that hold at least one visible pair, those with most keys first.
std::vector<AttendTile> cut_into_tiles(const Plan& plan, const PlanViews& views);

// How many tiles from the first of these on fit into one padded batch of limited memory; at least 1. A slot of a tile
// holds a number for each of its keys, or for each of `table_rows` rows of relative tables if those are more.
std::size_t tiles_in_batch(std::span<const AttendTile> tiles, std::int64_t table_rows);

TileBatch pack_tiles(const Plan& plan, const PlanViews& views, std::span<const AttendTile> tiles, at::Device device);

}  // namespace routing
