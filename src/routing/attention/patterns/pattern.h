// A pattern makes plans. What a pattern keeps between calls (rotations, centroids) is moved, saved and loaded with the
// model, so patterns are modules.
#pragma once

#include "routing/attention/plan/token_layout.h"
#include "routing/attention/plan/token_lists.h"
#include "routing/config/attention.h"
#include "routing/core/random.h"
#include "routing/ops/attend/plan.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace routing {

class Centroids;
class SpanHeads;
struct PatternContext;

// Where a layer stands in its model; names its random streams. Two attentions of one model must differ in part or
// layer.
struct LayerPlace {
  std::uint64_t seed = 1;
  std::int64_t layer = 0;
  std::string part = "decoder self";  // "encoder self", "decoder cross" …

  // The key of one use of random numbers.
  std::uint64_t key(const std::string& use, std::initializer_list<std::uint64_t> numbers = {}) const {
    return stream_key(stream_key(seed, part, {static_cast<std::uint64_t>(layer)}), use, numbers);
  }
};

// One call's question to a pattern.
struct PlanRequest {
  TokenLayout layout = {};
  // [batch, heads, queries, dim], after any normalisation; only content-based patterns look at them.
  at::Tensor queries = {};
  at::Tensor keys = {};  // [batch, heads, keys, dim]; undefined where keys are the queries
  bool training = false;
  std::uint64_t step = 0;      // counts training forwards; patterns that draw anew do so for each step
  at::Tensor sample_ids = {};  // int64 [batch]: identities of the sequences; undefined means 0, 1, 2 …
  // So many of the layout's first tokens are remembered ones: keys for the others, and nothing else. What a pattern
  // learns from tokens it learns from the others.
  std::int64_t remembered = 0;
  // The layout's first token is this one of its sequence: names tokens of samples. Not beside remembered ones.
  std::int64_t first_position = 0;
};

// Which lists the key of a token joins.
enum class KeyListKind {
  of_queries,   // those that its query reads
  by_content,   // those that a query with this vector would read: the same where keys are queries
  by_position,  // others, even where keys are queries
};

class Pattern : public torch::nn::Module {
 public:
  // What the queries of a call read; with the keys of the token before each where the group has shifted keys.
  Plan plan(const PlanRequest& request);
  // What the pattern adds to the training loss for these queries and keys (undefined keys: shared); undefined if
  // nothing.
  virtual at::Tensor auxiliary_loss(const at::Tensor& queries, const at::Tensor& keys, const Plan& plan) const;
  // How heads read a sequence piece by piece, with the very keys of plan(); nothing where that depends on later tokens.
  virtual std::optional<ListRules> list_rules() const { return std::nullopt; }
  // The lists of new tokens, one TokenLists per unit: vectors [sequences, heads, tokens, dim] of queries or of keys,
  // the first token of sequence b at position first_positions[b]. Only where there are list_rules().
  virtual std::vector<TokenLists> token_lists(const at::Tensor& vectors,
                                              std::span<const std::int64_t> first_positions) const;
  virtual KeyListKind key_list_kind() const { return KeyListKind::of_queries; }
  // The lists that keys with these vectors join, likewise; those of token_lists() unless they go by position.
  virtual std::vector<TokenLists> key_lists(const at::Tensor& vectors,
                                            std::span<const std::int64_t> first_positions) const;
  // Cross-attention: the lists of the keys of one memory [1, heads, keys, dim], one TokenLists per head; `valid` are
  // the ascending positions of real tokens. Only where there are list_rules().
  virtual std::vector<TokenLists> memory_lists(const at::Tensor& keys, std::span<const std::int32_t> valid) const;

  // The centroids of routing attention, to be updated once after each optimiser step; null for other patterns.
  virtual Centroids* centroids() { return nullptr; }
  // Heads that learn how far back they read (span.h); null for other patterns.
  virtual SpanHeads* span_heads() { return nullptr; }

 protected:
  // The plan over keys as they stand.
  virtual Plan make_plan(const PlanRequest& request) = 0;

 private:
  friend std::shared_ptr<Pattern> make_pattern(const HeadGroupConfig& group, const PatternContext& context);
  bool shifts_keys_ = false;
};

// What a pattern has to know of its layer.
struct PatternContext {
  AttentionKind kind = AttentionKind::causal_self;
  std::int64_t dim = 0;         // of a head
  std::int64_t first_head = 0;  // number of the group's first head in its layer
  std::int64_t span_heads = 0;  // heads of the layer that have a span
  LayerPlace place = {};
  at::TensorOptions options = {};
};

// The pattern of a head group; throws a ConfigError where the pattern does not fit the kind of attention.
std::shared_ptr<Pattern> make_pattern(const HeadGroupConfig& group, const PatternContext& context);

}  // namespace routing
