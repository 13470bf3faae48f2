// Multi-head attention whose heads come in groups, each with its own pattern.
//
//   Q = X W_Q, K = M W_K, V = M W_V        no biases; M is X itself, or the memory of cross-attention
//   head group g: plan from its pattern, attend over the plan
//   output = [heads of all groups, in the order of the configuration] W_O
//
// Heads of a group with shared_query_key have no columns in W_K: their keys are their queries (of unit length for LSH,
// as in Reformer), or those of the token before (key_shift). Routed heads layer-normalise queries and keys, without
// gain or bias, and attend with those, unless their norm is unit (config/routing_pattern.h). Rotary heads turn vectors
// by their positions before that. With learned_scale the logits of head h get one more factor, exp(t_h), t_h from
// 0.
#pragma once

#include "routing/attention/cache/attention_cache.h"
#include "routing/attention/cache/piece_exchange.h"
#include "routing/attention/head_probe.h"
#include "routing/attention/patterns/pattern.h"
#include "routing/attention/pieces/list_rows.h"
#include "routing/attention/pieces/sequence_piece.h"
#include "routing/attention/routing/centroids.h"
#include "routing/config/attention.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/attend/plan.h"
#include "routing/ops/dense/linear.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace routing {

// What one call of a layer reads beside its input, and the plans it leaves behind.
struct AttentionState {
  at::Tensor memory = {};        // [batch, keys, width]: what cross-attention reads; undefined for self-attention
  at::Tensor valid = {};         // bool [batch, tokens], true for real tokens; undefined means all
  at::Tensor memory_valid = {};  // bool [batch, keys], for cross-attention
  // [batch, remembered, width]: tokens that stand before the input and are keys for it, without output of their own.
  // Causal self-attention without padding only; undefined means none. Plans are over remembered + tokens positions.
  at::Tensor past = {};
  // The input is this piece of sequences whose other pieces are computed elsewhere (pieces/sequence_piece.h); null
  // means that it is whole. Causal self-attention without padding and without remembered tokens only. Plans are over
  // all positions up to the end of the piece.
  const SequencePiece* piece = nullptr;
  // int64 [batch]: identities of the sequences, for dropout and samples of tokens; undefined means 0, 1, 2 ….
  at::Tensor sample_ids = {};
  MatmulPrecision precision = MatmulPrecision::fp32;  // of projections and attention
  std::uint64_t step = 0;        // counts training forwards: names the draws of dropout and random patterns
  std::vector<Plan> plans = {};  // one per head group: what the last forward used
  // One per head group: what of a piece's plan comes from other pieces, for groups that read by lists.
  std::vector<std::shared_ptr<const ListReading>> readings = {};
  bool reuse_plans = false;             // attend over them instead of making new ones (activation checkpointing)
  bool keep_probes = false;             // keep what heads attend with, for analysis; in evaluation only
  std::vector<GroupProbe> probes = {};  // one per head group: those of the last such forward
  // If wanted, a forward leaves how much attention each key got, summed over queries and heads: [batch, keys].
  bool wants_usage = false;
  at::Tensor usage = {};
  // Set by a training forward: what the layer's patterns add to the loss; may be undefined.
  at::Tensor auxiliary_loss = {};
};

class MultiHeadAttentionImpl : public torch::nn::Module {
 public:
  // Weights are drawn from streams named by the place, uniform with variance initial_scale over the mean of fan-in and
  // fan-out, as the authors initialise every dense kernel and relative table.
  MultiHeadAttentionImpl(AttentionConfig config, LayerPlace place, const at::TensorOptions& options);

  // input [batch, tokens, width] -> the same shape. Padded rows of the output are zero.
  at::Tensor forward(const at::Tensor& input, AttentionState& state);

  // What the heads read of these rows [batch, rows, width] by content alone, each query all of them, in front of the
  // last projection: [batch, tokens, heads * head_dim]. Differentiable in the rows and the input; weights are taken as
  // given.
  at::Tensor read_content(const at::Tensor& input, const at::Tensor& rows, MatmulPrecision precision) const;

  // forward() for sequences that are read piece by piece: input [sequences, tokens, width] holds the next tokens of
  // some sequences of the cache, equally many of each, and the result is what forward() of the whole sequences has at
  // their places, bit for bit. Float32 on the CPU, in evaluation, without gradients.
  //
  // With `pieces` the input is a piece of one sequence whose other pieces are read elsewhere at the same time: takes
  // the keys that stand before it from there (sequence_pieces.h). For self-attention.
  at::Tensor forward_cached(const at::Tensor& input, AttentionCache& cache, std::span<const std::int64_t> sequences,
                            MatmulPrecision precision, PieceExchange* pieces = nullptr) const;
  // An empty cache for this layer. Throws an InputError where there is a reason against it. With a horizon the result
  // is what forward() has of one segment after the other, each with its memory. A cache for bf16 takes half the memory
  // where kernels read keys so, and is good for that precision only; one for fp32 is good for both.
  AttentionCache make_cache(const Horizon& horizon = {}, MatmulPrecision precision = MatmulPrecision::fp32) const;
  // Why a sequence cannot be read piece by piece; empty if it can.
  std::string reason_against_cache() const;
  // What a sequence of a layer of cross-attention reads: memory [1, keys, width], valid bool [1, keys] or undefined.
  struct Memory {
    at::Tensor values, valid = {};
  };
  void set_memory(AttentionCache& cache, std::int64_t sequence, const Memory& memory, MatmulPrecision precision) const;

  // The centroids of head group `index`, to be updated once after each optimiser step; null where it is not routed.
  Centroids* centroids(std::size_t index) { return groups_.at(index).pattern->centroids(); }
  // The heads of group `index` with a learned span, to be clamped once after each optimiser step; null if they have
  // none.
  SpanHeads* span_heads(std::size_t index) const { return groups_.at(index).pattern->span_heads(); }

  // Where the layer keeps this parameter of its own: whoever puts another tensor of the same shape there makes the
  // layer compute with it, and has to put the parameter back. For callers whose weights are made of others (the Python
  // package).
  std::vector<at::Tensor*> places_of(const at::Tensor& parameter);

  const AttentionConfig& config() const { return config_; }

 private:
  struct Group {
    HeadGroupConfig config;
    std::shared_ptr<Pattern> pattern;
    std::int64_t first_head = 0;
    std::int64_t first_key_head = 0;  // in W_K, unless keys are shared
    at::Tensor relative_key, relative_value;
    at::Tensor log_scale;                // [heads]: t_h of learned_scale; undefined without it
    std::vector<double> recency_slopes;  // one per head; empty without recency
  };

  // Rows of heads in W_Q, W_K and W_V; those of added heads are drawn by themselves.
  at::Tensor make_projection(const std::string& name, std::int64_t heads, std::int64_t added,
                             const at::TensorOptions& options);
  at::Tensor make_output_weight(std::int64_t heads, std::int64_t added, const at::TensorOptions& options);
  at::Tensor make_weight(const std::string& name, std::int64_t rows, std::int64_t columns,
                         const at::TensorOptions& options);
  std::vector<at::Tensor> split_heads(const at::Tensor& input, const std::vector<at::Tensor>& weights,
                                      MatmulPrecision precision) const;
  void check_call(const at::Tensor& input, const AttentionState& state) const;
  TokenLayout layout_for(const Group& group, const at::Tensor& input, const AttentionState& state) const;
  // Queries and keys of a group: normalised, as patterns choose by them …
  struct QueryKey {
    at::Tensor q, k;
  };
  // Projected rows of a group's heads, before any norm; no keys where they are shared.
  struct GroupRows {
    at::Tensor q, k, v;
  };
  std::vector<GroupRows> group_rows(const at::Tensor& input, const AttentionState& state) const;
  // Queries, keys if there are any, values, of remembered tokens and the input; queries of remembered ones are zeros
  // where no key is a query.
  std::vector<at::Tensor> rows_with_past(const at::Tensor& input, const AttentionState& state) const;
  QueryKey prepare(const Group& group, const QueryKey& mine) const;
  // Rows as the patterns choose by them, and values. Of a piece they begin at position `first`: those of earlier pieces
  // come from there.
  struct PieceRows {
    QueryKey chosen;
    at::Tensor values;
    std::int64_t first = 0;
  };
  PieceRows rows_over_pieces(const Group& group, const GroupRows& mine, const SequencePiece& piece) const;
  // The rows of the piece, of rows that may begin in earlier ones.
  static at::Tensor own_rows(const at::Tensor& rows, const SequencePiece* piece);
  static at::Tensor shared_keys(const Group& group, const at::Tensor& queries);
  // What tokens choose their groups by: queries, or those of unit length.
  static at::Tensor choosing_rows(const Group& group, const QueryKey& chosen);
  // The rows turned by their positions where the group has rotary ones. Those of each sequence begin at its first
  // position; none given means 0.
  static GroupRows turned_rows(const Group& group, const GroupRows& rows,
                               std::span<const std::int64_t> first_positions = {});
  at::Tensor prepared_queries(const Group& group, const at::Tensor& mine) const;
  static at::Tensor prepared_keys(const Group& group, const at::Tensor& mine);
  double scale_of(const Group& group) const;
  // How the group attends in evaluation and in float32; slopes of this type.
  AttendOptions attend_options(const Group& group, const at::TensorOptions& type) const;
  // … and as the group attends with them: queries times the factor that their head has learned, keys shifted.
  struct Attended {
    QueryKey query_key;
    at::Tensor chosen_queries;  // as they were: whoever else uses them takes them from here
  };
  static Attended attended_rows(const Group& group, const QueryKey& chosen);
  // The rows as they are, or with the columns of a learned span (patterns/span.h).
  static QueryKey with_span_columns(const Group& group, const QueryKey& rows);
  at::Tensor merge_heads(const at::Tensor& merged, MatmulPrecision precision) const;
  struct CachedCall {
    std::span<const std::int64_t> sequences = {};
    MatmulPrecision precision = MatmulPrecision::fp32;
  };
  // New tokens as a group of heads reads them and its cache keeps them.
  struct CachedTokens {
    at::Tensor queries, keys, values;  // no keys and values with a memory
    std::vector<TokenLists> query_lists, key_lists;
    at::Tensor last_queries = {};  // shifted keys only: [sequences, heads, dim]
  };
  CachedTokens cached_tokens(std::size_t index, const QueryKey& qk, const at::Tensor& v, const CachedCall& call,
                             const AttentionCache& cache) const;
  // Shifted keys: the queries of the tokens before new ones, [sequences, heads, 1, dim]; zeros where there are none.
  at::Tensor queries_before(std::size_t index, const CachedCall& call, const AttentionCache& cache) const;
  // The lists that these queries have chosen; empty where they are not known for all sequences.
  static std::vector<TokenLists> lists_of_last(std::size_t index, const CachedCall& call, const AttentionCache& cache);
  // Takes the queries of the last token of the piece before.
  void take_queries_before(const std::vector<QueryKey>& qk, PieceExchange& pieces, std::int64_t sequence,
                           AttentionCache& cache) const;
  void attend_cached(std::size_t index, const CachedTokens& read, const CachedCall& call, AttentionCache& cache,
                     at::Tensor& output) const;
  static at::Tensor key_usage(const QueryKey& qk, const Plan& plan, AttendOptions options);
  GroupProbe make_probe(const Group& group, const QueryKey& qk, const Plan& plan) const;
  // What a group attends over, beside its plan in the state.
  struct Prepared {
    QueryKey query_key;
    at::Tensor values;
  };
  // Makes the plan, unless it is there.
  Prepared prepare_group(std::size_t index, const PieceRows& rows, AttentionState& state, const TokenLayout& layout);
  void add_auxiliary_loss(std::size_t index, const at::Tensor& choosing, const at::Tensor& separate_keys,
                          AttentionState& state) const;
  at::Tensor attend_group(std::size_t index, const Prepared& prepared, AttentionState& state) const;
  // The rows of a piece in a group that reads by lists (pieces/list_rows.h).
  struct ListedRows {
    QueryKey chosen;
    Attended attended;
    at::Tensor values;
    at::Tensor last_before;  // shifted keys: what the token before the piece has chosen by, if there is one
  };
  ListedRows listed_rows(const Group& group, const GroupRows& mine, const SequencePiece& piece) const;
  void plan_lists(std::size_t index, const ListedRows& rows, AttentionState& state);
  std::vector<at::Tensor> attend_piece(std::vector<GroupRows> rows, const at::Tensor& input, AttentionState& state);

  AttentionConfig config_;
  LayerPlace place_;
  std::int64_t head_dim_ = 0;
  std::vector<Group> groups_;
  at::Tensor query_weight_, key_weight_, value_weight_, output_weight_, head_mix_weight_;
};
TORCH_MODULE(MultiHeadAttention);

}  // namespace routing
