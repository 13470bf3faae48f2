#include "routing/config/attention.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

namespace routing::attention_test {
namespace {

AttentionConfig good_config() {
  return {.name = "layer 3",
          .width = 64,
          .head_groups = {{.pattern = LocalPattern{.window = 8}, .heads = 2},
                          {.pattern = LshPattern{.buckets = 4}, .heads = 2, .shared_query_key = true}}};
}

std::string refusal(const AttentionConfig& config) {
  try {
    validate(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// Changes one thing about the first group of a good configuration.
template <class Change>
std::string refusal_after(const Change& change, AttentionKind kind = AttentionKind::causal_self) {
  AttentionConfig config = good_config();
  config.kind = kind;
  config.head_groups.resize(1);
  config.head_groups[0].pattern = FullPattern{};
  change(config, config.head_groups[0]);
  return refusal(config);
}

TEST(AttentionConfig, AGoodOneIsAcceptedAndKnowsItsSizes) {
  EXPECT_EQ(refusal(good_config()), "accepted");
  EXPECT_EQ(total_heads(good_config()), 4);
  EXPECT_EQ(head_dim(good_config()), 16);
  AttentionConfig wide = good_config();
  wide.head_dim = 24;
  EXPECT_EQ(head_dim(wide), 24);
}

TEST(AttentionConfig, EveryRefusalNamesTheLayerTheGroupAndBothValues) {
  using Config = AttentionConfig;
  using Group = HeadGroupConfig;
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refusal_after([](Config& c, Group&) { c.width = 0; }), "width is 0");
  expect(refusal_after([](Config& c, Group&) { c.head_groups.clear(); }), "head_groups is empty");
  expect(refusal_after([](Config& c, Group&) { c.dropout = 1.0; }), "dropout is 1");
  expect(refusal_after([](Config&, Group& g) { g.heads = 3; }), "width 64 is not a multiple of the 3 heads");
  expect(refusal_after([](Config&, Group& g) { g.heads = 0; }), "layer 3.head_groups[0] (full): heads is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LocalPattern{.window = 0}; }), "window is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LocalPattern{.window = 4, .lookahead = 2}; }),
         "lookahead is 2, but causal attention reads 0 later tokens");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LshPattern{.lookahead = 1}; }), "lookahead is 1");
  expect(refusal_after(
             [](Config&, Group& g) { g.pattern = LocalPattern{.form = LocalForm::block, .window = 4, .lookahead = 1}; },
             AttentionKind::bidirectional_self),
         "drop lookahead or use form = sliding");
  expect(refusal_after([](Config&, Group& g) { g.pattern = StridedPattern{.stride = 0}; }), "stride is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = RandomPattern{.groups = 0}; }), "groups is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = RandomPattern{.window = 0}; }), "window is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LshPattern{.buckets = 5}; }), "buckets is 5");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LshPattern{.rounds = 0}; }), "rounds is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = FixedPattern{.stride = 0}; }), "stride is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = FixedPattern{.summary = 0}; }), "summary is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = FixedPattern{.stride = 4, .summary = 5}; }),
         "summary is 5, but a cell has only stride = 4 tokens");
  expect(refusal_after([](Config&, Group& g) { g.pattern = Local2dPattern{.rows = 0, .image_width = 4}; }),
         "rows is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = Local2dPattern{.columns = 0, .image_width = 4}; }),
         "columns is 0");
  expect(refusal_after([](Config&, Group& g) { g.pattern = Local2dPattern{.above = -1, .image_width = 4}; }),
         "above is -1");
  expect(refusal_after([](Config&, Group& g) { g.pattern = Local2dPattern{.beside = -1, .image_width = 4}; }),
         "beside is -1");
  expect(refusal_after([](Config&, Group& g) { g.pattern = Local2dPattern{}; }),
         "model.image_width is 0, but windows of two dimensions need the rows of an image");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LocalPattern{.form = LocalForm::block, .flange = -1}; }),
         "flange is -1");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LocalPattern{.flange = 0}; }),
         "flange is 0, but it counts the blocks beside a query's own");
  expect(refusal_after([](Config&, Group& g) { g.relative = RelativePosition::rank; }), "max_relative is 0");
  expect(refusal_after([](Config&, Group& g) { g.merge_eps = -0.1; }), "merge_eps is -0.1");
  expect(refusal_after([](Config& c, Group&) { c.head_dim = 0; }), "head_dim is 0");
  const AttentionKind cross = AttentionKind::cross;
  expect(refusal_after([](Config&, Group& g) { g.pattern = LocalPattern{.window = 4}; }, cross), "form = block");
  expect(refusal_after([](Config&, Group& g) { g.pattern = StridedPattern{}; }, cross), "no common time");
  expect(refusal_after([](Config&, Group& g) { g.pattern = FixedPattern{}; }, cross), "no common time");
  expect(refusal_after([](Config&, Group& g) { g.pattern = Local2dPattern{.image_width = 4}; }, cross),
         "places in one image");
  expect(refusal_after([](Config&, Group& g) { g.pattern = LshPattern{.lookahead = 2}; }, cross), "drop lookahead");
  expect(refusal_after([](Config&, Group& g) { g.shared_query_key = true; }, cross), "shared_query_key");
  expect(refusal_after([](Config&, Group& g) { g.self = SelfRule::only_if_alone; }, cross), "self is only_if_alone");
  expect(refusal_after(
             [](Config&, Group& g) {
               g.relative = RelativePosition::true_offset;
               g.max_relative = 4;
             },
             cross),
         "relative is true_offset");
}

TEST(AttentionConfig, WhatMakesSenseAcrossSequencesIsAccepted) {
  for (const PatternConfig& pattern :
       {PatternConfig(FullPattern{}), PatternConfig(LocalPattern{.form = LocalForm::block, .window = 4}),
        PatternConfig(RandomPattern{}), PatternConfig(LshPattern{})}) {
    EXPECT_EQ(refusal_after([&](AttentionConfig&, HeadGroupConfig& g) { g.pattern = pattern; }, AttentionKind::cross),
              "accepted");
  }
}

TEST(AttentionRules, WordsGoBothWaysAndUnknownOnesNameTheNearest) {
  for (const SelfRule rule : {SelfRule::allowed, SelfRule::only_if_alone})
    EXPECT_EQ(parse_word<SelfRule>(to_string(rule), "self"), rule);
  for (const RepeatRule rule : {RepeatRule::every_time, RepeatRule::once})
    EXPECT_EQ(parse_word<RepeatRule>(to_string(rule), "repeats"), rule);
  for (const Merge merge : {Merge::mean, Merge::lse}) EXPECT_EQ(parse_word<Merge>(to_string(merge), "merge"), merge);
  for (const RelativePosition position :
       {RelativePosition::none, RelativePosition::true_offset, RelativePosition::rank}) {
    EXPECT_EQ(parse_word<RelativePosition>(to_string(position), "relative"), position);
  }
  try {
    parse_word<Merge>("meen", "merge");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "merge: 'meen' is not known; choose one of mean, lse (did you mean 'mean'?)");
  }
}

// PG-19 in the paper: all heads local, except two routed ones in the last two layers.
TEST(LayerRules, TheLastRuleThatHoldsALayerWins) {
  const HeadGroupConfig local{.pattern = LocalPattern{}, .heads = 8};
  const HeadGroupConfig content{.pattern = LshPattern{}, .heads = 2};
  HeadGroupConfig fewer_local = local;
  fewer_local.heads = 6;
  const std::vector<LayerRule> rules{{every_layer(), {local}}, {top_layers(2), {fewer_local, content}}};
  EXPECT_EQ(head_groups_of_layer(rules, 0, 22), std::vector{local});
  EXPECT_EQ(head_groups_of_layer(rules, 19, 22), std::vector{local});
  EXPECT_EQ(head_groups_of_layer(rules, 20, 22), (std::vector{fewer_local, content}));
  EXPECT_EQ(head_groups_of_layer(rules, 21, 22), (std::vector{fewer_local, content}));
}

// A Sparse Transformer: in turns, local and strided layers.
TEST(LayerRules, OddAndEvenLayersTakeTurns) {
  const HeadGroupConfig local{.pattern = LocalPattern{}, .heads = 8};
  const HeadGroupConfig content{.pattern = StridedPattern{}, .heads = 8};
  const std::vector<LayerRule> odd{{every_layer(), {local}}, {{.first = 1, .last = -1, .step = 2}, {content}}};
  const std::vector<LayerRule> even{{every_layer(), {local}}, {{.first = 0, .last = -1, .step = 2}, {content}}};
  for (std::int64_t layer = 0; layer < 5; ++layer) {
    EXPECT_EQ(head_groups_of_layer(odd, layer, 5), std::vector{layer % 2 == 1 ? content : local}) << layer;
    EXPECT_EQ(head_groups_of_layer(even, layer, 5), std::vector{layer % 2 == 0 ? content : local}) << layer;
  }
  // Every third of some layers in the middle.
  const std::vector<LayerRule> some{{every_layer(), {local}}, {{.first = 1, .last = 6, .step = 3}, {content}}};
  for (std::int64_t layer = 0; layer < 8; ++layer) {
    EXPECT_EQ(head_groups_of_layer(some, layer, 8), std::vector{layer == 1 || layer == 4 ? content : local}) << layer;
  }
  EXPECT_THROW(head_groups_of_layer({{{.first = 0, .last = -1, .step = 0}, {local}}}, 0, 4), ConfigError);
}

TEST(AttentionConfig, SlopesOfRecencyAreCountedOverAtLeastOneHead) {
  EXPECT_NE(refusal_after([](AttentionConfig& config, HeadGroupConfig&) {
              config.recency_heads = 0;
            }).find("recency_heads is 0"),
            std::string::npos);
  EXPECT_EQ(refusal_after([](AttentionConfig& config, HeadGroupConfig&) { config.recency_heads = 3; }), "accepted");
}

TEST(AttentionConfig, RecencyNeedsAPast) {
  for (const AttentionKind kind : {AttentionKind::bidirectional_self, AttentionKind::cross}) {
    EXPECT_NE(refusal_after([](AttentionConfig&, HeadGroupConfig& g) { g.recency = true; }, kind).find("recency is on"),
              std::string::npos);
  }
  EXPECT_EQ(refusal_after([](AttentionConfig&, HeadGroupConfig& g) { g.recency = true; }), "accepted");
}

TEST(AttentionConfig, RotaryHeadsAndUnitKeysFitTheirKind) {
  const auto refusal = [](const HeadGroupConfig& group, AttentionKind kind = AttentionKind::causal_self,
                          std::int64_t width = 8) {
    const AttentionConfig config{.kind = kind, .width = width, .head_groups = {group}};
    return message_of<ConfigError>([&] { validate(config); });
  };
  validate(AttentionConfig{.width = 8, .head_groups = {{.heads = 2, .rotary = Rotary::values}}});
  EXPECT_NE(
      refusal({.heads = 1, .rotary = Rotary::keys}, AttentionKind::causal_self, 7).find("heads have 7 dimensions"),
      std::string::npos);
  EXPECT_NE(refusal({.rotary = Rotary::keys}, AttentionKind::cross).find("no common origin"), std::string::npos);
  EXPECT_NE(refusal({.shared_query_key = true, .key_shift = 1, .rotary = Rotary::keys})
                .find("rotary is keys and key_shift 1"),
            std::string::npos);
  RoutingPattern unit;
  unit.norm = RoutingNorm::unit;
  validate(AttentionConfig{.width = 8, .head_groups = {{.pattern = unit, .shared_query_key = true}}});
  EXPECT_NE(refusal({.pattern = unit}).find("norm is unit"), std::string::npos);
  EXPECT_NE(refusal({.pattern = unit, .shared_query_key = true, .key_shift = 1}).find("norm is unit"),
            std::string::npos);
}

TEST(LayerRules, GapsAndRangesOutsideTheStackAreRefused) {
  const HeadGroupConfig local{.pattern = LocalPattern{}, .heads = 8};
  EXPECT_THROW(head_groups_of_layer({{bottom_layers(2), {local}}}, 2, 4), ConfigError);
  EXPECT_EQ(head_groups_of_layer({{bottom_layers(2), {local}}}, 1, 4).size(), 1U);
  EXPECT_THROW(head_groups_of_layer({{top_layers(5), {local}}}, 0, 4), ConfigError);
  EXPECT_THROW(head_groups_of_layer({{{3, 1}, {local}}}, 0, 4), ConfigError);
  EXPECT_THROW(head_groups_of_layer({{every_layer(), {local}}}, 4, 4), ConfigError);
}

TEST(PatternName, NamesEachPattern) {
  EXPECT_EQ(pattern_name(FullPattern{}), "full");
  EXPECT_EQ(pattern_name(LocalPattern{}), "local");
  EXPECT_EQ(pattern_name(StridedPattern{}), "strided");
  EXPECT_EQ(pattern_name(RandomPattern{}), "random");
  EXPECT_EQ(pattern_name(LshPattern{}), "lsh");
  EXPECT_EQ(pattern_name(FixedPattern{}), "fixed");
  EXPECT_EQ(pattern_name(Local2dPattern{}), "local2d");
}

}  // namespace
}  // namespace routing::attention_test
