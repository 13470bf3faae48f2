#include "routing/config/routing_settings.h"

#include "routing/config/words.h"
#include "routing/core/error.h"

#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <locale>
#include <sstream>
#include <type_traits>

namespace routing {
namespace {

// One key: how it reads and how it is set.
struct Key {
  std::string name;
  std::function<std::string(const RoutingSettings&)> get;
  std::function<void(RoutingSettings&, const std::string&)> set;
};

// Shortest text that gives the same number back.
std::string text_of(double value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

// All of the text as a number, in the notation of C whatever the locale.
template <class Number>
Number number_of(const std::string& key, const std::string& text) {
  Number value{};
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  stream >> std::noskipws >> value;
  require<ConfigError>(!stream.fail() && stream.peek() == std::istringstream::traits_type::eof(), key, ": '", text,
                       std::is_integral_v<Number> ? "' is not a whole number" : "' is not a number");
  return value;
}

bool truth_of(const std::string& key, const std::string& text) {
  require<ConfigError>(text == "true" || text == "false", key, ": '", text, "' is neither true nor false");
  return text == "true";
}

template <class Field>
Key integer(const std::string& name, Field field) {
  return {name, [=](const RoutingSettings& s) { return std::to_string(field(const_cast<RoutingSettings&>(s))); },
          [=](RoutingSettings& s, const std::string& text) { field(s) = number_of<std::int64_t>(name, text); }};
}

template <class Field>
Key real(const std::string& name, Field field) {
  return {name, [=](const RoutingSettings& s) { return text_of(field(const_cast<RoutingSettings&>(s))); },
          [=](RoutingSettings& s, const std::string& text) { field(s) = number_of<double>(name, text); }};
}

template <class Field>
Key truth(const std::string& name, Field field) {
  return {name, [=](const RoutingSettings& s) { return field(const_cast<RoutingSettings&>(s)) ? "true" : "false"; },
          [=](RoutingSettings& s, const std::string& text) { field(s) = truth_of(name, text); }};
}

template <class Field, class Enum, std::size_t N>
Key word(const std::string& name, Field field, std::array<Enum, N> values) {
  return {name,
          [=](const RoutingSettings& s) { return std::string(to_string(field(const_cast<RoutingSettings&>(s)))); },
          [=](RoutingSettings& s, const std::string& text) { field(s) = parse_word(text, name, values); }};
}

constexpr const char* kInverseRoot = "1/sqrt(head_dim)";

// clang-format off
std::vector<Key> make_keys() {
  using S = RoutingSettings;
  return {
      word("routing.selection", [](S& s) -> auto& { return s.routing().selection; },
           std::array{RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}),
      integer("routing.clusters", [](S& s) -> auto& { return s.routing().clusters; }),
      integer("routing.window", [](S& s) -> auto& { return s.routing().window; }),
      integer("routing.max_memberships", [](S& s) -> auto& { return s.routing().max_memberships; }),
      truth("routing.shared_query_key", [](S& s) -> auto& { return s.group.shared_query_key; }),
      truth("routing.scale_before_norm", [](S& s) -> auto& { return s.routing().scale_before_norm; }),
      {"routing.scale",
       [](const S& s) { return s.group.scale ? text_of(*s.group.scale) : kInverseRoot; },
       [](S& s, const std::string& text) {
         s.group.scale = text == kInverseRoot ? std::nullopt : std::optional(number_of<double>("routing.scale", text));
       }},
      word("routing.self", [](S& s) -> auto& { return s.group.self; },
           std::array{SelfRule::allowed, SelfRule::only_if_alone}),
      word("routing.merge", [](S& s) -> auto& { return s.group.merge; }, std::array{Merge::mean, Merge::lse}),
      real("routing.merge_eps", [](S& s) -> auto& { return s.group.merge_eps; }),
      word("routing.relative", [](S& s) -> auto& { return s.group.relative; },
           std::array{RelativePosition::none, RelativePosition::true_offset, RelativePosition::rank}),
      integer("routing.max_relative", [](S& s) -> auto& { return s.group.max_relative; }),
      word("routing.update", [](S& s) -> auto& { return s.routing().update; },
           std::array{CentroidUpdate::mean, CentroidUpdate::sum}),
      real("routing.decay", [](S& s) -> auto& { return s.routing().decay; }),
      truth("routing.decay_empty", [](S& s) -> auto& { return s.routing().decay_empty; }),
      real("routing.laplace", [](S& s) -> auto& { return s.routing().laplace; }),
      real("routing.initial_count", [](S& s) -> auto& { return s.routing().initial_count; }),
      word("routing.update_from", [](S& s) -> auto& { return s.routing().update_from; },
           std::array{UpdateFrom::argmax, UpdateFrom::nearest, UpdateFrom::members, UpdateFrom::none}),
      word("routing.separate_update", [](S& s) -> auto& { return s.routing().separate_update; },
           std::array{SeparateUpdate::pooled, SeparateUpdate::sequential}),
      word("routing.init", [](S& s) -> auto& { return s.routing().init; },
           std::array{CentroidInit::gaussian, CentroidInit::first_batch_kmeans}),
      integer("routing.kmeans_iterations", [](S& s) -> auto& { return s.routing().kmeans_iterations; }),
      word("routing.balance", [](S& s) -> auto& { return s.routing().balance; },
           std::array{RoutingBalance::threshold, RoutingBalance::none}),
      real("routing.balance_rate", [](S& s) -> auto& { return s.routing().balance_rate; }),
      real("routing.commitment", [](S& s) -> auto& { return s.routing().commitment; }),
      truth("routing.commitment_twice_if_shared", [](S& s) -> auto& { return s.routing().commitment_twice_if_shared; }),
      truth("routing.head_mix", [](S& s) -> auto& { return s.head_mix; }),
      truth("routing.unused_key_columns", [](S& s) -> auto& { return s.unused_key_columns; }),
      truth("routing.revive", [](S& s) -> auto& { return s.routing().revive; }),
      real("routing.dead_share", [](S& s) -> auto& { return s.routing().dead_share; }),
      integer("routing.dead_patience", [](S& s) -> auto& { return s.routing().dead_patience; }),
  };
}
// clang-format on

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

const Key& find_key(std::string_view name) {
  for (const Key& key : all_keys()) {
    if (key.name == name) return key;
  }
  const std::string nearest = nearest_name(name, routing_keys());
  throw ConfigError("unknown configuration key '" + std::string(name) + "'" +
                    (nearest.empty() ? "; docs/routing.md lists them" : "; did you mean '" + nearest + "'?"));
}

}  // namespace

std::string_view to_string(RoutingPreset preset) {
  switch (preset) {
    case RoutingPreset::paper:
      return "paper";
    case RoutingPreset::code:
      return "code";
    case RoutingPreset::ours:
      return "ours";
  }
  return "";
}

RoutingPreset parse_routing_preset(std::string_view word) {
  return parse_word(word, "routing preset", std::array{RoutingPreset::paper, RoutingPreset::code, RoutingPreset::ours});
}

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
  } else if (sizes.kind != AttentionKind::cross) {
    group.self = SelfRule::only_if_alone;
  }
  if (preset == RoutingPreset::paper) {
    routing.update = CentroidUpdate::sum;
    routing.commitment = 0.0;
  }
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

const std::vector<std::string>& routing_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Key& key : all_keys()) list.push_back(key.name);
    return list;
  }();
  return names;
}

std::string get_routing_key(const RoutingSettings& settings, std::string_view key) {
  return find_key(key).get(settings);
}

void set_routing_key(RoutingSettings& settings, std::string_view key, const std::string& value) {
  find_key(key).set(settings, value);
}

}  // namespace routing
