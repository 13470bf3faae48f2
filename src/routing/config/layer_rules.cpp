#include "routing/config/experiment.h"
#include "routing/config/span_heads.h"
#include "routing/config/text/number_text.h"
#include "routing/config/words.h"

#include <optional>

namespace routing {
namespace {

const HeadGroupConfig& section_of(const ExperimentConfig& config, PatternKind content) {
  switch (content) {
    case PatternKind::local:
      return config.patterns.local;
    case PatternKind::full:
      return config.patterns.full;
    case PatternKind::strided:
      return config.patterns.strided;
    case PatternKind::random:
      return config.patterns.random;
    case PatternKind::lsh:
      return config.patterns.lsh;
    case PatternKind::fixed:
      return config.patterns.fixed;
    case PatternKind::local2d:
      return config.patterns.local2d;
    case PatternKind::span:
      return config.patterns.span;
    case PatternKind::routing:
      break;
  }
  return config.routing.group;
}

// Sections are written for causal self-attention; this is what they mean elsewhere.
HeadGroupConfig for_kind(HeadGroupConfig group, AttentionKind kind) {
  if (kind == AttentionKind::causal_self) return group;
  group.recency = false;
  // Shifted keys cannot be the query itself; those of both sides can.
  if (group.key_shift > 0) group.self = SelfRule::only_if_alone;
  group.key_shift = 0;
  if (auto* const routing = std::get_if<RoutingPattern>(&group.pattern)) {
    group.shared_query_key = false;
    routing->norm = RoutingNorm::layer;
  }
  if (kind == AttentionKind::bidirectional_self) return group;
  group.shared_query_key = false;
  group.self = SelfRule::allowed;
  group.relative = RelativePosition::none;
  group.max_relative = 0;
  group.rotary = Rotary::none;
  if (auto* const local = std::get_if<LocalPattern>(&group.pattern)) local->form = LocalForm::block;
  return group;
}

// With its heads, and offsets up to the window unless the section says otherwise.
HeadGroupConfig with_heads(HeadGroupConfig group, std::int64_t heads) {
  group.heads = heads;
  if (group.relative != RelativePosition::none && group.max_relative == 0) {
    std::visit(
        [&](const auto& pattern) {
          if constexpr (requires { pattern.window; }) group.max_relative = pattern.window;
          if constexpr (requires { pattern.limit; }) group.max_relative = pattern.limit;
        },
        group.pattern);
  }
  return group;
}

std::optional<std::int64_t> count_of(std::string_view text) {
  const std::optional<std::int64_t> count = number_in<std::int64_t>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

// Both stacks of self-attention: local heads, and those of `content` in the layers of attention.content_layers.
std::vector<LayerRule> self_attention_rules(const ExperimentConfig& config, AttentionKind kind) {
  const AttentionHeads& given = config.attention;
  const bool encoder = kind == AttentionKind::bidirectional_self;
  const PatternKind content = encoder ? given.encoder_content : given.content;
  require<ConfigError>(given.heads >= 1, "attention.heads is ", given.heads, ", but it must be at least 1");
  require<ConfigError>(given.content_heads >= 0, "attention.content_heads is ", given.content_heads,
                       ", but it must not be below 0");
  require<ConfigError>(given.add_content || given.content_heads <= given.heads, "attention.content_heads ",
                       given.content_heads, " is not between 0 and attention.heads ", given.heads,
                       "; lower attention.content_heads, raise attention.heads or set attention.add_content");
  const HeadGroupConfig local_heads = for_kind(config.patterns.local, kind);
  HeadGroupConfig content_heads = for_kind(section_of(config, content), kind);
  if (auto* const local = std::get_if<Local2dPattern>(&content_heads.pattern)) {
    local->image_width = config.model.image_width;
  }
  const LayerRange range = parse_content_layers(given.content_layers);
  const LayerRule local{every_layer(), {with_heads(local_heads, given.heads)}};
  if ((content == PatternKind::local && !given.add_content) || given.content_heads == 0) return {local};

  LayerRule mixed{range, {}};
  const std::int64_t rest = given.add_content ? given.heads : given.heads - given.content_heads;
  if (rest > 0) mixed.head_groups.push_back(with_heads(local_heads, rest));
  HeadGroupConfig of_content = with_heads(content_heads, given.content_heads);
  of_content.added = given.add_content;
  for (const HeadGroupConfig& group : groups_by_span(of_content)) mixed.head_groups.push_back(group);
  if (range == every_layer()) return {mixed};
  return {local, mixed};
}

// What the attentions of all kinds have in common.
AttentionConfig attention_with(const ExperimentConfig& config, AttentionKind kind, PatternKind content) {
  const bool routed = content == PatternKind::routing;
  std::optional<std::int64_t> dim;
  if (config.model.head_dim > 0) {
    dim = config.model.head_dim;
  } else if (config.attention.add_content && kind != AttentionKind::cross) {
    require<ConfigError>(config.attention.heads >= 1 && config.model.width % config.attention.heads == 0,
                         "model.width ", config.model.width, " is not a multiple of the attention.heads ",
                         config.attention.heads, "; change one of them or set model.head_dim");
    dim = config.model.width / config.attention.heads;
  }
  return {.kind = kind,
          .width = config.model.width,
          .head_dim = dim,
          .dropout = config.model.attention_dropout,
          .initial_scale = config.model.initial_scale,
          .head_mix = routed && config.routing.head_mix,
          .unused_key_columns = routed && config.routing.unused_key_columns,
          .recency_heads = config.attention.heads,
          .head_groups = {}};
}

bool selects_from_the_whole_sequence(const AttentionConfig& attention) {
  for (const HeadGroupConfig& group : attention.head_groups) {
    const auto* const routing = std::get_if<RoutingPattern>(&group.pattern);
    if (routing != nullptr && routing->selection == RoutingSelection::balanced) return true;
  }
  return false;
}

}  // namespace

LayerRange parse_content_layers(std::string_view text) {
  if (text == "all") return every_layer();
  if (text == "even") return {.first = 0, .last = -1, .step = 2};
  if (text == "odd") return {.first = 1, .last = -1, .step = 2};
  for (const std::string_view end : {"top ", "bottom "}) {
    if (!text.starts_with(end)) continue;
    const std::optional<std::int64_t> count = count_of(text.substr(end.size()));
    if (!count) continue;
    require<ConfigError>(*count >= 1, "attention.content_layers: '", text,
                         "' are not layers; set attention.content to local instead");
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
                    "' is not known; write all, top N, bottom N, odd, even or FIRST..LAST, such as top 2 or 1..3");
}

std::vector<LayerRule> layer_rules(const ExperimentConfig& config) {
  return self_attention_rules(config, AttentionKind::causal_self);
}

std::vector<LayerRule> encoder_layer_rules(const ExperimentConfig& config) {
  return self_attention_rules(config, AttentionKind::bidirectional_self);
}

AttentionConfig attention_of_layer(const ExperimentConfig& config, std::int64_t layer) {
  AttentionConfig attention = attention_with(config, AttentionKind::causal_self, config.attention.content);
  attention.name = "layer " + std::to_string(layer);
  attention.head_groups = head_groups_of_layer(layer_rules(config), layer, config.model.layers);
  return attention;
}

AttentionConfig attention_of_encoder_layer(const ExperimentConfig& config, std::int64_t layer) {
  AttentionConfig attention =
      attention_with(config, AttentionKind::bidirectional_self, config.attention.encoder_content);
  attention.name = "encoder layer " + std::to_string(layer);
  attention.head_groups = head_groups_of_layer(encoder_layer_rules(config), layer, config.model.encoder_layers);
  return attention;
}

AttentionConfig cross_attention_of_layer(const ExperimentConfig& config, std::int64_t layer) {
  const AttentionHeads& given = config.attention;
  parse_word(to_string(given.cross_content), "attention.cross_content", kCrossPatterns);
  require<ConfigError>(given.cross_heads >= 0 && given.cross_heads <= given.heads, "attention.cross_heads ",
                       given.cross_heads, " is not between 0 and attention.heads ", given.heads,
                       "; lower attention.cross_heads or raise attention.heads");
  AttentionConfig attention = attention_with(config, AttentionKind::cross, given.cross_content);
  attention.name = "cross-attention of layer " + std::to_string(layer);
  const auto add = [&](const HeadGroupConfig& section, std::int64_t heads) {
    if (heads > 0) attention.head_groups.push_back(with_heads(for_kind(section, AttentionKind::cross), heads));
  };
  add(config.patterns.full, given.heads - given.cross_heads);
  add(section_of(config, given.cross_content), given.cross_heads);
  return attention;
}

std::int64_t source_length(const TrainConfig& train) {
  return train.source_length > 0 ? train.source_length : train.sequence_length;
}

std::string validity_label(const ExperimentConfig& config) {
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    const bool cross = config.model.encoder_layers > 0;
    if (selects_from_the_whole_sequence(attention_of_layer(config, layer)) ||
        (cross && selects_from_the_whole_sequence(cross_attention_of_layer(config, layer)))) {
      return "selection reads the future";
    }
  }
  return "causal";
}

}  // namespace routing
