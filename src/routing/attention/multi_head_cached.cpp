// The part of MultiHeadAttention that reads sequences piece by piece.
#include "routing/attention/cache/sequence_pieces.h"
#include "routing/attention/multi_head.h"
#include "routing/attention/patterns/shifted_keys.h"
#include "routing/attention/patterns/span.h"
#include "routing/core/error.h"
#include "routing/ops/attend/attend_fused.h"
#include "routing/ops/attend/head_rows.h"
#include "routing/ops/attend/head_tensors.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace routing {
namespace {

std::string why_not(const HeadGroupConfig& group, AttentionKind kind) {
  if (std::holds_alternative<RandomPattern>(group.pattern)) return "random heads draw from the whole sequence";
  if (const auto* routing = std::get_if<RoutingPattern>(&group.pattern)) {
    if (routing->selection == RoutingSelection::balanced) {
      return "routing.selection = balanced takes the best tokens of the whole sequence";
    }
  }
  if (kind == AttentionKind::cross) return "local heads cut the source into as many blocks as the whole target has";
  return "heads read on both sides";
}

// Where the new tokens of sequences begin.
std::vector<std::int64_t> lengths_of(const HeadCache& heads, std::span<const std::int64_t> sequences) {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t sequence : sequences) lengths.push_back(heads.length(sequence));
  return lengths;
}

// Of the part that a thread reads.
KeptPlan& plan_of_thread() {
  thread_local KeptPlan plan;
  return plan;
}

TokenLists last_token_of(const TokenLists& all) {
  return {.counts = {all.counts.back()}, .lists = {all.lists.end() - all.counts.back(), all.lists.end()}};
}

}  // namespace

std::string MultiHeadAttentionImpl::reason_against_cache() const {
  for (const Group& group : groups_) {
    if (!group.pattern->list_rules()) return config_.name + ": " + why_not(group.config, config_.kind);
  }
  return {};
}

AttentionCache MultiHeadAttentionImpl::make_cache(const Horizon& horizon, MatmulPrecision precision) const {
  const std::string reason = reason_against_cache();
  require<InputError>(reason.empty(), reason, ", so it cannot be read piece by piece; run whole prefixes instead");
  require<InputError>(query_weight_.device().is_cpu() && query_weight_.scalar_type() == at::kFloat, config_.name,
                      ": weights are ", query_weight_.scalar_type(), " on ", query_weight_.device().str(),
                      ", but a cache needs Float on the CPU");
  AttentionCache cache;
  for (const Group& group : groups_) {
    const HeadCacheShape shape{
        .heads = group.config.heads,
        .key_dim = head_dim_ + (group.pattern->span_heads() != nullptr ? SpanHeads::kColumns : 0),
        .value_dim = head_dim_,
        .rules = *group.pattern->list_rules(),
        .self = group.config.self,
        .memory = config_.kind == AttentionKind::cross,
        .horizon = horizon,
        .key_shift = group.config.key_shift,
        .halves = attend_keeps_halves(precision)};
    AttendOptions options = attend_options(group, at::kFloat);
    options.precision = precision;
    for (at::Tensor* table : {&options.relative_key, &options.relative_value}) {
      if (table->defined()) *table = table->detach().contiguous();
    }
    cache.groups_.push_back({.heads = HeadCache(shape), .options = std::move(options)});
  }
  return cache;
}

void MultiHeadAttentionImpl::set_memory(AttentionCache& cache, std::int64_t sequence, const Memory& memory,
                                        MatmulPrecision precision) const {
  const at::NoGradGuard no_gradient;
  require<InputError>(config_.kind == AttentionKind::cross, config_.name,
                      ": a memory was given, but this layer attends to its own input");
  require<InputError>(memory.values.dim() == 3 && memory.values.size(0) == 1 && memory.values.size(2) == config_.width,
                      config_.name, ": memory is ", memory.values.sizes(), ", but must be [1, keys, ", config_.width,
                      "]");
  const auto heads_of = [&](const at::Tensor& weight) {
    return split_heads(memory.values, {weight}, precision).front();
  };
  const at::Tensor k = key_weight_.defined() ? heads_of(key_weight_) : at::Tensor();
  const at::Tensor v = heads_of(value_weight_);
  const TokenLayout layout = self_layout(1, 1, memory.values.size(1), memory.valid);
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    const Group& group = groups_[index];
    const at::Tensor keys =
        with_adjacent_numbers(prepared_keys(group, k.narrow(1, group.first_key_head, group.config.heads)));
    const at::Tensor values = v.narrow(1, group.first_head, group.config.heads);
    cache.groups_.at(index).heads.set_memory(sequence, keys.size(2), read_rows(keys), read_rows(values),
                                             group.pattern->memory_lists(keys, layout.valid_keys[0]));
  }
}

at::Tensor MultiHeadAttentionImpl::queries_before(std::size_t index, const CachedCall& call,
                                                  const AttentionCache& cache) const {
  const AttentionCache::Group& kept = cache.groups_.at(index);
  const std::int64_t heads = groups_[index].config.heads;
  at::Tensor before = at::empty({static_cast<std::int64_t>(call.sequences.size()), heads, 1, head_dim_});
  auto* to = before.data_ptr<float>();
  for (const std::int64_t sequence : call.sequences) {
    const std::span<const float> last = kept.queries_of(sequence);
    to = last.empty() ? std::fill_n(to, heads * head_dim_, 0.0F) : std::copy(last.begin(), last.end(), to);
  }
  return before;
}

std::vector<TokenLists> MultiHeadAttentionImpl::lists_of_last(std::size_t index, const CachedCall& call,
                                                              const AttentionCache& cache) {
  std::vector<TokenLists> all;
  for (const std::int64_t sequence : call.sequences) {
    const std::span<const TokenLists> lists = cache.groups_.at(index).lists_of(sequence);
    if (lists.empty()) return {};
    all.insert(all.end(), lists.begin(), lists.end());
  }
  return all;
}

void MultiHeadAttentionImpl::take_queries_before(const std::vector<QueryKey>& qk, PieceExchange& pieces,
                                                 std::int64_t sequence, AttentionCache& cache) const {
  std::vector<at::Tensor> mine;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (groups_[index].config.key_shift == 0) continue;
    const at::Tensor& q = qk[index].q;
    mine.push_back(q.select(2, q.size(2) - 1).contiguous().flatten());
  }
  if (mine.empty()) return;
  // Only copied, never read as what it is not.
  const at::Tensor gathered = pieces.gather(at::cat(mine).view(at::kInt)).view(at::kFloat).contiguous();
  if (pieces.piece() == 0) return;
  std::int64_t place = 0;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (groups_[index].config.key_shift == 0) continue;
    const std::int64_t heads = groups_[index].config.heads;
    const float* const mine_before = gathered.data_ptr<float>() + (pieces.piece() - 1) * gathered.size(1) + place;
    cache.groups_.at(index).room_for_queries(sequence).assign(mine_before, mine_before + heads * head_dim_);
    cache.groups_.at(index).room_for_lists(sequence).clear();
    place += heads * head_dim_;
  }
}

MultiHeadAttentionImpl::CachedTokens MultiHeadAttentionImpl::cached_tokens(std::size_t index, const QueryKey& qk,
                                                                           const at::Tensor& v, const CachedCall& call,
                                                                           const AttentionCache& cache) const {
  const Group& group = groups_[index];
  const std::vector<std::int64_t> first_positions = lengths_of(cache.groups_.at(index).heads, call.sequences);
  const QueryKey rows = with_span_columns(
      group, {shared_query_key_rows(with_adjacent_numbers(qk.q), group.log_scale, /*shift=*/false).queries, qk.k});
  CachedTokens read{.queries = rows.q,
                    .keys = rows.k.defined() ? with_adjacent_numbers(rows.k) : rows.k,
                    .values = v,
                    .query_lists = {},
                    .key_lists = {}};
  const bool by_position = group.pattern->key_list_kind() == KeyListKind::by_position;
  // Where there is one list for all keys, heads have nothing to choose, and are asked once for all of them.
  const bool alike =
      cache.groups_.at(index).heads.shape().rules.lists == 1 && group.config.key_shift == 0 && !by_position;
  const at::Tensor choosing = choosing_rows(group, qk);
  read.query_lists = group.pattern->token_lists(alike ? choosing.narrow(1, 0, 1) : choosing, first_positions);
  if (group.config.key_shift == 1) {
    const at::Tensor before = queries_before(index, call, cache);
    read.keys = with_adjacent_numbers(shared_keys(group, at::cat({before, qk.q.narrow(2, 0, qk.q.size(2) - 1)}, 2)));
    std::vector<TokenLists> lists_before = by_position ? std::vector<TokenLists>() : lists_of_last(index, call, cache);
    if (lists_before.empty()) {
      std::vector<std::int64_t> positions_before = first_positions;
      for (std::int64_t& position : positions_before) --position;
      lists_before = group.pattern->key_lists(before, positions_before);
    }
    read.key_lists =
        shifted_lists(lists_before, by_position ? group.pattern->key_lists(qk.q, first_positions) : read.query_lists,
                      first_positions);
    read.last_queries = qk.q.select(2, qk.q.size(2) - 1).contiguous();
    return read;
  }
  const bool separate = qk.k.defined() && !group.config.shared_query_key;
  if (by_position || (separate && group.pattern->key_list_kind() == KeyListKind::by_content)) {
    read.key_lists = group.pattern->key_lists(separate ? qk.k : qk.q, first_positions);
  }
  return read;
}

void MultiHeadAttentionImpl::attend_cached(std::size_t index, const CachedTokens& read, const CachedCall& call,
                                           AttentionCache& cache, at::Tensor& output) const {
  const Group& group = groups_[index];
  AttentionCache::Group& kept = cache.groups_.at(index);
  HeadCache::NewTokens tokens{.sequences = call.sequences,
                              .tokens = read.queries.size(2),
                              .query_lists = read.query_lists,
                              .key_lists = read.key_lists};
  if (read.keys.defined()) {
    tokens.keys = read_rows(read.keys);
    tokens.values = read_rows(read.values);
  }
  KeptPlan& plan = cache.in_parts_ ? plan_of_thread() : kept.last_plan;
  plan = kept.heads.append(tokens, std::move(plan));
  for (std::size_t number = 0; read.last_queries.defined() && number < call.sequences.size(); ++number) {
    const std::int64_t size = read.last_queries.numel() / read.last_queries.size(0);
    const float* const queries = read.last_queries.data_ptr<float>() + static_cast<std::int64_t>(number) * size;
    kept.room_for_queries(call.sequences[number]).assign(queries, queries + size);
    const auto heads = static_cast<std::size_t>(group.config.heads);
    const std::span chosen = std::span(read.query_lists).subspan(number * heads, heads);
    std::vector<TokenLists>& lists = kept.room_for_lists(call.sequences[number]);
    lists.clear();
    for (const TokenLists& each : chosen) lists.push_back(last_token_of(each));
  }
  // Others may read the options now.
  std::optional<AttendOptions> other;
  if (kept.options.precision != call.precision) other.emplace(kept.options).precision = call.precision;
  // Heads stand inside of tokens there.
  float* const mine = output.data_ptr<float>() + group.first_head * output.stride(2);
  const RowStore& store = kept.heads.store();
  attend_kept(read.queries, {store.rows(), store.key_dim(), kept.tables}, plan, other ? *other : kept.options,
              {mine, output.stride(0), output.stride(2), output.stride(1)});
  kept.heads.release(call.sequences);
}

at::Tensor MultiHeadAttentionImpl::forward_cached(const at::Tensor& input, AttentionCache& cache,
                                                  std::span<const std::int64_t> sequences, MatmulPrecision precision,
                                                  PieceExchange* pieces) const {
  const at::NoGradGuard no_gradient;
  require<InputError>(input.dim() == 3 && input.size(0) == static_cast<std::int64_t>(sequences.size()) &&
                          input.size(1) > 0 && input.size(2) == config_.width,
                      config_.name, ": input is ", input.sizes(), ", but must be [", sequences.size(), ", tokens, ",
                      config_.width, "] with at least one token");
  const bool cross = config_.kind == AttentionKind::cross;
  require<InputError>(pieces == nullptr || (!cross && sequences.size() == 1), config_.name, ": pieces of ",
                      sequences.size(), " sequences of ", cross ? "a decoder with a source" : "a decoder",
                      " were given, but only one sequence of a decoder-only model is read in pieces elsewhere");
  const CachedCall call{sequences, precision};
  const auto heads_of = [&](const at::Tensor& weight) { return split_heads(input, {weight}, precision).front(); };
  const at::Tensor q = heads_of(query_weight_);
  const at::Tensor k = key_weight_.defined() && !cross ? heads_of(key_weight_) : at::Tensor();
  const at::Tensor v = cross ? at::Tensor() : heads_of(value_weight_);
  std::vector<QueryKey> qk;
  std::vector<at::Tensor> values;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    const Group& group = groups_[index];
    const at::Tensor mine = q.narrow(1, group.first_head, group.config.heads);
    if (cross) {
      qk.push_back({prepared_queries(group, mine), {}});
      values.emplace_back();
      continue;
    }
    const at::Tensor keys =
        group.config.shared_query_key ? at::Tensor() : k.narrow(1, group.first_key_head, group.config.heads);
    const GroupRows rows = turned_rows(group, {mine, keys, v.narrow(1, group.first_head, group.config.heads)},
                                       lengths_of(cache.groups_.at(index).heads, sequences));
    qk.push_back(prepare(group, {rows.q, rows.k}));
    values.push_back(rows.v);
  }
  if (pieces != nullptr) take_queries_before(qk, *pieces, sequences.front(), cache);
  std::vector<CachedTokens> read;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    read.push_back(cached_tokens(index, qk[index], values[index], call, cache));
  }
  if (pieces != nullptr) {
    // They are sent head by head.
    for (std::size_t index = 0; index < groups_.size(); ++index) {
      std::vector<TokenLists>& lists = read[index].query_lists;
      if (lists.size() == 1) lists.resize(static_cast<std::size_t>(groups_[index].config.heads), lists.front());
    }
    std::vector<PieceKeys> keys;
    for (std::size_t index = 0; index < groups_.size(); ++index) {
      const CachedTokens& group = read[index];
      keys.push_back({.cache = &cache.groups_.at(index).heads,
                      .keys = group.keys,
                      .values = group.values,
                      .key_lists = group.key_lists.empty() ? group.query_lists : group.key_lists});
    }
    take_keys_before(*pieces, sequences.front(), keys);
  }
  at::Tensor merged = at::empty({input.size(0), input.size(1), total_heads(config_), head_dim_}, input.options());
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    attend_cached(index, read[index], call, cache, merged);
    read[index] = {};
    if (pieces == nullptr) continue;
    // A piece is long: of what it took for a moment, each layer would keep as much.
    cache.groups_[index].last_plan = {};
    cache.groups_[index].heads.compact();
  }
  return merge_heads(merged, precision);
}

}  // namespace routing
