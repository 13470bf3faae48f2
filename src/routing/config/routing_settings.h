// Every choice of routing attention in one place: the presets `paper`, `code` and `ours`, and each choice as a
// configuration key.
#pragma once

#include "routing/config/attention.h"
#include "routing/config/key_table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

enum class RoutingPreset {
  paper,  // Algorithm 1 with means for sums: as printed (`update` = sum) one centroid soon wins every token
  code,   // what the authors' code does
  ours,   // strictly causal
};
constexpr auto words_of(RoutingPreset) {
  using enum RoutingPreset;
  return std::to_array<Word<RoutingPreset>>({{paper, "paper"}, {code, "code"}, {ours, "ours"}});
}
enum class Modality { text, images };

// A group of routed heads and the two choices that concern its whole layer.
struct RoutingSettings {
  HeadGroupConfig group{.pattern = RoutingPattern{}};
  bool head_mix = false;
  bool unused_key_columns = false;
  friend bool operator==(const RoutingSettings&, const RoutingSettings&) = default;

  RoutingPattern& routing() { return std::get<RoutingPattern>(group.pattern); }
  const RoutingPattern& routing() const { return std::get<RoutingPattern>(group.pattern); }
};

struct RoutingSizes {
  std::int64_t heads = 1;
  std::int64_t clusters = 16;
  std::int64_t window = 256;
  AttentionKind kind = AttentionKind::causal_self;  // queries and keys are shared exactly when causal
  Modality modality = Modality::text;
};

RoutingSettings routing_preset(RoutingPreset preset, const RoutingSizes& sizes);

// The keys with their kinds and descriptions, in the order of the table in docs/routing.md.
const std::vector<ConfigKey<RoutingSettings>>& routing_key_table();
// Their names, such as "routing.selection".
const std::vector<std::string>& routing_keys();
std::string get_routing_key(const RoutingSettings& settings, std::string_view key);
// Throws a ConfigError that names the nearest key or word, or says what the value must be.
void set_routing_key(RoutingSettings& settings, std::string_view key, const std::string& value);

}  // namespace routing
