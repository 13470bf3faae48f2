#include "routing/config/experiment.h"

#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::experiment_test {
namespace {

template <class Enum>
void expect_words(const std::vector<std::string>& words) {
  ASSERT_EQ(words.size(), kEvery<Enum>.size());
  for (std::size_t index = 0; index < words.size(); ++index) {
    EXPECT_EQ(to_string(kEvery<Enum>[index]), words[index]);
    EXPECT_EQ(parse_word<Enum>(words[index], "word"), kEvery<Enum>[index]);
  }
}

TEST(ExperimentWords, GoBothWays) {
  expect_words<NormPlacement>({"post", "pre"});
  expect_words<FeedforwardKind>({"relu", "geglu", "gelu"});
  expect_words<PositionKind>({"none", "sinusoidal", "learned", "factored"});
  expect_words<Compression>({"mean", "max", "convolution", "most_used"});
  expect_words<StartSymbol>({"zero", "own"});
  expect_words<OptimizerKind>({"adam", "adamw", "adafactor", "adafactorw"});
  expect_words<DataFormat>({"auto", "bytes", "enwik8", "wikitext", "pg19", "text", "cifar10", "imagenet64", "images",
                            "copy", "reverse", "recall"});
  expect_words<TokenKind>({"auto", "bytes", "words", "subwords", "subpixels"});
  expect_words<ScheduleKind>({"constant", "vaswani", "cosine", "rsqrt"});
  expect_words<DataOrder>({"crops", "contiguous"});
  expect_words<Precision>({"fp32", "bf16", "auto"});
  EXPECT_EQ(to_string(LocalForm::sliding), "sliding");
  EXPECT_EQ(to_string(LocalForm::block), "block");
}

TEST(ExperimentWords, UnknownOnesNameTheKeyAndTheNearest) {
  EXPECT_EQ(refusal_of([] { parse_word<NormPlacement>("prae", "model.norm"); }),
            "model.norm: 'prae' is not known; choose one of post, pre (did you mean 'pre'?)");
  EXPECT_EQ(refusal_of([] { parse_word<FeedforwardKind>("gegl", "model.feedforward"); }),
            "model.feedforward: 'gegl' is not known; choose one of relu, geglu, gelu (did you mean 'geglu'?)");
  EXPECT_EQ(
      refusal_of([] { parse_word<OptimizerKind>("admw", "train.optimizer"); }),
      "train.optimizer: 'admw' is not known; choose one of adam, adamw, adafactor, adafactorw (did you mean 'adamw'?)");
  EXPECT_TRUE(
      refusal_of([] { parse_word<DataFormat>("cifar", "data.format"); }).ends_with("(did you mean 'cifar10'?)"));
  EXPECT_TRUE(
      refusal_of([] { parse_word<PositionKind>("lerned", "model.positions"); }).ends_with("(did you mean 'learned'?)"));
  EXPECT_TRUE(refusal_of([] { parse_word<TokenKind>("wrods", "data.tokens"); }).ends_with("(did you mean 'words'?)"));
  EXPECT_TRUE(
      refusal_of([] { parse_word<ScheduleKind>("rsqt", "train.schedule"); }).ends_with("(did you mean 'rsqrt'?)"));
  EXPECT_TRUE(refusal_of([] { parse_word<DataOrder>("cops", "train.order"); }).ends_with("(did you mean 'crops'?)"));
  EXPECT_TRUE(refusal_of([] { parse_word<Precision>("bf61", "train.precision"); }).ends_with("(did you mean 'bf16'?)"));
}

TEST(ContentLayers, AreRangesOfTheStack) {
  EXPECT_EQ(parse_content_layers("all"), every_layer());
  EXPECT_EQ(parse_content_layers("top 2"), (LayerRange{-2, -1}));
  EXPECT_EQ(parse_content_layers("bottom 3"), (LayerRange{0, 2}));
  EXPECT_EQ(parse_content_layers("odd"), (LayerRange{1, -1, 2}));
  EXPECT_EQ(parse_content_layers("even"), (LayerRange{0, -1, 2}));
  EXPECT_EQ(parse_content_layers("1..3"), (LayerRange{1, 3}));
  EXPECT_EQ(parse_content_layers("4..4"), (LayerRange{4, 4}));
}

TEST(ContentLayers, OtherWordsAreRefusedWithTheGrammar) {
  for (const std::string text : {"", "none", "top", "top ", "top x", "top -1", "top 2 ", "1..", "..3", "1...3",
                                 "-2..-1", "1-3", "bottom", "All", "odd 2"}) {
    EXPECT_EQ(refusal_of([&] { parse_content_layers(text); }),
              "attention.content_layers: '" + text +
                  "' is not known; write all, top N, bottom N, odd, even or FIRST..LAST, such as top 2 or 1..3");
  }
  EXPECT_EQ(refusal_of([] { parse_content_layers("top 0"); }),
            "attention.content_layers: 'top 0' are not layers; set attention.content to local instead");
  EXPECT_EQ(refusal_of([] { parse_content_layers("3..1"); }),
            "attention.content_layers: '3..1' begins at 3 and ends before it, at 1; write the lower layer first");
}

// "local 4 + routing 4" for each layer.
std::vector<std::string> heads_by_layer(const ExperimentConfig& config) {
  std::vector<std::string> layers;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    std::string text;
    for (const HeadGroupConfig& group : attention_of_layer(config, layer).head_groups) {
      text += (text.empty() ? "" : " + ") + pattern_name(group.pattern) + " " + std::to_string(group.heads);
    }
    layers.push_back(text);
  }
  return layers;
}

TEST(LayerRules, HeadsAreSharedBetweenLocalAndContent) {
  ExperimentConfig config;
  config.model.layers = 2;
  config.attention = {.heads = 8, .content_heads = 3, .content = PatternKind::routing, .content_layers = "all"};
  EXPECT_EQ(heads_by_layer(config), (std::vector<std::string>{"local 5 + routing 3", "local 5 + routing 3"}));
  config.attention.content_heads = 8;
  EXPECT_EQ(heads_by_layer(config), (std::vector<std::string>{"routing 8", "routing 8"}));
  config.attention.content_heads = 0;
  EXPECT_EQ(heads_by_layer(config), (std::vector<std::string>{"local 8", "local 8"}));
  config.attention.content_heads = 3;
  config.attention.content = PatternKind::local;
  EXPECT_EQ(heads_by_layer(config), (std::vector<std::string>{"local 8", "local 8"}));
}

TEST(LayerRules, AddedHeadsLeaveTheLocalOnesAndTheirDimensions) {
  ExperimentConfig config;
  config.model.layers = 3;
  config.model.width = 64;
  config.attention = {.heads = 8, .content_heads = 2, .content = PatternKind::routing, .content_layers = "top 1"};
  config.attention.add_content = true;
  using Layers = std::vector<std::string>;
  EXPECT_EQ(heads_by_layer(config), (Layers{"local 8", "local 8", "local 8 + routing 2"}));
  EXPECT_TRUE(attention_of_layer(config, 2).head_groups[1].added);
  EXPECT_FALSE(attention_of_layer(config, 2).head_groups[0].added);
  EXPECT_EQ(head_dim(attention_of_layer(config, 0)), 8);
  EXPECT_EQ(head_dim(attention_of_layer(config, 2)), 8);
  config.attention.content = PatternKind::local;
  EXPECT_EQ(heads_by_layer(config), (Layers{"local 8", "local 8", "local 8 + local 2"}));
  config.attention.content_heads = 12;
  EXPECT_EQ(refusal_of([&] { validate(config); }), "accepted") << "more than attention.heads";
  config.model.width = 60;
  EXPECT_NE(refusal_of([&] { validate(config); }).find("model.width 60 is not a multiple"), std::string::npos);
}

TEST(LayerRules, EveryPatternCanBeTheContent) {
  for (const PatternKind content : kEvery<PatternKind>) {
    ExperimentConfig config;
    config.model.layers = 1;
    config.attention.content = content;
    if (content == PatternKind::local2d) config.model.image_height = config.model.image_width = 32;
    const std::string four =
        content == PatternKind::span ? "span 1 + span 1 + span 1 + span 1" : std::string(to_string(content)) + " 4";
    EXPECT_EQ(heads_by_layer(config).front(), content == PatternKind::local ? "local 8" : "local 4 + " + four);
    EXPECT_EQ(refusal_of([&] { validate(config); }), "accepted") << to_string(content);
  }
  EXPECT_EQ(kEvery<PatternKind>.size(), std::variant_size_v<PatternConfig>);
}

TEST(LayerRules, ContentIsInItsLayersOnly) {
  ExperimentConfig config;
  config.model.layers = 4;
  const std::string mixed = "local 4 + routing 4";
  const std::string local = "local 8";
  using Layers = std::vector<std::string>;
  config.attention.content_layers = "top 1";
  EXPECT_EQ(heads_by_layer(config), (Layers{local, local, local, mixed}));
  config.attention.content_layers = "bottom 3";
  EXPECT_EQ(heads_by_layer(config), (Layers{mixed, mixed, mixed, local}));
  config.attention.content_layers = "1..2";
  EXPECT_EQ(heads_by_layer(config), (Layers{local, mixed, mixed, local}));
  config.attention.content_layers = "top 4";
  EXPECT_EQ(heads_by_layer(config), (Layers{mixed, mixed, mixed, mixed}));
  config.attention.content_layers = "odd";
  EXPECT_EQ(heads_by_layer(config), (Layers{local, mixed, local, mixed}));
  config.attention.content_layers = "even";
  EXPECT_EQ(heads_by_layer(config), (Layers{mixed, local, mixed, local}));
}

TEST(LayerRules, GroupsAreTheSectionsWithTheLayoutsHeads) {
  ExperimentConfig config = unlike_defaults();
  const auto group_for = [&](PatternKind content) {
    config.attention.content = content;
    config.attention.content_layers = "all";
    return layer_rules(config).front().head_groups.back();
  };
  const auto with_heads = [](HeadGroupConfig group) {
    group.heads = 5;
    group.added = true;  // attention.add_content
    return group;
  };
  EXPECT_EQ(group_for(PatternKind::full), with_heads(config.patterns.full));
  EXPECT_EQ(group_for(PatternKind::strided), with_heads(config.patterns.strided));
  EXPECT_EQ(group_for(PatternKind::random), with_heads(config.patterns.random));
  EXPECT_EQ(group_for(PatternKind::lsh), with_heads(config.patterns.lsh));
  EXPECT_EQ(group_for(PatternKind::fixed), with_heads(config.patterns.fixed));
  EXPECT_EQ(group_for(PatternKind::routing), with_heads(config.routing.group));
  HeadGroupConfig blocks = with_heads(config.patterns.local2d);
  std::get<Local2dPattern>(blocks.pattern).image_width = 37;  // model.image_width
  EXPECT_EQ(group_for(PatternKind::local2d), blocks);
}

TEST(LayerRules, OffsetsReachAsFarAsTheWindowUnlessTheSectionSaysOtherwise) {
  ExperimentConfig config;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 77;
  config.routing.routing().window = 55;
  config.routing.group.relative = RelativePosition::rank;
  std::vector<HeadGroupConfig> groups = layer_rules(config).front().head_groups;
  EXPECT_EQ(groups[0].relative, RelativePosition::true_offset) << "text has no other positions";
  EXPECT_EQ(groups[0].max_relative, 77);
  EXPECT_EQ(groups[1].max_relative, 55);
  config.patterns.local.max_relative = 8;
  config.routing.group.relative = RelativePosition::none;
  groups = layer_rules(config).front().head_groups;
  EXPECT_EQ(groups[0].max_relative, 8);
  EXPECT_EQ(groups[1].max_relative, 0) << "no table, no length";
}

TEST(LayerRules, FullHeadsKnowOffsetsUpTo256) {
  const HeadGroupConfig full = PatternSections{}.full;
  EXPECT_EQ(full.relative, RelativePosition::true_offset);
  EXPECT_EQ(full.max_relative, 256);
}

TEST(AttentionOfLayer, TakesNameWidthAndDropoutFromTheModel) {
  ExperimentConfig config;
  config.model.attention_dropout = 0.25;
  const AttentionConfig layer = attention_of_layer(config, 3);
  EXPECT_EQ(layer.name, "layer 3");
  EXPECT_EQ(layer.kind, AttentionKind::causal_self);
  EXPECT_EQ(layer.width, 256);
  EXPECT_EQ(layer.head_dim, std::nullopt);
  EXPECT_EQ(head_dim(layer), 32);
  EXPECT_EQ(layer.dropout, 0.25);
  config.model.head_dim = 48;
  EXPECT_EQ(head_dim(attention_of_layer(config, 0)), 48);
  EXPECT_EQ(refusal_of([&] { attention_of_layer(config, 4); }), "layer 4 is not one of the 4 layers 0 to 3");
}

TEST(AttentionOfLayer, HabitsOfTheRoutingCodeNeedRouting) {
  ExperimentConfig config;
  config.routing.head_mix = true;
  EXPECT_TRUE(attention_of_layer(config, 0).head_mix);
  EXPECT_FALSE(attention_of_layer(config, 0).unused_key_columns);
  config.routing.head_mix = false;
  config.routing.unused_key_columns = true;
  EXPECT_FALSE(attention_of_layer(config, 0).head_mix);
  EXPECT_TRUE(attention_of_layer(config, 0).unused_key_columns);
  config.routing.head_mix = true;
  for (const PatternKind content : {PatternKind::local, PatternKind::full, PatternKind::lsh}) {
    config.attention.content = content;
    EXPECT_FALSE(attention_of_layer(config, 0).head_mix) << to_string(content);
    EXPECT_FALSE(attention_of_layer(config, 0).unused_key_columns) << to_string(content);
  }
}

TEST(EncoderLayers, FollowTheirOwnContentOnBothSides) {
  ExperimentConfig config;
  config.model.encoder_layers = 3;
  config.attention.content = PatternKind::full;
  config.attention.encoder_content = PatternKind::routing;
  config.attention.content_layers = "top 2";
  config.patterns.local.recency = true;
  config.routing.group.recency = true;
  ASSERT_TRUE(config.routing.group.shared_query_key);
  const AttentionConfig bottom = attention_of_encoder_layer(config, 0);
  EXPECT_EQ(bottom.name, "encoder layer 0");
  EXPECT_EQ(bottom.kind, AttentionKind::bidirectional_self);
  ASSERT_EQ(bottom.head_groups.size(), 1U);
  EXPECT_EQ(bottom.head_groups[0].heads, 8);
  EXPECT_FALSE(bottom.head_groups[0].recency);
  EXPECT_EQ(bottom.head_groups[0].relative, RelativePosition::true_offset);
  const AttentionConfig top = attention_of_encoder_layer(config, 2);
  ASSERT_EQ(top.head_groups.size(), 2U);
  EXPECT_EQ(pattern_name(top.head_groups[1].pattern), "routing");
  EXPECT_EQ(top.head_groups[1].heads, 4);
  EXPECT_FALSE(top.head_groups[1].shared_query_key) << "docs/facts.md A16";
  EXPECT_FALSE(top.head_groups[1].recency);
  EXPECT_EQ(pattern_name(attention_of_layer(config, 3).head_groups[1].pattern), "full");
  EXPECT_THROW(attention_of_encoder_layer(config, 3), ConfigError);
}

TEST(CrossAttention, HasFullHeadsThenThoseOfItsContentWithoutCommonTime) {
  ExperimentConfig config = unlike_defaults();
  for (const PatternKind content : kCrossPatterns) {
    config.attention.cross_content = content;
    const AttentionConfig cross = cross_attention_of_layer(config, 1);
    EXPECT_EQ(cross.name, "cross-attention of layer 1");
    EXPECT_EQ(cross.kind, AttentionKind::cross);
    ASSERT_EQ(cross.head_groups.size(), 2U);
    EXPECT_EQ(pattern_name(cross.head_groups[0].pattern), "full");
    EXPECT_EQ(cross.head_groups[0].heads, 9);
    EXPECT_EQ(pattern_kind(cross.head_groups[1].pattern), content);
    EXPECT_EQ(cross.head_groups[1].heads, 3);
    EXPECT_EQ(refusal_of([&] { validate(cross); }), "accepted") << to_string(content);
  }
  config.attention.cross_heads = 0;
  EXPECT_EQ(cross_attention_of_layer(config, 0).head_groups.size(), 1U);
  config.attention.cross_heads = 12;
  EXPECT_EQ(cross_attention_of_layer(config, 0).head_groups.size(), 1U);
  config.attention.cross_heads = 13;
  EXPECT_EQ(refusal_of([&] { cross_attention_of_layer(config, 0); }),
            "attention.cross_heads 13 is not between 0 and attention.heads 12; lower attention.cross_heads or raise "
            "attention.heads");
  config.attention.cross_content = PatternKind::strided;
  EXPECT_EQ(refusal_of([&] { cross_attention_of_layer(config, 0); }),
            "attention.cross_content: 'strided' is not known; choose one of full, local, random, lsh, routing");
}

TEST(SourceLength, IsThatOfTheTargetUnlessItHasItsOwn) {
  EXPECT_EQ(source_length({.sequence_length = 7}), 7);
  EXPECT_EQ(source_length({.sequence_length = 7, .source_length = 9}), 9);
}

TEST(ValidityLabel, OfAnEncoderDecoderIsThatOfTheDecoder) {
  ExperimentConfig config;
  config.model.encoder_layers = 1;
  config.routing.routing().selection = RoutingSelection::balanced;
  config.attention.content = PatternKind::local;
  config.attention.cross_content = PatternKind::full;
  EXPECT_EQ(validity_label(config), "causal") << "an encoder has no future";
  config.attention.cross_content = PatternKind::routing;
  EXPECT_EQ(validity_label(config), "selection reads the future") << "queries compete with later ones";
  config.attention.cross_heads = 0;
  EXPECT_EQ(validity_label(config), "causal");
  config.attention.cross_heads = 4;
  config.model.encoder_layers = 0;
  EXPECT_EQ(validity_label(config), "causal") << "there is no cross-attention";
}

TEST(ValidityLabel, IsCausalUnlessALayerSelectsFromTheWholeSequence) {
  ExperimentConfig config;
  EXPECT_EQ(validity_label(config), "causal");
  config.routing.routing().selection = RoutingSelection::nearest;
  EXPECT_EQ(validity_label(config), "causal");
  config.routing.routing().selection = RoutingSelection::balanced;
  EXPECT_EQ(validity_label(config), "selection reads the future");
  config.attention.content_layers = "top 1";
  EXPECT_EQ(validity_label(config), "selection reads the future");
  config.attention.content_heads = 0;
  EXPECT_EQ(validity_label(config), "causal") << "no head is routed";
  config.attention.content_heads = 4;
  config.attention.content = PatternKind::full;
  EXPECT_EQ(validity_label(config), "causal");
}

}  // namespace
}  // namespace routing::experiment_test
