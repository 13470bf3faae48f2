#include "routing/attention/multi_head.h"

#include "routing/attention/patterns/recency.h"
#include "routing/attention/patterns/rotary.h"
#include "routing/attention/patterns/span.h"
#include "routing/attention/plan/remembered_tokens.h"
#include "routing/config/span_heads.h"
#include "routing/core/error.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/attend/head_rows.h"
#include "routing/ops/initial_weights.h"
#include "routing/ops/layer_norm.h"
#include "routing/ops/unit_length.h"

#include <cmath>
#include <string>
#include <utility>

namespace routing {
namespace {

constexpr double kRoutingNormEps = 1e-6;  // docs/facts.md A1

// Keys of unit length that are their tokens' queries.
bool has_unit_keys(const HeadGroupConfig& group) {
  const auto* const routing = std::get_if<RoutingPattern>(&group.pattern);
  return std::holds_alternative<LshPattern>(group.pattern) ||
         (routing != nullptr && routing->norm == RoutingNorm::unit);
}

// Positions before the first query.
std::int64_t remembered(const AttentionState& state) {
  return state.past.defined() ? state.past.size(1) : first_position(state.piece);
}

// As patterns take them: of all positions. Queries of earlier pieces choose nothing; where not even their keys are
// there, the pattern goes by positions alone.
at::Tensor with_rows_before(const at::Tensor& rows, std::int64_t first, const TokenLayout& layout) {
  const std::int64_t missing = layout.num_queries - rows.size(2);
  if (missing == 0 || first > 0) return rows;
  return at::cat({at::zeros({rows.size(0), rows.size(1), missing, rows.size(3)}, rows.options()), rows}, 2);
}

}  // namespace

MultiHeadAttentionImpl::MultiHeadAttentionImpl(AttentionConfig config, LayerPlace place,
                                               const at::TensorOptions& options)
    : config_(std::move(config)), place_(std::move(place)) {
  validate(config_);
  head_dim_ = head_dim(config_);
  const std::int64_t heads = total_heads(config_);
  std::int64_t first_head = 0;
  std::int64_t key_heads = 0;
  std::int64_t added = 0;
  std::int64_t added_key_heads = 0;
  for (std::size_t index = 0; index < config_.head_groups.size(); ++index) {
    Group group;
    group.config = config_.head_groups[index];
    group.first_head = first_head;
    group.first_key_head = key_heads;
    const std::string name = "group" + std::to_string(index);
    group.pattern =
        register_module(name, make_pattern(group.config, {.kind = config_.kind,
                                                          .dim = head_dim_,
                                                          .first_head = first_head,
                                                          .span_heads = count_span_heads(config_.head_groups),
                                                          .place = place_,
                                                          .options = options}));
    const std::size_t with_tables = table_group(config_.head_groups, index);
    if (with_tables != index) {
      group.relative_key = groups_[with_tables].relative_key;
      group.relative_value = groups_[with_tables].relative_value;
    } else if (group.config.relative != RelativePosition::none) {
      const std::int64_t rows = 2 * group.config.max_relative + 1;
      group.relative_key = make_weight(name + "_relative_key", rows, head_dim_, options);
      group.relative_value = make_weight(name + "_relative_value", rows, head_dim_, options);
    }
    if (group.config.learned_scale) {
      group.log_scale = register_parameter(name + "_log_scale", at::zeros({group.config.heads}, options));
    }
    group.recency_slopes = recency_slopes(config_, index);
    first_head += group.config.heads;
    const bool has_keys = !group.config.shared_query_key || config_.unused_key_columns;
    if (has_keys) key_heads += group.config.heads;
    if (group.config.added) {
      added += group.config.heads;
      if (has_keys) added_key_heads += group.config.heads;
    }
    groups_.push_back(std::move(group));
  }
  query_weight_ = make_projection("query_weight", heads, added, options);
  if (key_heads > 0) key_weight_ = make_projection("key_weight", key_heads, added_key_heads, options);
  value_weight_ = make_projection("value_weight", heads, added, options);
  if (config_.head_mix) head_mix_weight_ = make_weight("head_mix_weight", head_dim_, head_dim_, options);
  output_weight_ = make_output_weight(heads, added, options);
}

std::vector<at::Tensor*> MultiHeadAttentionImpl::places_of(const at::Tensor& parameter) {
  std::vector<at::Tensor*> all{&query_weight_, &key_weight_, &value_weight_, &output_weight_, &head_mix_weight_};
  for (Group& group : groups_) {
    all.insert(all.end(), {&group.relative_key, &group.relative_value, &group.log_scale});
    if (SpanHeads* heads = group.pattern->span_heads()) all.push_back(&heads->share());
  }
  std::erase_if(all, [&](const at::Tensor* place) { return !place->is_same(parameter); });
  return all;
}

at::Tensor MultiHeadAttentionImpl::make_projection(const std::string& name, std::int64_t heads, std::int64_t added,
                                                   const at::TensorOptions& options) {
  const std::int64_t rows = (heads - added) * head_dim_;
  if (added == 0) return make_weight(name, rows, config_.width, options);
  // As large as the others, which are those of a layer without added heads.
  at::Tensor weight = initial_weight(
      {.rows = added * head_dim_, .columns = config_.width, .scale = config_.initial_scale, .rows_of_one = rows},
      place_.key(name + " added"), options);
  if (rows > 0) {
    weight = at::cat({initial_weight({rows, config_.width, config_.initial_scale}, place_.key(name), options), weight});
  }
  return register_parameter(name, weight);
}

at::Tensor MultiHeadAttentionImpl::make_output_weight(std::int64_t heads, std::int64_t added,
                                                      const at::TensorOptions& options) {
  const std::string name = "output_weight";
  const std::int64_t columns = (heads - added) * head_dim_;
  if (added == 0) return make_weight(name, config_.width, columns, options);
  at::Tensor weight = at::zeros({config_.width, added * head_dim_}, options);
  if (columns > 0) {
    const at::Tensor others =
        initial_weight({config_.width, columns, config_.initial_scale}, place_.key(name), options);
    weight = at::cat({others, weight}, 1);
  }
  return register_parameter(name, weight);
}

at::Tensor MultiHeadAttentionImpl::make_weight(const std::string& name, std::int64_t rows, std::int64_t columns,
                                               const at::TensorOptions& options) {
  return register_parameter(name, initial_weight({rows, columns, config_.initial_scale}, place_.key(name), options));
}

// [batch, tokens, width] -> [batch, heads, tokens, head_dim], one per weight
std::vector<at::Tensor> MultiHeadAttentionImpl::split_heads(const at::Tensor& input,
                                                            const std::vector<at::Tensor>& weights,
                                                            MatmulPrecision precision) const {
  std::vector<at::Tensor> heads = linear_branches(input, weights, precision);
  for (at::Tensor& rows : heads) rows = rows.view({rows.size(0), rows.size(1), -1, head_dim_}).transpose(1, 2);
  return heads;
}

at::Tensor MultiHeadAttentionImpl::own_rows(const at::Tensor& rows, const SequencePiece* piece) {
  if (piece == nullptr) return rows;
  const std::int64_t tokens = piece->end() - piece->begin();
  return rows.narrow(2, rows.size(2) - tokens, tokens);
}

void MultiHeadAttentionImpl::check_call(const at::Tensor& input, const AttentionState& state) const {
  require<InputError>(input.dim() == 3 && input.size(2) == config_.width, config_.name, ": input is ", input.sizes(),
                      ", but must be [batch, tokens, ", config_.width, "]");
  const bool cross = config_.kind == AttentionKind::cross;
  require<InputError>(cross == state.memory.defined(), config_.name,
                      cross ? ": cross-attention needs a memory to read, but state.memory is undefined"
                            : ": state.memory was given, but this layer attends to its own input");
  if (cross) {
    require<InputError>(
        state.memory.dim() == 3 && state.memory.size(0) == input.size(0) && state.memory.size(2) == config_.width,
        config_.name, ": memory is ", state.memory.sizes(), ", but must be [", input.size(0), ", keys, ", config_.width,
        "]");
  }
  if (state.past.defined()) {
    require<InputError>(config_.kind == AttentionKind::causal_self && !state.valid.defined(), config_.name,
                        ": remembered tokens were given, but only causal self-attention without padding reads any");
    require<InputError>(
        state.past.dim() == 3 && state.past.size(0) == input.size(0) && state.past.size(2) == config_.width,
        config_.name, ": remembered tokens are ", state.past.sizes(), ", but must be [", input.size(0), ", tokens, ",
        config_.width, "]");
  }
  if (state.piece != nullptr) {
    require<InputError>(
        config_.kind == AttentionKind::causal_self && !state.valid.defined() && !state.past.defined(), config_.name,
        ": a piece of a sequence was given, but only causal self-attention without padding and memory is split");
    require<InputError>(input.size(1) == state.piece->end() - state.piece->begin(), config_.name, ": the input has ",
                        input.size(1), " tokens, but the piece ", state.piece->end() - state.piece->begin());
    const std::string reason = reason_against_cache();
    require<InputError>(reason.empty(), config_.name, ": ", reason, ", so no piece of a sequence can be read alone");
  }
  require<InputError>(!state.reuse_plans || state.plans.size() == groups_.size(), config_.name, ": reuse_plans with ",
                      state.plans.size(), " plans, but the layer has ", groups_.size(), " head groups");
}

TokenLayout MultiHeadAttentionImpl::layout_for(const Group& group, const at::Tensor& input,
                                               const AttentionState& state) const {
  if (config_.kind != AttentionKind::cross) {
    return self_layout(input.size(0), group.config.heads, remembered(state) + input.size(1), state.valid);
  }
  return cross_layout({.batch = input.size(0),
                       .heads = group.config.heads,
                       .num_queries = input.size(1),
                       .num_keys = state.memory.size(1)},
                      state.valid, state.memory_valid);
}

at::Tensor MultiHeadAttentionImpl::prepared_queries(const Group& group, const at::Tensor& mine) const {
  const auto* routing = std::get_if<RoutingPattern>(&group.config.pattern);
  if (routing == nullptr || routing->norm == RoutingNorm::unit) return mine;
  const double scale = routing->scale_before_norm ? 1.0 / std::sqrt(static_cast<double>(head_dim_)) : 1.0;
  return layer_norm(scale == 1.0 ? mine : mine * scale, {}, {}, kRoutingNormEps);
}

at::Tensor MultiHeadAttentionImpl::prepared_keys(const Group& group, const at::Tensor& mine) {
  return std::holds_alternative<RoutingPattern>(group.config.pattern) ? layer_norm(mine, {}, {}, kRoutingNormEps)
                                                                      : mine;
}

at::Tensor MultiHeadAttentionImpl::shared_keys(const Group& group, const at::Tensor& queries) {
  return has_unit_keys(group.config) ? unit_length(queries) : queries;
}

at::Tensor MultiHeadAttentionImpl::choosing_rows(const Group& group, const QueryKey& chosen) {
  const bool routed = std::holds_alternative<RoutingPattern>(group.config.pattern);
  return routed && has_unit_keys(group.config) ? chosen.k : chosen.q;
}

MultiHeadAttentionImpl::GroupRows MultiHeadAttentionImpl::turned_rows(const Group& group, const GroupRows& rows,
                                                                      std::span<const std::int64_t> first_positions) {
  if (group.config.rotary == Rotary::none) return rows;
  const auto turn = [&](const at::Tensor& each) { return each.defined() ? rotated(each, first_positions) : each; };
  return {turn(rows.q), turn(rows.k), group.config.rotary == Rotary::values ? turn(rows.v) : rows.v};
}

MultiHeadAttentionImpl::QueryKey MultiHeadAttentionImpl::prepare(const Group& group, const QueryKey& mine) const {
  const at::Tensor queries = prepared_queries(group, mine.q);
  return {queries, group.config.shared_query_key ? shared_keys(group, queries) : prepared_keys(group, mine.k)};
}

MultiHeadAttentionImpl::Attended MultiHeadAttentionImpl::attended_rows(const Group& group, const QueryKey& chosen) {
  const bool shift = group.config.key_shift == 1;
  const bool same = chosen.k.is_same(chosen.q);
  const SharedRows rows = shared_query_key_rows(chosen.q, group.log_scale, shift && same);
  const at::Tensor keys = same ? rows.keys : shared_query_key_rows(chosen.k, {}, shift).keys;
  return {with_span_columns(group, {rows.queries, keys}), rows.rows};
}

MultiHeadAttentionImpl::QueryKey MultiHeadAttentionImpl::with_span_columns(const Group& group, const QueryKey& rows) {
  if (group.pattern->span_heads() == nullptr) return rows;
  return {SpanHeads::queries_with_span(rows.q), rows.k.defined() ? SpanHeads::keys_with_span(rows.k) : rows.k};
}

double MultiHeadAttentionImpl::scale_of(const Group& group) const {
  return group.config.scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)));
}

AttendOptions MultiHeadAttentionImpl::attend_options(const Group& group, const at::TensorOptions& type) const {
  AttendOptions options{.scale = scale_of(group),
                        .merge = group.config.merge,
                        .merge_eps = group.config.merge_eps,
                        .relative = group.config.relative,
                        .relative_key = group.relative_key,
                        .relative_value = group.relative_value,
                        .recency = slopes_for_attend(group.recency_slopes, type)};
  const SpanHeads* const span = group.pattern->span_heads();
  return span == nullptr ? options : span->with_span(std::move(options), head_dim_);
}

GroupProbe MultiHeadAttentionImpl::make_probe(const Group& group, const QueryKey& qk, const Plan& plan) const {
  const at::Tensor queries = probe_vectors(qk.q);
  const AttendOptions options = attend_options(group, queries.options());
  return {.pattern_name = pattern_name(group.config.pattern),
          .first_head = group.first_head,
          .queries = queries,
          .keys = qk.k.is_same(qk.q) ? queries : probe_vectors(qk.k),
          .plan = plan,
          .scale = options.scale,
          .merge = options.merge,
          .merge_eps = options.merge_eps,
          .relative = options.relative,
          .relative_key = probe_vectors(options.relative_key),
          .recency = options.recency};
}

MultiHeadAttentionImpl::Prepared MultiHeadAttentionImpl::prepare_group(std::size_t index, const PieceRows& rows,
                                                                       AttentionState& state,
                                                                       const TokenLayout& layout) {
  const Group& group = groups_[index];
  const QueryKey& chosen = rows.chosen;
  // What the pattern chooses by; shifted keys choose as the queries they are.
  const at::Tensor separate_keys = group.config.shared_query_key ? at::Tensor() : chosen.k;
  if (!state.reuse_plans) {
    Plan& plan = state.plans[index];
    plan = group.pattern->plan({.layout = layout,
                                .queries = with_rows_before(choosing_rows(group, chosen).detach(), rows.first, layout),
                                .keys = separate_keys.defined() ? separate_keys.detach() : separate_keys,
                                .training = is_training(),
                                .step = state.step,
                                .sample_ids = state.sample_ids,
                                .remembered = remembered(state)});
    if (state.piece != nullptr) plan = with_rows_from(plan, state.piece->begin(), rows.first);
  }
  Attended attended = attended_rows(group, chosen);
  QueryKey& qk = attended.query_key;
  if (state.piece != nullptr) {
    // Where a key is its query they are two tensors from here on.
    qk.q = own_rows(qk.q, state.piece);
    attended.chosen_queries = own_rows(attended.chosen_queries, state.piece);
  }
  add_auxiliary_loss(index, choosing_rows(group, {attended.chosen_queries, own_rows(chosen.k, state.piece)}),
                     separate_keys.defined() ? own_rows(separate_keys, state.piece) : separate_keys, state);
  return {qk, rows.values};
}

void MultiHeadAttentionImpl::add_auxiliary_loss(std::size_t index, const at::Tensor& choosing,
                                                const at::Tensor& separate_keys, AttentionState& state) const {
  if (!is_training()) return;
  const at::Tensor loss = groups_[index].pattern->auxiliary_loss(choosing, separate_keys, state.plans[index]);
  if (loss.defined()) state.auxiliary_loss = state.auxiliary_loss.defined() ? state.auxiliary_loss + loss : loss;
}

at::Tensor MultiHeadAttentionImpl::attend_group(std::size_t index, const Prepared& prepared,
                                                AttentionState& state) const {
  const Group& group = groups_[index];
  const QueryKey& qk = prepared.query_key;
  if (state.keep_probes && !is_training()) state.probes.push_back(make_probe(group, qk, state.plans[index]));
  AttendOptions options = attend_options(group, qk.q.options());
  options.precision = state.precision;
  if (state.wants_usage && !state.reuse_plans) {
    const at::Tensor usage = key_usage(qk, state.plans[index], options);
    state.usage = state.usage.defined() ? state.usage + usage : usage;
  }
  if (is_training() && config_.dropout > 0.0) {
    options.dropout = {.probability = config_.dropout,
                       .key = place_.key("attention dropout", {index, state.step}),
                       .sample_ids = state.sample_ids};
  }
  const at::Tensor output = attend(qk.q, qk.k, prepared.values, state.plans[index], options).output;
  const std::int64_t past = state.past.defined() ? state.past.size(1) : 0;
  return past == 0 ? output : output.narrow(2, past, output.size(2) - past);
}

std::vector<MultiHeadAttentionImpl::GroupRows> MultiHeadAttentionImpl::group_rows(const at::Tensor& input,
                                                                                  const AttentionState& state) const {
  std::vector<at::Tensor> of_keys{value_weight_};
  if (key_weight_.defined()) of_keys.insert(of_keys.begin(), key_weight_);
  std::vector<at::Tensor> rows;  // queries, keys if there are any, values
  if (state.memory.defined()) {
    rows = split_heads(state.memory, of_keys, state.precision);
    rows.insert(rows.begin(), split_heads(input, {query_weight_}, state.precision).front());
  } else if (state.past.defined()) {
    rows = rows_with_past(input, state);
  } else {
    of_keys.insert(of_keys.begin(), query_weight_);
    rows = split_heads(input, of_keys, state.precision);
  }
  std::vector<HeadRange> all;
  std::vector<HeadRange> with_keys;
  for (const Group& group : groups_) {
    all.push_back({group.first_head, group.config.heads});
    if (!group.config.shared_query_key) with_keys.push_back({group.first_key_head, group.config.heads});
  }
  const std::vector<at::Tensor> q = split_head_groups(rows.front(), all);
  const std::vector<at::Tensor> k =
      with_keys.empty() ? std::vector<at::Tensor>() : split_head_groups(rows[1], with_keys);
  const std::vector<at::Tensor> v = split_head_groups(rows.back(), all);
  std::vector<GroupRows> groups;
  std::size_t next_key = 0;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    const bool shared = groups_[index].config.shared_query_key;
    groups.push_back({.q = q[index], .k = shared ? at::Tensor() : k[next_key++], .v = v[index]});
  }
  return groups;
}

at::Tensor MultiHeadAttentionImpl::forward(const at::Tensor& input, AttentionState& state) {
  check_call(input, state);
  if (!state.reuse_plans) {
    state.plans.assign(groups_.size(), Plan{});
    state.readings.assign(groups_.size(), nullptr);
    state.usage = at::Tensor();
  }
  state.auxiliary_loss = at::Tensor();
  state.probes.clear();
  std::vector<GroupRows> rows = group_rows(input, state);
  const std::vector<std::int64_t> first_positions(static_cast<std::size_t>(input.size(0)), first_position(state.piece));
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    rows[index] = turned_rows(groups_[index], rows[index], first_positions);
  }
  std::vector<at::Tensor> outputs;
  if (state.piece != nullptr) {
    outputs = attend_piece(std::move(rows), input, state);
  } else {
    for (std::size_t index = 0; index < groups_.size(); ++index) {
      const Group& group = groups_[index];
      const PieceRows read{prepare(group, {rows[index].q, rows[index].k}), rows[index].v};
      outputs.push_back(attend_group(index, prepare_group(index, read, state, layout_for(group, input, state)), state));
    }
  }
  // Heads inside of tokens, as attention leaves them in memory and the last projection reads them.
  for (at::Tensor& output : outputs) output = output.transpose(1, 2);
  return merge_heads(merge_head_groups(outputs), state.precision);
}

// [batch, tokens, heads, head_dim] -> [batch, tokens, width]
at::Tensor MultiHeadAttentionImpl::merge_heads(const at::Tensor& merged, MatmulPrecision precision) const {
  const at::Tensor mixed =
      head_mix_weight_.defined() ? linear(merged, head_mix_weight_, {}, {.precision = precision}) : merged;
  return linear(mixed.flatten(2), output_weight_, {}, {.precision = precision});
}

}  // namespace routing
