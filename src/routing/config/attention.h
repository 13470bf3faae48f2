// What a layer of attention is made of, as plain data: patterns, groups of heads, and which layer has which.
#pragma once

#include "routing/config/attention_rules.h"
#include "routing/config/routing_pattern.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace routing {

enum class AttentionKind {
  causal_self,         // queries read keys at positions up to their own
  bidirectional_self,  // queries read keys on both sides
  cross,               // queries of one sequence read keys of another, of any length
};

// S_i = every key (every key j <= i when causal).
struct FullPattern {
  friend bool operator==(const FullPattern&, const FullPattern&) = default;
};

enum class LocalForm {
  sliding,  // the last `window` tokens, itself included
  block,    // the authors' code: its own block and the ones before (and after, when bidirectional)
};
constexpr auto words_of(LocalForm) {
  using enum LocalForm;
  return std::to_array<Word<LocalForm>>({{sliding, "sliding"}, {block, "block"}});
}

// S_i = {j : i - window < j <= i}, or blocks of `window` tokens.
struct LocalPattern {
  LocalForm form = LocalForm::sliding;
  std::int64_t window = 256;
  // Sliding and bidirectional only: keys after the query. Absent means window - 1, as many as before it.
  std::optional<std::int64_t> lookahead = std::nullopt;
  // Blocks only: how many blocks beside its own a block reads on each side. 0 is its own block alone, the first half of
  // the Sparse Transformer's fixed attention.
  std::int64_t flange = 1;
  friend bool operator==(const LocalPattern&, const LocalPattern&) = default;
};

// S_i = {j : (i - j) mod stride = 0}.
struct StridedPattern {
  std::int64_t stride = 64;
  friend bool operator==(const StridedPattern&, const StridedPattern&) = default;
};

// S_i = {j <= i : j mod stride >= stride - summary}: every query reads the last `summary` tokens of each cell of
// `stride` tokens, which sum the cell up (Child et al. 2019, fixed attention).
struct FixedPattern {
  std::int64_t stride = 64;
  std::int64_t summary = 8;
  friend bool operator==(const FixedPattern&, const FixedPattern&) = default;
};

// Images in raster order, three values per pixel: the pixels of a block of rows x columns read the rectangle that
// reaches `above` rows above it and `beside` columns to its left and right, as far as it has been (Parmar et al. 2018,
// local attention in two dimensions; attention/patterns/local2d.h has the formula). In pixels.
struct Local2dPattern {
  std::int64_t rows = 8;
  std::int64_t columns = 8;
  std::int64_t above = 8;
  std::int64_t beside = 8;
  std::int64_t image_width = 0;  // that of model.image_width
  friend bool operator==(const Local2dPattern&, const Local2dPattern&) = default;
};

// S_i = {j : 0 <= i - j < min(z + ramp, limit)} with a learned span z of the group, from 0 to `limit`; a key at
// distance x weighs clamp((ramp + z - x) / ramp, 0, 1) (Sukhbaatar et al. 2019; attention/patterns/span.h).
struct SpanPattern {
  std::int64_t limit = 1024;
  std::int64_t ramp = 32;
  double initial = 0.0;   // the first z, as a share of limit
  double penalty = 2e-6;  // added to the loss: this times the mean of all z of a layer, in tokens
  friend bool operator==(const SpanPattern&, const SpanPattern&) = default;
};

// `groups` sets of `window` random positions each: the paper's Random Transformer.
struct RandomPattern {
  std::int64_t groups = 8;
  std::int64_t window = 256;
  friend bool operator==(const RandomPattern&, const RandomPattern&) = default;
};

// Tokens whose vectors fall into the same bucket of a random rotation, in each of `rounds` hashings (Reformer).
struct LshPattern {
  std::int64_t buckets = 16;  // per round; even, because a direction and its opposite are two buckets
  std::int64_t rounds = 1;
  std::int64_t window = 256;  // lookback inside a bucket; cross-attention reads the whole bucket
  std::optional<std::int64_t> lookahead = std::nullopt;  // bidirectional only; absent means window - 1
  friend bool operator==(const LshPattern&, const LshPattern&) = default;
};

using PatternConfig = std::variant<FullPattern, LocalPattern, StridedPattern, RandomPattern, LshPattern, RoutingPattern,
                                   FixedPattern, Local2dPattern, SpanPattern>;

// Which of them, as a word of the configuration.
enum class PatternKind { local, full, strided, random, lsh, routing, fixed, local2d, span };
constexpr auto words_of(PatternKind) {
  using enum PatternKind;
  return std::to_array<Word<PatternKind>>({{local, "local"},
                                           {full, "full"},
                                           {strided, "strided"},
                                           {random, "random"},
                                           {lsh, "lsh"},
                                           {routing, "routing"},
                                           {fixed, "fixed"},
                                           {local2d, "local2d"},
                                           {span, "span"}});
}
PatternKind pattern_kind(const PatternConfig& pattern);
std::string pattern_name(const PatternConfig& pattern);  // the word of its kind

// Heads of one layer that share a pattern and its rules.
struct HeadGroupConfig {
  PatternConfig pattern = FullPattern{};
  std::int64_t heads = 1;
  bool shared_query_key = false;  // keys are the queries (Reformer, causal routing)
  // 1: the key of token j is the query of token j - 1, in the groups of token j - 1, with the value of j; token 0 has
  // no key. A query then finds earlier places with its own context and reads what came next. Causal, shared queries and
  // keys only.
  std::int64_t key_shift = 0;
  std::optional<double> scale = std::nullopt;  // of the logits; absent means 1/sqrt(head_dim)
  bool learned_scale = false;                  // each head learns its own, starting from `scale`
  SelfRule self = SelfRule::allowed;
  Merge merge = Merge::lse;
  double merge_eps = 0.0;  // of Merge::mean
  RelativePosition relative = RelativePosition::none;
  std::int64_t max_relative = 0;  // offsets are clipped to +-this; needed unless relative is none
  // Distant keys start out less likely (ALiBi): logits get -slope (i - j), with a slope of its own for each head of the
  // layer, from 2^(-8/H) to 2^-8 under a local pattern and to 2^-16 under others (attention/patterns/recency.h). Causal
  // only.
  bool recency = false;
  Rotary rotary = Rotary::none;  // self-attention with heads of an even size only (attention/patterns/rotary.h)
  // Heads that join others: the columns of W_O that read them start at zero, and all other weights of the layer start
  // as they would without them. Such groups come last.
  bool added = false;
  friend bool operator==(const HeadGroupConfig&, const HeadGroupConfig&) = default;
};

// One attention layer.
struct AttentionConfig {
  std::string name = "attention";
  AttentionKind kind = AttentionKind::causal_self;
  std::int64_t width = 0;
  std::optional<std::int64_t> head_dim = std::nullopt;  // absent means width / heads
  double dropout = 0.0;                                 // of attention probabilities
  double initial_scale = 0.2;                           // of the variance of starting weights (docs/facts.md C9)
  // Two habits of the authors' code: one more linear map of head_dim x head_dim applied to every head (docs/facts.md
  // A12), and key columns for heads that share queries and keys, which nothing reads (A13).
  bool head_mix = false;
  bool unused_key_columns = false;
  // The slopes of recency of a layer go by its heads' numbers, counted modulo this; absent means all of its heads.
  std::optional<std::int64_t> recency_heads = std::nullopt;
  std::vector<HeadGroupConfig> head_groups;
  friend bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

std::int64_t total_heads(const AttentionConfig& config);
std::int64_t head_dim(const AttentionConfig& config);

// Throws a ConfigError that names the layer, the group, the two values and the remedy.
void validate(const AttentionConfig& config);
// The part of it that concerns one group; `where` begins the message.
void validate_head_group(const std::string& where, const HeadGroupConfig& group, AttentionKind kind);

// Every `step`-th of the layers first … last, counted from 0 at the bottom; numbers below 0 count from the top (-1 is
// the last layer).
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t last = -1;
  std::int64_t step = 1;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

inline LayerRange every_layer() {
  return {0, -1};
}
inline LayerRange top_layers(std::int64_t count) {
  return {-count, -1};
}
inline LayerRange bottom_layers(std::int64_t count) {
  return {0, count - 1};
}

// Gives the layers of a range their head groups.
struct LayerRule {
  LayerRange layers;
  std::vector<HeadGroupConfig> head_groups;
  friend bool operator==(const LayerRule&, const LayerRule&) = default;
};

// The head groups of one layer: those of the last rule whose range holds it. Every rule's range must lie inside the
// stack, and every layer must be named by some rule.
const std::vector<HeadGroupConfig>& head_groups_of_layer(const std::vector<LayerRule>& rules, std::int64_t layer,
                                                         std::int64_t num_layers);

}  // namespace routing
