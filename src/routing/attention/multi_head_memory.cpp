// The part of MultiHeadAttention that reads remembered tokens.
#include "routing/attention/multi_head.h"
#include "routing/attention/patterns/position_patterns.h"
#include "routing/attention/plan/token_layout.h"
#include "routing/ops/attend/attend.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

namespace routing {

std::vector<at::Tensor> MultiHeadAttentionImpl::rows_with_past(const at::Tensor& input,
                                                               const AttentionState& state) const {
  const at::Tensor all = at::cat({state.past, input}, 1);
  std::vector<at::Tensor> of_keys{value_weight_};
  if (key_weight_.defined()) of_keys.insert(of_keys.begin(), key_weight_);
  const bool shared =
      std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.config.shared_query_key; });
  if (shared) {
    of_keys.insert(of_keys.begin(), query_weight_);
    return split_heads(all, of_keys, state.precision);
  }
  std::vector<at::Tensor> rows = split_heads(all, of_keys, state.precision);
  const at::Tensor queries = split_heads(input, {query_weight_}, state.precision).front();
  const at::Tensor nothing =
      at::zeros({queries.size(0), queries.size(1), state.past.size(1), queries.size(3)}, queries.options());
  rows.insert(rows.begin(), at::cat({nothing, queries}, 2));
  return rows;
}

// With values of one number, the derivative of the sum of all outputs by the value of a key is the sum of its
// probabilities: no kernel has to hand them out.
at::Tensor MultiHeadAttentionImpl::key_usage(const QueryKey& qk, const Plan& plan, AttendOptions options) {
  options.relative_value = at::Tensor();
  options.dropout = {};
  options.precision = MatmulPrecision::fp32;
  for (at::Tensor* table : {&options.relative_key, &options.recency}) {
    if (table->defined()) *table = table->detach();
  }
  const at::AutoGradMode with_gradient(true);
  const at::Tensor ones =
      at::ones({qk.k.size(0), qk.k.size(1), qk.k.size(2), 1}, qk.k.options().requires_grad(false)).requires_grad_(true);
  const at::Tensor read = attend(qk.q.detach(), qk.k.detach(), ones, plan, options).output;
  const at::Tensor received = torch::autograd::grad({read}, {ones}, {at::ones_like(read)}).front();
  return received.squeeze(3).sum(1);
}

at::Tensor MultiHeadAttentionImpl::read_content(const at::Tensor& input, const at::Tensor& rows,
                                                MatmulPrecision precision) const {
  const auto heads_of = [&](const at::Tensor& from, const at::Tensor& weight) {
    return split_heads(from, {weight.detach()}, precision).front();
  };
  const at::Tensor q = heads_of(input, query_weight_);
  const at::Tensor k = key_weight_.defined() ? heads_of(rows, key_weight_) : at::Tensor();
  const at::Tensor v = heads_of(rows, value_weight_);
  at::Tensor row_queries;  // of keys that are queries
  std::vector<at::Tensor> read;
  for (const Group& group : groups_) {
    const std::int64_t heads = group.config.heads;
    const at::Tensor queries = prepared_queries(group, q.narrow(1, group.first_head, heads));
    at::Tensor keys;
    if (group.config.shared_query_key) {
      if (!row_queries.defined()) row_queries = heads_of(rows, query_weight_);
      keys = shared_keys(group, prepared_queries(group, row_queries.narrow(1, group.first_head, heads)));
    } else {
      keys = prepared_keys(group, k.narrow(1, group.first_key_head, heads));
    }
    const TokenLayout layout =
        cross_layout({.batch = input.size(0), .heads = heads, .num_queries = input.size(1), .num_keys = rows.size(1)});
    const AttendOptions options{.scale = scale_of(group), .precision = precision};
    read.push_back(attend(queries, keys, v.narrow(1, group.first_head, heads),
                          full_plan(layout, /*causal=*/false, SelfRule::allowed), options)
                       .output.transpose(1, 2));
  }
  return at::cat(read, 2).flatten(2);
}

}  // namespace routing
