#include "routing/ops/attend/attend_reference.h"

#include "routing/ops/attend/attend_tiles.h"
#include "routing/ops/attend/attention_dropout.h"
#include "routing/ops/attend/visibility.h"

#include <limits>
#include <span>
#include <vector>

namespace routing {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Minus infinity becomes 0, so that differences with it stay defined where nothing is visible.
at::Tensor finite_or_zero(const at::Tensor& values) {
  return at::where(values == kMinusInfinity, 0.0, values);
}

// Everything about one call that its tiles share. Rows are tokens of units: q [rows, dim] and so on.
class Call {
 public:
  Call(const AttendInputs& inputs, const Plan& attended_plan, const AttendOptions& attend_options)
      : plan(attended_plan),
        options(attend_options),
        views(view_plan(attended_plan)),
        tiles(cut_into_tiles(attended_plan, views)),
        q(inputs.q.reshape({-1, inputs.q.size(3)})),
        k(inputs.k.reshape({-1, inputs.k.size(3)})),
        v(inputs.v.reshape({-1, inputs.v.size(3)})) {
    if (options.dropout.probability > 0.0) {
      unit_keys = dropout_unit_keys(options.dropout, plan.batch, plan.heads).to(q.device());
    }
  }

  template <class Visit>
  void for_each_batch(const Visit& visit) const {
    std::int64_t table_rows = 0;
    for (const at::Tensor& table : {options.relative_key, options.relative_value}) {
      if (table.defined()) table_rows = table.size(0);
    }
    for (std::span<const AttendTile> rest(tiles); !rest.empty();) {
      const std::size_t count = tiles_in_batch(rest, table_rows);
      visit(pack_tiles(plan, views, rest.first(count), q.device()));
      rest = rest.subspan(count);
    }
  }

  std::int64_t num_entries() const { return static_cast<std::int64_t>(views.views.size()); }

  std::int64_t num_rows() const { return q.size(0); }

  // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives no longer than one call of attend.
  const Plan& plan;
  const AttendOptions& options;
  // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
  PlanViews views;
  std::vector<AttendTile> tiles;
  at::Tensor q, k, v;
  at::Tensor unit_keys;
};

// The rows of one batch of tiles and its logits.
struct TileValues {
  at::Tensor q, k, v;         // [m, t, dim], [m, j, dim], [m, j, value_dim]
  at::Tensor scores;          // [m, t, j], minus infinity where not visible
  at::Tensor relative_row;    // int64 [m, t, j], undefined without relative positions
  at::Tensor dropout_factor;  // [m, t, j], undefined without dropout
};

at::Tensor gather_rows(const at::Tensor& rows, const at::Tensor& index) {
  return rows.index_select(0, index.flatten()).view({index.size(0), index.size(1), rows.size(1)});
}

// Rows of the queries of a batch, zeros in padded slots.
at::Tensor gather_query_rows(const at::Tensor& rows, const TileBatch& batch) {
  return gather_rows(rows, batch.query_row).masked_fill_(batch.padded_query, 0.0);
}

// Row of the relative tables for every pair of a batch.
at::Tensor relative_rows(const AttendOptions& options, const TileBatch& batch) {
  const at::Tensor& table = options.relative_key.defined() ? options.relative_key : options.relative_value;
  const std::int64_t max_offset = (table.size(0) - 1) / 2;
  const at::Tensor offset =
      options.relative == RelativePosition::true_offset
          ? batch.key_position.unsqueeze(1) - batch.query_position.unsqueeze(2)
          : at::arange(batch.key_row.size(1), batch.key_row.options()) - batch.query_place.unsqueeze(2);
  return offset.clamp(-max_offset, max_offset) + max_offset;
}

bool has_relative(const AttendOptions& options) {
  return options.relative != RelativePosition::none &&
         (options.relative_key.defined() || options.relative_value.defined());
}

TileValues compute_scores(const Call& call, const TileBatch& batch) {
  TileValues values;
  // Padded slots hold zeros: what stands in row 0, possibly not a number, must not reach tiles it has no part in.
  values.q = gather_query_rows(call.q, batch);
  values.k = gather_rows(call.k, batch.key_row).masked_fill_(batch.padded_key, 0.0);
  values.v = gather_rows(call.v, batch.key_row).masked_fill_(batch.padded_key, 0.0);
  values.scores = at::bmm(values.q, values.k.transpose(1, 2));
  if (has_relative(call.options)) {
    values.relative_row = relative_rows(call.options, batch);
    if (call.options.relative_key.defined()) {
      values.scores =
          values.scores + at::matmul(values.q, call.options.relative_key.t()).gather(2, values.relative_row);
    }
  }
  values.scores = values.scores * call.options.scale;
  if (call.options.recency.defined()) {
    const at::Tensor slope = call.options.recency.index_select(0, batch.unit.remainder(call.plan.heads));
    const at::Tensor distance = batch.query_position.unsqueeze(2) - batch.key_position.unsqueeze(1);
    values.scores = values.scores - slope.view({-1, 1, 1}) * distance.to(slope.scalar_type());
  }
  values.scores = values.scores.masked_fill(batch.visible.logical_not(), kMinusInfinity);
  if (call.unit_keys.defined()) {
    const auto factors = call.q.is_cpu() ? dropout_factors_by_loops : dropout_factors;
    values.dropout_factor =
        factors(call.unit_keys.index_select(0, batch.unit), batch.group_in_unit, batch.query_position,
                batch.key_position, call.options.dropout.probability, call.q.scalar_type());
  }
  return values;
}

at::Tensor with_dropout(const TileValues& values, const at::Tensor& probabilities) {
  return values.dropout_factor.defined() ? probabilities * values.dropout_factor : probabilities;
}

// Sums of [m, t, j] values over the pairs that share a table row: [m, t, table rows].
at::Tensor sum_by_relative_row(const TileValues& values, const at::Tensor& pairs, std::int64_t table_rows) {
  return at::zeros({pairs.size(0), pairs.size(1), table_rows}, pairs.options())
      .scatter_add_(2, values.relative_row, pairs);
}

// Softmax of each row over its tile, zero where nothing is visible, and its log-sum-exp.
struct TileSoftmax {
  at::Tensor probabilities, lse;
};

TileSoftmax tile_softmax(const at::Tensor& scores) {
  const at::Tensor largest = finite_or_zero(scores.amax(2, /*keepdim=*/true));
  const at::Tensor weights = (scores - largest).exp_();
  const at::Tensor total = weights.sum(2, /*keepdim=*/true);
  return {weights / at::where(total == 0.0, 1.0, total), (largest + total.log()).squeeze(2)};
}

// One membership of every row that has that many: rows are distinct, so that merging needs no atomic sums and adds a
// row's groups in their order.
struct MembershipSlot {
  at::Tensor rows, entries;  // int64
};

std::vector<MembershipSlot> membership_slots(const Call& call) {
  const MemberIndex& index = call.plan.query_index;
  const auto* offsets = index.offsets.data_ptr<std::int64_t>();
  std::vector<std::vector<std::int64_t>> rows;
  std::vector<std::vector<std::int64_t>> entries;
  for (std::int64_t row = 0; row < call.num_rows(); ++row) {
    for (std::int64_t member = offsets[row]; member < offsets[row + 1]; ++member) {
      const auto slot = static_cast<std::size_t>(member - offsets[row]);
      if (slot == rows.size()) {
        rows.emplace_back();
        entries.emplace_back();
      }
      const auto group = static_cast<std::size_t>(index.group.data_ptr<std::int64_t>()[member]);
      rows[slot].push_back(row);
      entries[slot].push_back(call.views.group_offsets[group] + index.rank.data_ptr<std::int32_t>()[member]);
    }
  }
  std::vector<MembershipSlot> slots;
  for (std::size_t slot = 0; slot < rows.size(); ++slot) {
    slots.push_back({at::tensor(rows[slot], at::kLong).to(call.q.device()),
                     at::tensor(entries[slot], at::kLong).to(call.q.device())});
  }
  return slots;
}

// log of the sum of exp over the entries of each row.
at::Tensor lse_of_rows(const at::Tensor& entry_lse, const std::vector<MembershipSlot>& slots, std::int64_t rows) {
  at::Tensor largest = at::full({rows}, kMinusInfinity, entry_lse.options());
  for (const auto& [slot_rows, entries] : slots) {
    largest.index_copy_(0, slot_rows,
                        at::maximum(largest.index_select(0, slot_rows), entry_lse.index_select(0, entries)));
  }
  const at::Tensor shift = finite_or_zero(largest);
  at::Tensor total = at::zeros_like(largest);
  for (const auto& [slot_rows, entries] : slots) {
    total.index_add_(0, slot_rows, (entry_lse.index_select(0, entries) - shift.index_select(0, slot_rows)).exp());
  }
  return total.log() + shift;
}

// For Merge::mean: 1 / (groups in which the row sees a key + eps), zero for a row that sees none.
at::Tensor mean_weights(const Call& call, const std::vector<MembershipSlot>& slots) {
  at::Tensor sees = at::empty({call.num_entries()}, at::kDouble);
  for (std::int64_t entry = 0; entry < call.num_entries(); ++entry) {
    sees.data_ptr<double>()[entry] = call.views.views[static_cast<std::size_t>(entry)].sees_nothing() ? 0.0 : 1.0;
  }
  sees = sees.to(call.q.options());
  at::Tensor groups = at::zeros({call.num_rows()}, call.q.options());
  for (const auto& [rows, entries] : slots) groups.index_add_(0, rows, sees.index_select(0, entries));
  return at::where(groups == 0.0, 0.0, (groups + call.options.merge_eps).reciprocal());
}

// dP of one batch: how the loss changes with the probabilities before dropout.
at::Tensor probability_gradient(const Call& call, const TileValues& values, const at::Tensor& d_output) {
  at::Tensor gradient = at::bmm(d_output, values.v.transpose(1, 2));
  if (values.relative_row.defined() && call.options.relative_value.defined()) {
    gradient = gradient + at::matmul(d_output, call.options.relative_value.t()).gather(2, values.relative_row);
  }
  return with_dropout(values, gradient);
}

// The sum over tiles of left^T right, for the gradients of the relative tables.
at::Tensor outer_sum(const at::Tensor& left, const at::Tensor& right) {
  return at::mm(left.reshape({-1, left.size(2)}).t(), right.reshape({-1, right.size(2)}));
}

}  // namespace

AttendResult attend_reference_forward(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options) {
  const at::NoGradGuard no_gradient;
  const Call call(inputs, plan, options);
  const std::int64_t rows = call.num_rows();
  const std::int64_t value_dim = call.v.size(1);
  at::Tensor entry_output = at::zeros({call.num_entries(), value_dim}, call.q.options());
  at::Tensor entry_lse = at::full({call.num_entries()}, kMinusInfinity, call.q.options());

  call.for_each_batch([&](const TileBatch& batch) {
    const TileValues values = compute_scores(call, batch);
    const TileSoftmax softmax = tile_softmax(values.scores);
    const at::Tensor kept = with_dropout(values, softmax.probabilities);
    at::Tensor output = at::bmm(kept, values.v);
    if (values.relative_row.defined() && options.relative_value.defined()) {
      output = output +
               at::matmul(sum_by_relative_row(values, kept, options.relative_value.size(0)), options.relative_value);
    }
    entry_output.index_copy_(0, batch.entry, output.reshape({-1, value_dim}).index_select(0, batch.valid_slot));
    entry_lse.index_copy_(0, batch.entry, softmax.lse.flatten().index_select(0, batch.valid_slot));
  });

  const auto slots = membership_slots(call);
  const at::Tensor lse = lse_of_rows(entry_lse, slots, rows);
  const at::Tensor shift = finite_or_zero(lse);
  const at::Tensor mean_weight = options.merge == Merge::mean ? mean_weights(call, slots) : at::Tensor();
  at::Tensor output = at::zeros({rows, value_dim}, call.q.options());
  for (const auto& [slot_rows, entries] : slots) {
    const at::Tensor weight = options.merge == Merge::mean
                                  ? mean_weight.index_select(0, slot_rows)
                                  : (entry_lse.index_select(0, entries) - shift.index_select(0, slot_rows)).exp();
    output.index_add_(0, slot_rows, entry_output.index_select(0, entries) * weight.unsqueeze(1));
  }
  return {output.view({plan.batch, plan.heads, plan.num_queries, value_dim}),
          lse.view({plan.batch, plan.heads, plan.num_queries})};
}

// With P the probabilities as merged, P~ after dropout, O = P~ (V + b) and L = lse:
//   lse merge    dS = P (dP - dO.O + dL)               because the rows of P sum to one over all groups together
//   mean merge   dS = P (dP - sum_j P dP) + dL e^(S-L)   group by group, with dO divided by the number of groups
AttendGradients attend_reference_backward(const AttendResult& gradient, const AttendResult& saved,
                                          const AttendInputs& inputs, const Plan& plan, const AttendOptions& options) {
  const at::NoGradGuard no_gradient;
  const Call call(inputs, plan, options);
  const bool lse_merge = options.merge == Merge::lse;
  const at::Tensor lse = finite_or_zero(saved.lse.reshape({-1, 1}));
  const at::Tensor d_lse = gradient.lse.reshape({-1, 1});
  at::Tensor d_output = gradient.output.reshape({-1, call.v.size(1)});
  at::Tensor correction;
  if (lse_merge) {
    correction = (d_output * saved.output.reshape_as(d_output)).sum(1, /*keepdim=*/true) - d_lse;
  } else {
    d_output = d_output * mean_weights(call, membership_slots(call)).unsqueeze(1);
  }

  AttendGradients d;
  at::Tensor dq = at::zeros_like(call.q);
  at::Tensor dk = at::zeros_like(call.k);
  at::Tensor dv = at::zeros_like(call.v);
  if (options.relative_key.defined()) d.relative_key = at::zeros_like(options.relative_key);
  if (options.relative_value.defined()) d.relative_value = at::zeros_like(options.relative_value);

  call.for_each_batch([&](const TileBatch& batch) {
    const TileValues values = compute_scores(call, batch);
    const at::Tensor tile_d_output = gather_query_rows(d_output, batch);
    const at::Tensor share_of_row = (values.scores - gather_query_rows(lse, batch)).exp();
    const at::Tensor probabilities = lse_merge ? share_of_row : tile_softmax(values.scores).probabilities;
    const at::Tensor kept = with_dropout(values, probabilities);
    const at::Tensor d_probabilities = probability_gradient(call, values, tile_d_output);
    at::Tensor d_scores;
    if (lse_merge) {
      d_scores = probabilities * (d_probabilities - gather_query_rows(correction, batch));
    } else {
      const at::Tensor mean = (probabilities * d_probabilities).sum(2, /*keepdim=*/true);
      d_scores = probabilities * (d_probabilities - mean) + share_of_row * gather_query_rows(d_lse, batch);
    }
    d_scores = d_scores * options.scale;

    at::Tensor tile_dq = at::bmm(d_scores, values.k);
    dv.index_add_(0, batch.key_row.flatten(), at::bmm(kept.transpose(1, 2), tile_d_output).flatten(0, 1));
    dk.index_add_(0, batch.key_row.flatten(), at::bmm(d_scores.transpose(1, 2), values.q).flatten(0, 1));
    if (d.relative_key.defined() && values.relative_row.defined()) {
      const at::Tensor by_row = sum_by_relative_row(values, d_scores, options.relative_key.size(0));
      tile_dq = tile_dq + at::matmul(by_row, options.relative_key);
      d.relative_key += outer_sum(by_row, values.q);
    }
    if (d.relative_value.defined() && values.relative_row.defined()) {
      d.relative_value += outer_sum(sum_by_relative_row(values, kept, options.relative_value.size(0)), tile_d_output);
    }
    dq.index_add_(0, batch.query_row.flatten(), tile_dq.flatten(0, 1));
  });
  d.q = dq.view(inputs.q.sizes());
  d.k = dk.view(inputs.k.sizes());
  d.v = dv.view(inputs.v.sizes());
  return d;
}

}  // namespace routing
