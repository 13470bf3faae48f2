#include "routing/core/error.h"
#include "routing/ops/attend/plan.h"

#include <algorithm>
#include <vector>

namespace routing {

// Deliberately shares nothing with view_plan(): this is what the oracle of attend stands on.
at::Tensor Plan::to_dense_masks(std::int64_t sequence, std::int64_t head) const {
  require<InputError>(sequence >= 0 && sequence < batch && head >= 0 && head < heads, "plan: sequence ", sequence,
                      " head ", head, " asked for, but there are ", batch, " sequences of ", heads, " heads");
  const std::int64_t unit = sequence * heads + head;
  const std::int64_t first_group = unit_offsets.data_ptr<std::int64_t>()[unit];
  const std::int64_t last_group = unit_offsets.data_ptr<std::int64_t>()[unit + 1];
  const auto* query_positions = query_order.data_ptr<std::int32_t>();
  const auto* key_positions = key_order.data_ptr<std::int32_t>();
  const auto row_of = [&](std::int64_t key) {
    return key_rows.defined() ? key_rows.data_ptr<std::int32_t>()[key] : key_positions[key] - key_origin;
  };
  // Rows of keys at the positions of queries, -1 where there are none.
  std::vector<std::int64_t> own_rows(static_cast<std::size_t>(num_queries), -1);
  for (std::int64_t i = 0; i < num_queries && !key_rows.defined(); ++i) {
    const std::int64_t row = i + query_origin - key_origin;
    if (row >= 0 && row < num_keys) own_rows[static_cast<std::size_t>(i)] = row;
  }
  at::Tensor masks = at::zeros({last_group - first_group, num_queries, num_keys}, at::kBool);
  auto mask = masks.accessor<bool, 3>();
  for (std::int64_t group = first_group; group < last_group; ++group) {
    const GroupRange range = group_range(*this, group);
    for (std::int64_t q = range.q_begin; q < range.q_end; ++q) {
      const std::int32_t i = query_positions[q];
      std::int64_t place = 0;
      for (std::int64_t key = range.k_begin; key < range.k_end; ++key) place += key_positions[key] <= i ? 1 : 0;
      for (std::int64_t rank = 0; rank < range.num_keys(); ++rank) {
        const std::int32_t j = key_positions[range.k_begin + rank];
        const bool behind = !rules.lookback || rank >= place - *rules.lookback;
        const bool ahead = !rules.lookahead || rank < place + *rules.lookahead;
        const std::int64_t row = row_of(range.k_begin + rank);
        mask[group - first_group][i - query_origin][row] = behind && ahead && (!rules.causal || j <= i);
        if (i == j) own_rows[static_cast<std::size_t>(i - query_origin)] = row;
      }
    }
  }
  const auto own = [&](std::int64_t i) { return own_rows[static_cast<std::size_t>(i)]; };
  const auto has_own = [&](std::int64_t i) { return own(i) >= 0; };
  if (rules.self == SelfRule::only_if_alone) {
    for (std::int64_t i = 0; i < num_queries; ++i) {
      bool alone = true;
      for (std::int64_t group = 0; group < masks.size(0); ++group) {
        for (std::int64_t j = 0; j < num_keys; ++j) alone = alone && (j == own(i) || !mask[group][i][j]);
      }
      for (std::int64_t group = 0; group < masks.size(0) && !alone && has_own(i); ++group) {
        mask[group][i][own(i)] = false;
      }
    }
  }
  if (rules.self == SelfRule::only_if_alone_in_group) {
    for (std::int64_t group = 0; group < masks.size(0); ++group) {
      for (std::int64_t i = 0; i < num_queries; ++i) {
        if (!has_own(i)) continue;
        bool alone = true;
        for (std::int64_t j = 0; j < num_keys; ++j) alone = alone && (j == own(i) || !mask[group][i][j]);
        mask[group][i][own(i)] = mask[group][i][own(i)] && alone;
      }
    }
  }
  for (std::int64_t i = 0; i < num_queries && rules.repeats == RepeatRule::once; ++i) {
    for (std::int64_t j = 0; j < num_keys; ++j) {
      bool seen = false;
      for (std::int64_t group = 0; group < masks.size(0); ++group) {
        mask[group][i][j] = mask[group][i][j] && !seen;
        seen = seen || mask[group][i][j];
      }
    }
  }
  return masks;
}

at::Tensor Plan::to_dense_counts() const {
  at::Tensor counts = at::zeros({batch, heads, num_queries, num_keys}, at::kInt);
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    for (std::int64_t head = 0; head < heads; ++head) {
      counts[sequence][head].copy_(to_dense_masks(sequence, head).sum(0, /*keepdim=*/false, at::kInt));
    }
  }
  return counts;
}

bool operator==(const Plan& a, const Plan& b) {
  return a.batch == b.batch && a.heads == b.heads && a.num_queries == b.num_queries && a.num_keys == b.num_keys &&
         a.query_order.equal(b.query_order) && a.key_order.equal(b.key_order) && a.groups.equal(b.groups) &&
         a.unit_offsets.equal(b.unit_offsets) && a.query_index.offsets.equal(b.query_index.offsets) &&
         a.query_index.group.equal(b.query_index.group) && a.query_index.rank.equal(b.query_index.rank) &&
         a.key_rows.defined() == b.key_rows.defined() && (!a.key_rows.defined() || a.key_rows.equal(b.key_rows)) &&
         a.rules == b.rules && a.query_origin == b.query_origin && a.key_origin == b.key_origin;
}

}  // namespace routing
