#include "routing/ops/attend/attend_tiles.h"

#include <algorithm>

namespace routing {
namespace {

// Of one [tile, query, key] tensor: 16 MB of floats, small beside the tensors of a training step.
constexpr std::int64_t kNumbersPerBatch = std::int64_t{1} << 22;

// False for the keys that a query has seen in an earlier group; bool [m, t, j].
at::Tensor first_seen(const PlanViews& views, std::span<const AttendTile> tiles, std::int64_t slots,
                      std::int64_t keys) {
  at::Tensor first = at::ones({static_cast<std::int64_t>(tiles.size()), slots, keys}, at::kBool);
  bool* row = first.data_ptr<bool>();
  for (const AttendTile& tile : tiles) {
    for (std::int64_t t = 0; t < slots; ++t, row += keys) {
      if (t >= tile.num_queries) continue;
      const std::int64_t entry = views.group_offsets[static_cast<std::size_t>(tile.group)] + tile.query_first + t;
      const QueryView& view = views.views[static_cast<std::size_t>(entry)];
      for (std::int32_t rank = view.key_from; rank < view.key_to; ++rank) {
        row[rank - tile.key_first] = !views.repeats.keys().holds(entry, rank);
      }
    }
  }
  return first;
}

}  // namespace

std::vector<AttendTile> cut_into_tiles(const Plan& plan, const PlanViews& views) {
  std::vector<AttendTile> tiles;
  const auto* unit_offsets = plan.unit_offsets.data_ptr<std::int64_t>();
  for (std::int64_t unit = 0; unit < plan.num_units(); ++unit) {
    for (std::int64_t group = unit_offsets[unit]; group < unit_offsets[unit + 1]; ++group) {
      const std::int64_t num_queries = group_range(plan, group).num_queries();
      const QueryView* group_views = views.views.data() + views.group_offsets[static_cast<std::size_t>(group)];
      for (std::int64_t first = 0; first < num_queries; first += AttendTile::kQueries) {
        const std::int64_t last = std::min(num_queries, first + AttendTile::kQueries);
        std::int64_t key_first = group_range(plan, group).num_keys();
        std::int64_t key_last = 0;
        for (std::int64_t query = first; query < last; ++query) {
          if (group_views[query].sees_nothing()) continue;
          key_first = std::min<std::int64_t>(key_first, group_views[query].key_from);
          key_last = std::max<std::int64_t>(key_last, group_views[query].key_to);
        }
        if (key_first < key_last) tiles.push_back({unit, group, first, last - first, key_first, key_last - key_first});
      }
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const AttendTile& a, const AttendTile& b) { return a.num_keys > b.num_keys; });
  return tiles;
}

std::size_t tiles_in_batch(std::span<const AttendTile> tiles, std::int64_t table_rows) {
  const std::int64_t numbers_per_tile = AttendTile::kQueries * std::max(tiles.front().num_keys, table_rows);
  const auto fitting = static_cast<std::size_t>(std::max<std::int64_t>(1, kNumbersPerBatch / numbers_per_tile));
  return std::min(fitting, tiles.size());
}

TileBatch pack_tiles(const Plan& plan, const PlanViews& views, std::span<const AttendTile> tiles, at::Device device) {
  std::int64_t slots = 0;
  std::int64_t keys = 0;
  for (const AttendTile& tile : tiles) {
    slots = std::max(slots, tile.num_queries);
    keys = std::max(keys, tile.num_keys);
  }
  const auto m_count = static_cast<std::int64_t>(tiles.size());
  TileBatch batch;
  batch.query_row = at::zeros({m_count, slots}, at::kLong);
  batch.query_position = at::zeros({m_count, slots}, at::kLong);
  batch.query_place = at::zeros({m_count, slots}, at::kLong);
  batch.key_row = at::zeros({m_count, keys}, at::kLong);
  batch.key_position = at::zeros({m_count, keys}, at::kLong);
  batch.padded_query = at::ones({m_count, slots, 1}, at::kBool);
  batch.padded_key = at::ones({m_count, keys, 1}, at::kBool);
  batch.unit = at::zeros({m_count}, at::kLong);
  batch.group_in_unit = at::zeros({m_count}, at::kLong);
  // Visible ranks of each slot, relative to its tile's first key; an empty interval for padding.
  at::Tensor from = at::zeros({m_count, slots, 1}, at::kLong);
  at::Tensor to = at::zeros({m_count, slots, 1}, at::kLong);
  at::Tensor skip = at::full({m_count, slots, 1}, -1, at::kLong);
  std::vector<std::int64_t> entries;
  std::vector<std::int64_t> valid_slots;

  auto* query_row = batch.query_row.data_ptr<std::int64_t>();
  auto* query_position = batch.query_position.data_ptr<std::int64_t>();
  auto* query_place = batch.query_place.data_ptr<std::int64_t>();
  auto* key_row = batch.key_row.data_ptr<std::int64_t>();
  auto* key_position = batch.key_position.data_ptr<std::int64_t>();
  auto* visible_from = from.data_ptr<std::int64_t>();
  auto* visible_to = to.data_ptr<std::int64_t>();
  auto* skipped = skip.data_ptr<std::int64_t>();
  const auto* query_positions = plan.query_order.data_ptr<std::int32_t>();
  const auto* key_positions = plan.key_order.data_ptr<std::int32_t>();
  const auto* key_rows = plan.key_rows.defined() ? plan.key_rows.data_ptr<std::int32_t>() : nullptr;
  const auto* unit_offsets = plan.unit_offsets.data_ptr<std::int64_t>();
  for (std::int64_t m = 0; m < m_count; ++m) {
    const AttendTile& tile = tiles[static_cast<std::size_t>(m)];
    const GroupRange range = group_range(plan, tile.group);
    batch.unit.data_ptr<std::int64_t>()[m] = tile.unit;
    batch.group_in_unit.data_ptr<std::int64_t>()[m] = tile.group - unit_offsets[tile.unit];
    std::fill_n(batch.padded_query.data_ptr<bool>() + m * slots, tile.num_queries, false);
    std::fill_n(batch.padded_key.data_ptr<bool>() + m * keys, tile.num_keys, false);
    for (std::int64_t t = 0; t < tile.num_queries; ++t) {
      const std::int64_t rank = tile.query_first + t;
      const std::int64_t entry = views.group_offsets[static_cast<std::size_t>(tile.group)] + rank;
      const QueryView& view = views.views[static_cast<std::size_t>(entry)];
      const std::int64_t slot = m * slots + t;
      const std::int64_t position = query_positions[range.q_begin + rank];
      query_row[slot] = tile.unit * plan.num_queries + position - plan.query_origin;
      query_position[slot] = position;
      query_place[slot] = view.place - 1 - tile.key_first;
      visible_from[slot] = view.key_from - tile.key_first;
      visible_to[slot] = view.key_to - tile.key_first;
      if (view.self_rank >= 0) skipped[slot] = view.self_rank - tile.key_first;
      entries.push_back(entry);
      valid_slots.push_back(slot);
    }
    for (std::int64_t j = 0; j < tile.num_keys; ++j) {
      const std::int64_t place = range.k_begin + tile.key_first + j;
      const std::int64_t position = key_positions[place];
      key_row[m * keys + j] =
          tile.unit * plan.num_keys + (key_rows == nullptr ? position - plan.key_origin : key_rows[place]);
      key_position[m * keys + j] = position;
    }
  }
  const at::Tensor rank = at::arange(keys, at::TensorOptions().dtype(at::kLong).device(device));
  batch.visible = (rank >= from.to(device)) & (rank < to.to(device)) & (rank != skip.to(device));
  if (views.repeats.keys().any()) batch.visible &= first_seen(views, tiles, slots, keys).to(device);
  batch.entry = at::tensor(entries, at::kLong).to(device);
  batch.valid_slot = at::tensor(valid_slots, at::kLong).to(device);
  for (at::Tensor* index :
       {&batch.query_row, &batch.query_position, &batch.query_place, &batch.key_row, &batch.key_position,
        &batch.padded_query, &batch.padded_key, &batch.unit, &batch.group_in_unit}) {
    *index = index->to(device);
  }
  return batch;
}

}  // namespace routing
