#include "routing/config/attention.h"

#include "routing/core/error.h"

#include <cmath>
#include <utility>

namespace routing {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

void require_at_least(const std::string& where, const char* key, std::int64_t value, std::int64_t least) {
  require<ConfigError>(value >= least, where, ": ", key, " is ", value, ", but it must be at least ", least);
}

// Lookahead belongs to attention that may read what comes later.
void validate_lookahead(const std::string& where, AttentionKind kind, const std::optional<std::int64_t>& lookahead) {
  if (!lookahead) return;
  require_at_least(where, "lookahead", *lookahead, 0);
  require<ConfigError>(kind != AttentionKind::causal_self || *lookahead == 0, where, ": lookahead is ", *lookahead,
                       ", but causal attention reads 0 later tokens; drop lookahead or make the layer bidirectional");
}

void validate_routing(const std::string& where, const RoutingPattern& routing, AttentionKind kind) {
  require_at_least(where, "clusters", routing.clusters, 1);
  require_at_least(where, "window", routing.window, 1);
  require_at_least(where, "max_memberships", routing.max_memberships, 1);
  require_at_least(where, "kmeans_iterations", routing.kmeans_iterations, 1);
  require_at_least(where, "dead_patience", routing.dead_patience, 1);
  require<ConfigError>(routing.lookahead.value_or(0) == 0 || (kind == AttentionKind::bidirectional_self &&
                                                              routing.selection != RoutingSelection::balanced),
                       where, ": lookahead is ", routing.lookahead.value_or(0),
                       ", but only bidirectional nearest and threshold routing look ahead; drop lookahead");
  validate_lookahead(where, kind, routing.lookahead);
  require<ConfigError>(routing.decay >= 0.0 && routing.decay < 1.0, where, ": decay is ", routing.decay,
                       ", but it must be at least 0 and below 1");
  const auto not_negative = [&](const char* key, double value) {
    require<ConfigError>(value >= 0.0 && std::isfinite(value), where, ": ", key, " is ", value,
                         ", but it must be a finite number not below 0");
  };
  not_negative("laplace", routing.laplace);
  not_negative("initial_count", routing.initial_count);
  not_negative("balance_rate", routing.balance_rate);
  not_negative("commitment", routing.commitment);
  not_negative("dead_share", routing.dead_share);
  require<ConfigError>(routing.target_share > 0.0 && routing.target_share <= static_cast<double>(routing.clusters),
                       where, ": target_share is ", routing.target_share,
                       ", but a cluster's share of the tokens is target_share / clusters: choose a number above 0 and "
                       "up to the ",
                       routing.clusters, " clusters");
  require<ConfigError>(routing.initial_count + routing.laplace > 0.0, where,
                       ": initial_count and laplace are both 0, so that a centroid without tokens would be divided by "
                       "0; raise one of them");
}

void validate_span(const std::string& where, const SpanPattern& span, AttentionKind kind) {
  require_at_least(where, "limit", span.limit, 1);
  require_at_least(where, "ramp", span.ramp, 1);
  require<ConfigError>(span.initial >= 0.0 && span.initial <= 1.0, where, ": initial is ", span.initial,
                       ", but the first span is a share of the limit between 0 and 1");
  require<ConfigError>(span.penalty >= 0.0 && std::isfinite(span.penalty), where, ": penalty is ", span.penalty,
                       ", but it must be a finite number not below 0");
  require<ConfigError>(kind != AttentionKind::cross, where,
                       ": a span is a distance, but the queries and keys of cross-attention have no common time; use "
                       "full, block-local, random, lsh or routing");
}

// Every query of such heads reads itself, whose weight is never 0.
void validate_span_group(const std::string& where, const HeadGroupConfig& group) {
  if (!std::holds_alternative<SpanPattern>(group.pattern)) return;
  require<ConfigError>(group.self == SelfRule::allowed, where, ": self is ", to_string(group.self),
                       ", but the span of a head begins at the token itself; use allowed");
  require<ConfigError>(group.key_shift == 0, where, ": key_shift is ", group.key_shift,
                       ", but the span of a head begins at the token itself, which has no shifted key at first; use 0");
  require<ConfigError>(group.relative != RelativePosition::rank, where, ": relative is ", to_string(group.relative),
                       ", but spans are measured in true offsets; use true_offset or none");
}

void validate_local2d(const std::string& where, const Local2dPattern& local, AttentionKind kind) {
  require_at_least(where, "rows", local.rows, 1);
  require_at_least(where, "columns", local.columns, 1);
  require_at_least(where, "above", local.above, 0);
  require_at_least(where, "beside", local.beside, 0);
  require<ConfigError>(kind != AttentionKind::cross, where,
                       ": windows of two dimensions compare places in one image, but the queries and keys of "
                       "cross-attention have no common one; use full, block-local, random or lsh");
  require<ConfigError>(local.image_width >= 1, where, ": model.image_width is ", local.image_width,
                       ", but windows of two dimensions need the rows of an image; set model.image_width and "
                       "model.image_height, or use local heads for text");
}

void validate_pattern(const std::string& where, const PatternConfig& pattern, AttentionKind kind) {
  const bool cross = kind == AttentionKind::cross;
  std::visit(
      Overloaded{
          [](const FullPattern&) {},
          [&](const LocalPattern& local) {
            require_at_least(where, "window", local.window, 1);
            require<ConfigError>(!cross || local.form == LocalForm::block, where,
                                 ": a sliding window compares positions, but the queries and keys of cross-attention "
                                 "have no common time; use form = block, which cuts both into equally many blocks");
            require<ConfigError>(local.form == LocalForm::sliding || !local.lookahead, where, ": lookahead is ",
                                 local.lookahead.value_or(0),
                                 ", but block form reads whole blocks after the query's own, as many as flange says "
                                 "(none when causal); drop lookahead or use form = sliding");
            require_at_least(where, "flange", local.flange, 0);
            require<ConfigError>(local.form == LocalForm::block || local.flange == 1, where, ": flange is ",
                                 local.flange,
                                 ", but it counts the blocks beside a query's own, and a sliding window has none; use "
                                 "form = block or drop flange");
            validate_lookahead(where, kind, local.lookahead);
          },
          [&](const StridedPattern& strided) {
            require_at_least(where, "stride", strided.stride, 1);
            require<ConfigError>(!cross, where,
                                 ": strided attention compares positions, but the queries and keys of cross-attention "
                                 "have no common time; use full, block-local, random or lsh");
          },
          [&](const RandomPattern& random) {
            require_at_least(where, "groups", random.groups, 1);
            require_at_least(where, "window", random.window, 1);
          },
          [&](const LshPattern& lsh) {
            require_at_least(where, "buckets", lsh.buckets, 2);
            require<ConfigError>(lsh.buckets % 2 == 0, where, ": buckets is ", lsh.buckets,
                                 ", but a rotation makes pairs of buckets; use ", lsh.buckets + 1);
            require_at_least(where, "rounds", lsh.rounds, 1);
            require_at_least(where, "window", lsh.window, 1);
            require<ConfigError>(!cross || !lsh.lookahead, where, ": lookahead is ", lsh.lookahead.value_or(0),
                                 ", but across sequences a query reads all keys of its bucket; drop lookahead");
            validate_lookahead(where, kind, lsh.lookahead);
          },
          [&](const RoutingPattern& routing) { validate_routing(where, routing, kind); },
          [&](const FixedPattern& fixed) {
            require_at_least(where, "stride", fixed.stride, 1);
            require_at_least(where, "summary", fixed.summary, 1);
            require<ConfigError>(fixed.summary <= fixed.stride, where, ": summary is ", fixed.summary,
                                 ", but a cell has only stride = ", fixed.stride,
                                 " tokens; lower summary or raise stride");
            require<ConfigError>(!cross, where,
                                 ": fixed attention reads what sums up the cells before a query, but the queries and "
                                 "keys of cross-attention have no common time; use full, block-local, random or lsh");
          },
          [&](const Local2dPattern& local) { validate_local2d(where, local, kind); },
          [&](const SpanPattern& span) { validate_span(where, span, kind); },
      },
      pattern);
}

}  // namespace

PatternKind pattern_kind(const PatternConfig& pattern) {
  return std::visit(Overloaded{[](const FullPattern&) { return PatternKind::full; },
                               [](const LocalPattern&) { return PatternKind::local; },
                               [](const StridedPattern&) { return PatternKind::strided; },
                               [](const RandomPattern&) { return PatternKind::random; },
                               [](const LshPattern&) { return PatternKind::lsh; },
                               [](const RoutingPattern&) { return PatternKind::routing; },
                               [](const FixedPattern&) { return PatternKind::fixed; },
                               [](const Local2dPattern&) { return PatternKind::local2d; },
                               [](const SpanPattern&) { return PatternKind::span; }},
                    pattern);
}

std::string pattern_name(const PatternConfig& pattern) {
  return std::string(to_string(pattern_kind(pattern)));
}

std::int64_t total_heads(const AttentionConfig& config) {
  std::int64_t heads = 0;
  for (const HeadGroupConfig& group : config.head_groups) heads += group.heads;
  return heads;
}

std::int64_t head_dim(const AttentionConfig& config) {
  if (config.head_dim) return *config.head_dim;
  const std::int64_t heads = total_heads(config);
  require<ConfigError>(heads >= 1, config.name, ": head_groups has ", heads, " heads; name at least one");
  return config.width / heads;
}

void validate_head_group(const std::string& where, const HeadGroupConfig& group, AttentionKind kind) {
  require_at_least(where, "heads", group.heads, 1);
  validate_pattern(where, group.pattern, kind);
  validate_span_group(where, group);
  if (kind == AttentionKind::cross) {
    require<ConfigError>(!group.shared_query_key, where,
                         ": shared_query_key needs queries and keys of one sequence, but this is cross-attention");
    require<ConfigError>(group.self == SelfRule::allowed, where, ": self is ", to_string(group.self),
                         ", but in cross-attention no key is the query itself; use allowed");
    require<ConfigError>(group.relative == RelativePosition::none, where, ": relative is ", to_string(group.relative),
                         ", but the positions of cross-attention have no common origin; use none");
    require<ConfigError>(group.rotary == Rotary::none, where, ": rotary is ", to_string(group.rotary),
                         ", but the positions of cross-attention have no common origin; use none");
  }
  require<ConfigError>(group.rotary == Rotary::none || group.key_shift == 0, where, ": rotary is ",
                       to_string(group.rotary), " and key_shift ", group.key_shift,
                       ", but a shifted key has no position of its own; use none or 0");
  const auto* const routing = std::get_if<RoutingPattern>(&group.pattern);
  require<ConfigError>(
      routing == nullptr || routing->norm == RoutingNorm::layer || (group.shared_query_key && group.key_shift == 0),
      where, ": norm is unit, but that is for keys that are the queries of their own tokens; set ",
      "shared_query_key and key_shift = 0, or norm = layer");
  require<ConfigError>(group.key_shift == 0 || group.key_shift == 1, where, ": key_shift is ", group.key_shift,
                       ", but keys are those of the token itself (0) or of the token before (1)");
  require<ConfigError>(group.key_shift == 0 || kind == AttentionKind::causal_self, where, ": key_shift is ",
                       group.key_shift, ", but only causal self-attention reads what came next; use 0");
  require<ConfigError>(group.key_shift == 0 || group.shared_query_key, where, ": key_shift is ", group.key_shift,
                       ", but shared_query_key is false; shifted keys are the queries of the tokens before");
  require<ConfigError>(!group.recency || kind == AttentionKind::causal_self, where,
                       ": recency is on, but only causal self-attention has a past to forget; switch it off");
  require<ConfigError>(group.relative == RelativePosition::none || group.max_relative >= 1, where, ": max_relative is ",
                       group.max_relative, ", but relative positions need at least 1");
  require<ConfigError>(!group.scale || (std::isfinite(*group.scale) && *group.scale > 0.0), where, ": scale is ",
                       group.scale.value_or(0.0), ", but it must be a finite number above 0");
  require<ConfigError>(group.merge_eps >= 0.0, where, ": merge_eps is ", group.merge_eps,
                       ", but it must not be below 0");
}

namespace {

void validate_rotary(const AttentionConfig& config) {
  const std::int64_t dim = head_dim(config);
  for (const HeadGroupConfig& group : config.head_groups) {
    require<ConfigError>(group.rotary == Rotary::none || dim % 2 == 0, config.name, ": rotary is ",
                         to_string(group.rotary), ", but heads have ", dim,
                         " dimensions, which do not come in pairs; use none or an even model.head_dim");
  }
}

}  // namespace

void validate(const AttentionConfig& config) {
  require_at_least(config.name, "width", config.width, 1);
  require<ConfigError>(!config.head_groups.empty(), config.name, ": head_groups is empty; name at least one group");
  require<ConfigError>(config.dropout >= 0.0 && config.dropout < 1.0, config.name, ": dropout is ", config.dropout,
                       ", but it must be at least 0 and below 1");
  if (config.recency_heads) require_at_least(config.name, "recency_heads", *config.recency_heads, 1);
  for (std::size_t index = 0; index < config.head_groups.size(); ++index) {
    const HeadGroupConfig& group = config.head_groups[index];
    validate_head_group(
        config.name + ".head_groups[" + std::to_string(index) + "] (" + pattern_name(group.pattern) + ")", group,
        config.kind);
  }
  for (std::size_t index = 1; index < config.head_groups.size(); ++index) {
    require<ConfigError>(config.head_groups[index].added || !config.head_groups[index - 1].added, config.name,
                         ".head_groups[", index, "] comes after a group of added heads; added heads come last");
  }
  const std::int64_t heads = total_heads(config);
  validate_rotary(config);
  if (config.head_dim) {
    require_at_least(config.name, "head_dim", *config.head_dim, 1);
  } else {
    require<ConfigError>(config.width % heads == 0, config.name, ": width ", config.width, " is not a multiple of the ",
                         heads, " heads; change one of them or set head_dim");
  }
}

const std::vector<HeadGroupConfig>& head_groups_of_layer(const std::vector<LayerRule>& rules, std::int64_t layer,
                                                         std::int64_t num_layers) {
  require<ConfigError>(layer >= 0 && layer < num_layers, "layer ", layer, " is not one of the ", num_layers,
                       " layers 0 to ", num_layers - 1);
  const auto from_bottom = [&](std::int64_t place) { return place < 0 ? place + num_layers : place; };
  const std::vector<HeadGroupConfig>* found = nullptr;
  for (const LayerRule& rule : rules) {
    const std::int64_t first = from_bottom(rule.layers.first);
    const std::int64_t last = from_bottom(rule.layers.last);
    require<ConfigError>(first >= 0 && last < num_layers && first <= last, "layers ", rule.layers.first, " to ",
                         rule.layers.last, " do not lie inside a stack of ", num_layers,
                         " layers; numbers below 0 count from the top");
    require_at_least("layers", "step", rule.layers.step, 1);
    if (layer >= first && layer <= last && (layer - first) % rule.layers.step == 0) found = &rule.head_groups;
  }
  require<ConfigError>(found != nullptr, "layer ", layer, " of ", num_layers,
                       " has no head groups; add a rule whose layers hold it");
  return *found;
}

}  // namespace routing
