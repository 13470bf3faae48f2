#include "support/dense_oracle.h"

#include "routing/ops/attend/attention_dropout.h"

#include <algorithm>
#include <limits>

namespace routing::support {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Rows of zeros where everything is masked, instead of NaN.
at::Tensor safe_softmax(const at::Tensor& logits) {
  const at::Tensor masked = logits == kMinusInfinity;
  const at::Tensor empty = masked.all(-1, true);
  return logits.masked_fill(empty, 0.0).softmax(-1).masked_fill(masked, 0.0);
}

at::Tensor safe_logsumexp(const at::Tensor& logits) {
  const at::Tensor empty = (logits == kMinusInfinity).all(-1);
  return logits.masked_fill(empty.unsqueeze(-1), 0.0).logsumexp(-1).masked_fill(empty, kMinusInfinity);
}

// Table row of each pair [queries, keys] for one group, by plain loops.
at::Tensor table_rows(const Plan& plan, std::int64_t group, const AttendOptions& options) {
  const at::Tensor& table = options.relative_key.defined() ? options.relative_key : options.relative_value;
  const std::int64_t max = (table.size(0) - 1) / 2;
  at::Tensor rows = at::zeros({plan.num_queries, plan.num_keys}, at::kLong);
  auto numbers = rows.accessor<std::int64_t, 2>();
  const GroupRange range = group_range(plan, group);
  const auto* keys = plan.key_order.data_ptr<std::int32_t>() + range.k_begin;
  const auto* queries = plan.query_order.data_ptr<std::int32_t>() + range.q_begin;
  for (std::int64_t q = 0; q < range.num_queries(); ++q) {
    const std::int64_t i = queries[q];
    const std::int64_t place = std::count_if(keys, keys + range.num_keys(), [&](std::int32_t j) { return j <= i; });
    for (std::int64_t r = 0; r < range.num_keys(); ++r) {
      const std::int64_t offset = options.relative == RelativePosition::rank ? r - (place - 1) : keys[r] - i;
      numbers[i][keys[r]] = max + std::clamp(offset, -max, max);
    }
  }
  return rows;
}

at::Tensor dropout_of_group(const Plan& plan, std::int64_t unit, std::int64_t group_in_unit,
                            const AttendOptions& options, const at::Tensor& like) {
  const std::int64_t sample = options.dropout.sample_ids.defined()
                                  ? options.dropout.sample_ids[unit / plan.heads].item<std::int64_t>()
                                  : unit / plan.heads;
  const std::uint64_t key = dropout_unit_key(options.dropout.key, sample, unit % plan.heads);
  at::Tensor factors = at::ones({plan.num_queries, plan.num_keys}, at::kDouble);
  auto numbers = factors.accessor<double, 2>();
  for (std::int64_t i = 0; i < plan.num_queries; ++i) {
    for (std::int64_t j = 0; j < plan.num_keys; ++j) {
      const bool kept = dropout_keeps(key, static_cast<std::uint32_t>(group_in_unit), static_cast<std::uint32_t>(i),
                                      static_cast<std::uint32_t>(j), options.dropout.probability);
      numbers[i][j] = kept ? 1.0 / (1.0 - options.dropout.probability) : 0.0;
    }
  }
  return factors.to(like.scalar_type());
}

// What recency adds to the logits [queries, keys] of a head: the definition, row for row.
at::Tensor recency_of(const Plan& plan, std::int64_t head, const AttendOptions& options, const at::Tensor& like) {
  at::Tensor added = at::zeros({plan.num_queries, plan.num_keys}, like.options());
  if (!options.recency.defined()) return added;
  const at::Tensor i = at::arange(plan.num_queries, like.options()).unsqueeze(1);
  const at::Tensor j = at::arange(plan.num_keys, like.options()).unsqueeze(0);
  return added - options.recency[head] * (i - j);
}

struct UnitResult {
  at::Tensor output, lse;
};

// One unit whose groups all give a pair the same logit and keep it alike: counts are enough.
UnitResult by_counts(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& counts,
                     const AttendOptions& options, const at::Tensor& rows, const at::Tensor& recency) {
  at::Tensor logits = at::mm(q, k.t());
  if (options.relative_key.defined()) logits = logits + at::mm(q, options.relative_key.t()).gather(1, rows);
  logits = logits * options.scale + recency + counts.to(q.scalar_type()).log();
  const at::Tensor p = safe_softmax(logits);
  at::Tensor output = at::mm(p, v);
  if (options.relative_value.defined()) {
    output = output + (p.unsqueeze(2) *
                       options.relative_value.index_select(0, rows.flatten()).view({rows.size(0), rows.size(1), -1}))
                          .sum(1);
  }
  return {output, safe_logsumexp(logits)};
}

UnitResult by_masks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Plan& plan, std::int64_t unit,
                    const AttendOptions& options) {
  const at::Tensor masks = plan.to_dense_masks(unit / plan.heads, unit % plan.heads);
  const std::int64_t first_group = plan.unit_offsets[unit].item<std::int64_t>();
  const std::int64_t groups = masks.size(0);
  const at::Tensor recency = recency_of(plan, unit % plan.heads, options, q.detach());
  std::vector<at::Tensor> logits_of_groups;
  std::vector<at::Tensor> values_of_groups;
  std::vector<at::Tensor> factors_of_groups;
  for (std::int64_t g = 0; g < groups; ++g) {
    at::Tensor logits = at::mm(q, k.t());
    at::Tensor values = v;  // [keys, value_dim], or of every query its own [queries, keys, value_dim]
    if (options.relative != RelativePosition::none) {
      const at::Tensor rows = table_rows(plan, first_group + g, options);
      if (options.relative_key.defined()) logits = logits + at::mm(q, options.relative_key.t()).gather(1, rows);
      if (options.relative_value.defined()) {
        values = v + options.relative_value.index_select(0, rows.flatten()).view({q.size(0), v.size(0), v.size(1)});
      }
    }
    logits_of_groups.push_back((logits * options.scale + recency).masked_fill(masks[g].logical_not(), kMinusInfinity));
    values_of_groups.push_back(values);
    if (options.dropout.probability > 0.0) factors_of_groups.push_back(dropout_of_group(plan, unit, g, options, q));
  }
  if (groups == 0) {
    return {at::zeros({q.size(0), v.size(1)}, q.options()) + 0.0 * (q.sum() + k.sum() + v.sum()),
            at::full({q.size(0)}, kMinusInfinity, q.options())};
  }
  const at::Tensor logits = at::cat(logits_of_groups, 1);
  at::Tensor p;
  if (options.merge == Merge::mean) {
    const at::Tensor seeing = masks.any(2).to(q.scalar_type()).sum(0);
    std::vector<at::Tensor> p_of_groups;
    for (const at::Tensor& group_logits : logits_of_groups) p_of_groups.push_back(safe_softmax(group_logits));
    const at::Tensor divisor = seeing + options.merge_eps;
    p = at::cat(p_of_groups, 1) / at::where(seeing == 0.0, 1.0, divisor).unsqueeze(1);
  } else {
    p = safe_softmax(logits);
  }
  if (!factors_of_groups.empty()) p = p * at::cat(factors_of_groups, 1);
  const at::Tensor values = at::cat(values_of_groups, -2);
  return {values.dim() == 2 ? at::mm(p, values) : at::bmm(p.unsqueeze(1), values).squeeze(1), safe_logsumexp(logits)};
}

}  // namespace

AttendResult dense_attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Plan& plan,
                          const AttendOptions& options) {
  const bool counts_suffice =
      options.merge == Merge::lse && options.relative != RelativePosition::rank && options.dropout.probability == 0.0;
  const at::Tensor counts = counts_suffice ? plan.to_dense_counts() : at::Tensor();
  at::Tensor rows;
  if (counts_suffice && options.relative == RelativePosition::true_offset) {
    const at::Tensor& table = options.relative_key.defined() ? options.relative_key : options.relative_value;
    const std::int64_t max = (table.size(0) - 1) / 2;
    const at::Tensor offsets = at::arange(plan.num_keys).unsqueeze(0) - at::arange(plan.num_queries).unsqueeze(1);
    rows = offsets.clamp(-max, max) + max;
  }
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> lses;
  for (std::int64_t unit = 0; unit < plan.batch * plan.heads; ++unit) {
    const std::int64_t b = unit / plan.heads;
    const std::int64_t h = unit % plan.heads;
    const UnitResult result = counts_suffice ? by_counts(q[b][h], k[b][h], v[b][h], counts[b][h], options, rows,
                                                         recency_of(plan, h, options, q.detach()))
                                             : by_masks(q[b][h], k[b][h], v[b][h], plan, unit, options);
    outputs.push_back(result.output);
    lses.push_back(result.lse);
  }
  return {at::stack(outputs).view({plan.batch, plan.heads, plan.num_queries, v.size(3)}),
          at::stack(lses).view({plan.batch, plan.heads, plan.num_queries})};
}

}  // namespace routing::support
