#include "routing/attention/patterns/pattern.h"

#include "routing/attention/patterns/local2d.h"
#include "routing/attention/patterns/lsh.h"
#include "routing/attention/patterns/position_patterns.h"
#include "routing/attention/patterns/routing.h"
#include "routing/attention/patterns/shifted_keys.h"
#include "routing/attention/patterns/span.h"
#include "routing/attention/plan/remembered_tokens.h"
#include "routing/core/error.h"

#include <variant>

namespace routing {
namespace {

// How patterns of positions read piece by piece, and the list of a position.
std::optional<ListRules> rules_of(const FullPattern& /*config*/, AttentionKind kind) {
  if (kind == AttentionKind::bidirectional_self) return std::nullopt;
  return ListRules{};
}
// In cross-attention blocks of keys depend on how many queries there will be.
std::optional<ListRules> rules_of(const LocalPattern& config, AttentionKind kind) {
  if (kind != AttentionKind::causal_self) return std::nullopt;
  if (config.form == LocalForm::block)
    return ListRules{.block = config.window, .before = config.flange * config.window};
  return ListRules{.lookback = config.window};
}
std::optional<ListRules> rules_of(const StridedPattern& config, AttentionKind kind) {
  if (kind != AttentionKind::causal_self) return std::nullopt;
  return ListRules{.lists = config.stride};
}
std::optional<ListRules> rules_of(const FixedPattern& config, AttentionKind kind) {
  if (kind != AttentionKind::causal_self) return std::nullopt;
  return ListRules{.period = config.stride, .period_keys = {config.summary}};
}
std::optional<ListRules> rules_of(const Local2dPattern& config, AttentionKind kind) {
  if (kind != AttentionKind::causal_self) return std::nullopt;
  return local2d_list_rules(config);
}

// The lists that the queries of some tokens from a position on read.
template <class Config>
TokenLists query_lists_of(const Config& /*config*/, std::int64_t /*first*/, std::int64_t tokens) {
  return {.counts = std::vector<std::int32_t>(static_cast<std::size_t>(tokens), 1),
          .lists = std::vector<std::int32_t>(static_cast<std::size_t>(tokens), 0)};
}
TokenLists query_lists_of(const StridedPattern& config, std::int64_t first, std::int64_t tokens) {
  TokenLists lists{.counts = std::vector<std::int32_t>(static_cast<std::size_t>(tokens), 1)};
  for (std::int64_t position = first; position < first + tokens; ++position) {
    lists.lists.push_back(static_cast<std::int32_t>(position % config.stride));
  }
  return lists;
}
TokenLists query_lists_of(const Local2dPattern& config, std::int64_t first, std::int64_t tokens) {
  return local2d_query_lists(config, first, tokens);
}

// Those that their keys join, where they are others.
TokenLists key_lists_of(const FixedPattern& config, std::int64_t first, std::int64_t tokens) {
  TokenLists lists;
  for (std::int64_t position = first; position < first + tokens; ++position) {
    lists.counts.push_back(sums_up_its_cell(config, position) ? 1 : 0);
    if (lists.counts.back() == 1) lists.lists.push_back(0);
  }
  return lists;
}
TokenLists key_lists_of(const Local2dPattern& config, std::int64_t first, std::int64_t tokens) {
  return local2d_key_lists(config, first, tokens);
}
template <class Config>
concept HasKeyLists = requires(const Config& config) {
  key_lists_of(config, 0, 0);
};

// Patterns that are a function of the layout alone.
template <class Config, Plan (*plan_of)(const TokenLayout&, const Config&, bool, SelfRule)>
class PositionGroups : public Pattern {
 public:
  PositionGroups(const Config& config, AttentionKind kind, SelfRule self) : config_(config), kind_(kind), self_(self) {}
  Plan make_plan(const PlanRequest& request) override {
    return plan_of(request.layout, config_, kind_ == AttentionKind::causal_self, self_);
  }

  std::optional<ListRules> list_rules() const override { return rules_of(config_, kind_); }
  std::vector<TokenLists> token_lists(const at::Tensor& vectors,
                                      std::span<const std::int64_t> first_positions) const override {
    return for_each_unit(vectors, first_positions, [&](std::int64_t first, std::int64_t tokens) {
      return query_lists_of(config_, first, tokens);
    });
  }
  KeyListKind key_list_kind() const override {
    return HasKeyLists<Config> ? KeyListKind::by_position : KeyListKind::of_queries;
  }
  std::vector<TokenLists> key_lists(const at::Tensor& vectors,
                                    std::span<const std::int64_t> first_positions) const override {
    if constexpr (HasKeyLists<Config>) {
      return for_each_unit(vectors, first_positions, [&](std::int64_t first, std::int64_t tokens) {
        return key_lists_of(config_, first, tokens);
      });
    }
    return token_lists(vectors, first_positions);
  }
  std::vector<TokenLists> memory_lists(const at::Tensor& keys, std::span<const std::int32_t> valid) const override {
    TokenLists lists{.counts = std::vector<std::int32_t>(static_cast<std::size_t>(keys.size(2)), 0),
                     .lists = std::vector<std::int32_t>(valid.size(), 0)};
    for (const std::int32_t position : valid) lists.counts[static_cast<std::size_t>(position)] = 1;
    std::vector<TokenLists> all(static_cast<std::size_t>(keys.size(1)), lists);
    return all;
  }

 private:
  // All heads of a sequence have the same.
  template <class ListsOf>
  static std::vector<TokenLists> for_each_unit(const at::Tensor& vectors, std::span<const std::int64_t> first_positions,
                                               const ListsOf& lists_of) {
    std::vector<TokenLists> all;
    all.reserve(first_positions.size() * static_cast<std::size_t>(vectors.size(1)));
    for (const std::int64_t first : first_positions) {
      all.insert(all.end(), static_cast<std::size_t>(vectors.size(1)), lists_of(first, vectors.size(2)));
    }
    return all;
  }

  Config config_;
  AttentionKind kind_;
  SelfRule self_;
};

Plan full_plan_of(const TokenLayout& layout, const FullPattern&, bool causal, SelfRule self) {
  return full_plan(layout, causal, self);
}

// Draws anew for every step of training and always the same in evaluation.
class RandomGroups : public Pattern {
 public:
  RandomGroups(const RandomPattern& config, bool causal, SelfRule self, const PatternContext& context)
      : config_(config), causal_(causal), self_(self), place_(context.place), first_head_(context.first_head) {}

  Plan make_plan(const PlanRequest& request) override {
    const auto head = static_cast<std::uint64_t>(first_head_);
    const std::uint64_t key = request.training ? place_.key("random pattern training", {head, request.step})
                                               : place_.key("random pattern evaluation", {head});
    return random_plan(request.layout, config_, causal_, self_, key);
  }

 private:
  RandomPattern config_;
  bool causal_;
  SelfRule self_;
  LayerPlace place_;
  std::int64_t first_head_;
};

class LshGroups : public Pattern {
 public:
  LshGroups(const HeadGroupConfig& group, const LshPattern& config, const PatternContext& context)
      : config_(config), kind_(context.kind) {
    rules_.causal = context.kind == AttentionKind::causal_self;
    rules_.self = group.self;
    // Reformer takes log N_ij off the logit of a key that N_ij rounds have found. A mean is over rounds, each with a
    // softmax of its own, which is right only over all of its keys.
    if (config.rounds > 1 && group.merge == Merge::lse) rules_.repeats = RepeatRule::once;
    if (context.kind != AttentionKind::cross) {
      rules_.lookback = config.window;
      rules_.lookahead = rules_.causal ? 0 : config.lookahead.value_or(config.window - 1);
    }
    const std::uint64_t key = context.place.key("lsh", {static_cast<std::uint64_t>(context.first_head)});
    rotations_ = register_buffer("rotations", lsh_rotations(config, group.heads, context.dim, key, context.options));
  }

  Plan make_plan(const PlanRequest& request) override {
    require<InputError>(request.queries.defined(), "lsh: the plan depends on the queries, but none were given");
    const at::Tensor query_buckets = lsh_buckets(request.queries, rotations_);
    const at::Tensor key_buckets = request.keys.defined() ? lsh_buckets(request.keys, rotations_) : at::Tensor();
    return lsh_plan(request.layout, config_, rules_, query_buckets, key_buckets);
  }

  std::optional<ListRules> list_rules() const override {
    if (kind_ == AttentionKind::bidirectional_self) return std::nullopt;
    return ListRules{.lists = config_.rounds * config_.buckets, .lookback = rules_.lookback, .repeats = rules_.repeats};
  }
  std::vector<TokenLists> token_lists(const at::Tensor& vectors,
                                      std::span<const std::int64_t> /*first_positions*/) const override {
    return lists_of(vectors, std::vector<bool>(static_cast<std::size_t>(vectors.size(2)), true));
  }
  KeyListKind key_list_kind() const override { return KeyListKind::by_content; }
  std::vector<TokenLists> memory_lists(const at::Tensor& keys, std::span<const std::int32_t> valid) const override {
    std::vector<bool> real(static_cast<std::size_t>(keys.size(2)), false);
    for (const std::int32_t position : valid) real[static_cast<std::size_t>(position)] = true;
    return lists_of(keys, real);
  }

 private:
  // A list per round and bucket.
  std::vector<TokenLists> lists_of(const at::Tensor& vectors, const std::vector<bool>& real) const {
    const at::Tensor buckets = lsh_buckets(vectors, rotations_);
    const std::int64_t tokens = vectors.size(2);
    const auto* bucket = buckets.data_ptr<std::int32_t>();
    std::vector<TokenLists> all(static_cast<std::size_t>(vectors.size(0) * vectors.size(1)));
    for (TokenLists& lists : all) {
      for (std::int64_t token = 0; token < tokens; ++token) {
        const bool joins = real[static_cast<std::size_t>(token)];
        lists.counts.push_back(joins ? static_cast<std::int32_t>(config_.rounds) : 0);
        for (std::int64_t round = 0; joins && round < config_.rounds; ++round) {
          lists.lists.push_back(static_cast<std::int32_t>(round * config_.buckets) + bucket[round * tokens + token]);
        }
      }
      bucket += config_.rounds * tokens;
    }
    return all;
  }

  LshPattern config_;
  AttentionKind kind_;
  VisibilityRules rules_;
  at::Tensor rotations_;
};

}  // namespace

Plan Pattern::plan(const PlanRequest& request) {
  const Plan made = make_plan(request);
  const Plan whole = shifts_keys_ ? with_shifted_keys(made, request.layout) : made;
  return request.remembered > 0 ? with_queries_from(whole, request.remembered) : whole;
}

at::Tensor Pattern::auxiliary_loss(const at::Tensor& /*queries*/, const at::Tensor& /*keys*/,
                                   const Plan& /*plan*/) const {
  return {};
}

std::vector<TokenLists> Pattern::token_lists(const at::Tensor& /*vectors*/,
                                             std::span<const std::int64_t> /*first_positions*/) const {
  throw InputError("this pattern cannot be read piece by piece: which keys a token reads depends on later tokens");
}

std::vector<TokenLists> Pattern::key_lists(const at::Tensor& vectors,
                                           std::span<const std::int64_t> first_positions) const {
  return token_lists(vectors, first_positions);
}

std::vector<TokenLists> Pattern::memory_lists(const at::Tensor& /*keys*/,
                                              std::span<const std::int32_t> /*valid*/) const {
  throw InputError("this pattern cannot be read piece by piece: which keys a token reads depends on later tokens");
}

std::shared_ptr<Pattern> make_pattern(const HeadGroupConfig& group, const PatternContext& context) {
  const bool causal = context.kind == AttentionKind::causal_self;
  validate_head_group("head group (" + pattern_name(group.pattern) + ")", group, context.kind);
  struct Maker {
    // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives inside this call only.
    const HeadGroupConfig& group;
    const PatternContext& context;
    // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
    bool causal;
    std::shared_ptr<Pattern> operator()(const FullPattern& config) const {
      return std::make_shared<PositionGroups<FullPattern, full_plan_of>>(config, context.kind, group.self);
    }
    std::shared_ptr<Pattern> operator()(const LocalPattern& config) const {
      return std::make_shared<PositionGroups<LocalPattern, local_plan>>(config, context.kind, group.self);
    }
    std::shared_ptr<Pattern> operator()(const StridedPattern& config) const {
      return std::make_shared<PositionGroups<StridedPattern, strided_plan>>(config, context.kind, group.self);
    }
    std::shared_ptr<Pattern> operator()(const RandomPattern& config) const {
      return std::make_shared<RandomGroups>(config, causal, group.self, context);
    }
    std::shared_ptr<Pattern> operator()(const LshPattern& config) const {
      return std::make_shared<LshGroups>(group, config, context);
    }
    std::shared_ptr<Pattern> operator()(const RoutingPattern& config) const {
      return std::make_shared<RoutingGroups>(group, config, context);
    }
    std::shared_ptr<Pattern> operator()(const FixedPattern& config) const {
      return std::make_shared<PositionGroups<FixedPattern, fixed_plan>>(config, context.kind, group.self);
    }
    std::shared_ptr<Pattern> operator()(const Local2dPattern& config) const {
      return std::make_shared<PositionGroups<Local2dPattern, local2d_plan>>(config, context.kind, group.self);
    }
    std::shared_ptr<Pattern> operator()(const SpanPattern& config) const {
      return std::make_shared<SpanHeads>(group, config, context);
    }
  };
  std::shared_ptr<Pattern> pattern = std::visit(Maker{group, context, causal}, group.pattern);
  pattern->shifts_keys_ = group.key_shift == 1;
  return pattern;
}

}  // namespace routing
