#include "routing/config/experiment.h"
#include "routing/config/number_text.h"
#include "routing/config/words.h"

#include <optional>

namespace routing {
namespace {

// The section of attention.content with its own pattern.
HeadGroupConfig content_group(const ExperimentConfig& config) {
  const std::string& content = config.attention.content;
  if (content == "routing") return config.routing.group;
  for (const HeadGroupConfig* section : {&config.patterns.local, &config.patterns.full, &config.patterns.strided,
                                         &config.patterns.random, &config.patterns.lsh}) {
    if (pattern_name(section->pattern) == content) return *section;
  }
  require_word(content, "attention.content", content_patterns());
  return {};
}

// With its heads, and offsets up to the window unless the section says otherwise.
HeadGroupConfig with_heads(HeadGroupConfig group, std::int64_t heads) {
  group.heads = heads;
  if (group.relative != RelativePosition::none && group.max_relative == 0) {
    std::visit(
        [&](const auto& pattern) {
          if constexpr (requires { pattern.window; }) group.max_relative = pattern.window;
        },
        group.pattern);
  }
  return group;
}

std::optional<std::int64_t> count_of(std::string_view text) {
  const std::optional<std::int64_t> count = number_in<std::int64_t>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

}  // namespace

const std::vector<std::string>& content_patterns() {
  static const std::vector<std::string> names{"local", "full", "strided", "random", "lsh", "routing"};
  return names;
}

LayerRange parse_content_layers(std::string_view text) {
  if (text == "all") return every_layer();
  for (const std::string_view end : {"top ", "bottom "}) {
    if (!text.starts_with(end)) continue;
    const std::optional<std::int64_t> count = count_of(text.substr(end.size()));
    if (!count) continue;
    require<ConfigError>(*count >= 1, "attention.content_layers: '", text,
                         "' are no layers; set attention.content to local instead");
    return end == "top " ? top_layers(*count) : bottom_layers(*count);
  }
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    const std::optional<std::int64_t> first = count_of(text.substr(0, dots));
    const std::optional<std::int64_t> last = count_of(text.substr(dots + 2));
    if (first && last) {
      require<ConfigError>(*first <= *last, "attention.content_layers: '", text, "' begins at ", *first,
                           " and ends before it, at ", *last, "; write the lower layer first");
      return {*first, *last};
    }
  }
  throw ConfigError("attention.content_layers: '" + std::string(text) +
                    "' is not known; write all, top N, bottom N or FIRST..LAST, such as top 2 or 1..3");
}

std::vector<LayerRule> layer_rules(const ExperimentConfig& config) {
  const AttentionLayout& layout = config.attention;
  require<ConfigError>(layout.heads >= 1, "attention.heads is ", layout.heads, ", but it must be at least 1");
  require<ConfigError>(layout.content_heads >= 0 && layout.content_heads <= layout.heads, "attention.content_heads ",
                       layout.content_heads, " is not between 0 and attention.heads ", layout.heads,
                       "; lower attention.content_heads or raise attention.heads");
  const HeadGroupConfig content = content_group(config);
  const LayerRange range = parse_content_layers(layout.content_layers);
  const LayerRule local{every_layer(), {with_heads(config.patterns.local, layout.heads)}};
  if (layout.content == "local" || layout.content_heads == 0) return {local};

  LayerRule mixed{range, {}};
  const std::int64_t local_heads = layout.heads - layout.content_heads;
  if (local_heads > 0) mixed.head_groups.push_back(with_heads(config.patterns.local, local_heads));
  mixed.head_groups.push_back(with_heads(content, layout.content_heads));
  if (range == every_layer()) return {mixed};
  return {local, mixed};
}

AttentionConfig attention_of_layer(const ExperimentConfig& config, std::int64_t layer) {
  const bool routed = config.attention.content == "routing";
  return {.name = "layer " + std::to_string(layer),
          .kind = AttentionKind::causal_self,
          .width = config.model.width,
          .head_dim = config.model.head_dim == 0 ? std::nullopt : std::optional(config.model.head_dim),
          .dropout = config.model.attention_dropout,
          .initial_scale = config.model.initial_scale,
          .head_mix = routed && config.routing.head_mix,
          .unused_key_columns = routed && config.routing.unused_key_columns,
          .head_groups = head_groups_of_layer(layer_rules(config), layer, config.model.layers)};
}

std::string validity_label(const ExperimentConfig& config) {
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    for (const HeadGroupConfig& group : attention_of_layer(config, layer).head_groups) {
      const auto* const routing = std::get_if<RoutingPattern>(&group.pattern);
      if (routing != nullptr && routing->selection == RoutingSelection::balanced) return "selection reads the future";
    }
  }
  return "causal";
}

}  // namespace routing
