#include "routing/config/routing_settings.h"

#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

namespace routing {
namespace {

std::vector<ConfigKey<RoutingSettings>> make_keys() {
  std::vector<ConfigKey<RoutingSettings>> keys;
  const auto itself = [](auto& settings) -> auto& {
    return settings;
  };
  const auto pattern = [](auto& settings) -> auto& {
    return settings.routing();
  };
  using G = HeadGroupConfig;
  using P = RoutingPattern;
  KeySection layer(keys, "routing.", itself);
  KeySection group(keys, "routing.", &RoutingSettings::group);
  KeySection routing(keys, "routing.", pattern);
  routing.add("selection", &P::selection,
              "which tokens are members of a cluster: balanced (reads the future), nearest or threshold");
  routing.add("clusters", &P::clusters, "number of clusters");
  routing.add("window", &P::window,
              "members of a cluster (balanced), or how far a query looks back in the list of its cluster");
  routing.add("max_memberships", &P::max_memberships, "most clusters a token joins, of threshold");
  routing.add("balanced_source", &P::balanced_source,
              "across sequences each cluster takes the best keys of the source, as balanced does");
  group.add("shared_query_key", &G::shared_query_key, "keys are the queries");
  routing.add("norm", &P::norm,
              "layer: both normalised; unit: keys of unit length, queries as they are, clusters by unit queries");
  routing.add("scale_before_norm", &P::scale_before_norm, "queries times 1/sqrt(head_dim) before the layer norm");
  group.add("key_shift", &G::key_shift,
            "1: the key of a token is the query of the token before, so that a query reads what came next");
  group.add("scale", &G::scale, "factor of the logits: a number, or this formula");
  group.add("learned_scale", &G::learned_scale, "each head learns its own factor, starting from scale");
  group.add("self", &G::self, "may a token read itself: allowed, only_if_alone or only_if_alone_in_group");
  group.add("merge", &G::merge,
            "several clusters of a token: mean of their results, or lse for one softmax over all their keys");
  group.add("merge_eps", &G::merge_eps, "mean divides by (count + this)");
  group.add("relative", &G::relative, "relative positions inside a cluster: none, true_offset or rank");
  group.add("max_relative", &G::max_relative, "offsets are clipped to this; 0 means the window");
  group.add("recency", &G::recency, "distant keys get smaller logits, at another rate in each head (ALiBi)");
  group.add("rotary", &G::rotary, "vectors turned by their position: none, keys (with queries) or values as well");
  routing.add("update", &P::update, "how centroids move: mean or sum");
  routing.add("decay", &P::decay, "of the moving averages");
  routing.add("decay_empty", &P::decay_empty, "do the averages of a centroid that no token moves decay too?");
  routing.add("laplace", &P::laplace, "smoothing of the counts of mean");
  routing.add("initial_count", &P::initial_count, "counts of mean at the start");
  routing.add("update_from", &P::update_from, "which tokens move a centroid: argmax, nearest, members or none");
  routing.add("separate_update", &P::separate_update,
              "separate queries and keys: one pooled update, or sequential ones");
  routing.add("init", &P::init, "of centroids: gaussian or first_batch_kmeans");
  routing.add("kmeans_iterations", &P::kmeans_iterations, "rounds of first_batch_kmeans");
  routing.add("balance", &P::balance, "do thresholds keep clusters equal: threshold or none");
  routing.add("balance_rate", &P::balance_rate, "how fast thresholds follow the shares of tokens");
  routing.add("target_share", &P::target_share, "thresholds aim at this many times 1 / clusters of all tokens");
  routing.add("commitment", &P::commitment, "weight of the squared distance to a centroid");
  routing.add("commitment_twice_if_shared", &P::commitment_twice_if_shared,
              "count that loss for queries and again for keys that are the same");
  layer.add("head_mix", &RoutingSettings::head_mix,
            "one more head_dim x head_dim map applied to every head of a layer");
  layer.add("unused_key_columns", &RoutingSettings::unused_key_columns, "key columns of heads that do not need them");
  routing.add("revive", &P::revive, "give centroids without members a new place");
  routing.add("dead_share", &P::dead_share, "dead: fewer members than this share of tokens / clusters");
  routing.add("dead_patience", &P::dead_patience, "updates in a row before a revival");
  return keys;
}

const ConfigKey<RoutingSettings>& known_key(std::string_view name) {
  if (const auto* const key = find_key(routing_key_table(), name)) return *key;
  const std::string guess = did_you_mean(name, routing_keys());
  throw ConfigError("unknown configuration key '" + std::string(name) + "'; " +
                    (guess.empty() ? "docs/routing.md lists them" : guess));
}

}  // namespace

// The table of DESIGN section 2, row by row.
RoutingSettings routing_preset(RoutingPreset preset, const RoutingSizes& sizes) {
  RoutingSettings settings;
  RoutingPattern routing;
  routing.clusters = sizes.clusters;
  routing.window = sizes.window;
  HeadGroupConfig& group = settings.group;
  group.heads = sizes.heads;
  group.shared_query_key = sizes.kind == AttentionKind::causal_self;
  if (preset != RoutingPreset::ours) {
    routing.selection = RoutingSelection::balanced;
    routing.balance = RoutingBalance::none;
    routing.revive = false;
    group.scale = 1.0;
    group.merge = Merge::mean;
  } else if (sizes.kind == AttentionKind::causal_self && sizes.modality == Modality::text) {
    group.key_shift = 1;
    group.learned_scale = true;
  } else if (sizes.kind != AttentionKind::cross) {
    group.self = SelfRule::only_if_alone;
  }
  if (preset == RoutingPreset::paper) routing.commitment = 0.0;
  if (preset == RoutingPreset::code) {
    routing.scale_before_norm = true;
    routing.initial_count = 0.0;
    routing.decay_empty = true;
    routing.separate_update = SeparateUpdate::sequential;
    routing.commitment_twice_if_shared = true;
    group.merge_eps = 0.01;
    if (sizes.modality == Modality::text && sizes.kind != AttentionKind::cross) {
      group.relative = RelativePosition::rank;
      group.max_relative = sizes.window;
    }
    settings.head_mix = true;
    settings.unused_key_columns = true;
  }
  group.pattern = routing;
  return settings;
}

const std::vector<ConfigKey<RoutingSettings>>& routing_key_table() {
  static const std::vector<ConfigKey<RoutingSettings>> keys = make_keys();
  return keys;
}

const std::vector<std::string>& routing_keys() {
  static const std::vector<std::string> names = names_of(routing_key_table());
  return names;
}

std::string get_routing_key(const RoutingSettings& settings, std::string_view key) {
  return known_key(key).get(settings);
}

void set_routing_key(RoutingSettings& settings, std::string_view key, const std::string& value) {
  known_key(key).set(settings, value);
}

}  // namespace routing
