#include "routing/config/span_heads.h"

#include "routing/config/experiment.h"
#include "routing/config/parameter_count.h"
#include "routing/core/error.h"
#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::span_heads_test {
namespace {

const HeadGroupConfig kLocal{.pattern = LocalPattern{}, .heads = 3};
const HeadGroupConfig kSpan{.pattern = SpanPattern{.limit = 8}, .relative = RelativePosition::true_offset};

TEST(SpanHeadGroups, EachHeadWithASpanIsAGroup) {
  HeadGroupConfig three = kSpan;
  three.heads = 3;
  EXPECT_EQ(groups_by_span(three), (std::vector<HeadGroupConfig>{kSpan, kSpan, kSpan}));
  EXPECT_EQ(groups_by_span(kLocal), std::vector<HeadGroupConfig>{kLocal});
}

TEST(SpanHeadGroups, NeighboursThatAreAlikeReadTheTablesOfTheFirst) {
  HeadGroupConfig other = kSpan;
  other.scale = 0.5;
  const std::vector<HeadGroupConfig> groups{kLocal, kLocal, kSpan, kSpan, kSpan, other, kSpan};
  const std::vector<std::size_t> expected{0, 1, 2, 2, 2, 5, 6};
  for (std::size_t index = 0; index < groups.size(); ++index) {
    EXPECT_EQ(table_group(groups, index), expected[index]) << index;
  }
  EXPECT_EQ(count_span_heads(groups), 5);
  EXPECT_EQ(count_span_heads({kLocal}), 0);
}

// 4 heads of 32 dimensions: 2 tables of 2 * 1024 + 1 rows for all of them, and a span for each.
TEST(SpanHeadGroups, ALayerHasOnePairOfTablesAndASpanPerHead) {
  ExperimentConfig config;
  config.model.layers = 1;
  config.attention.content = PatternKind::span;
  const std::int64_t with_span = count_parameters(config).attention;
  config.patterns.span.relative = RelativePosition::none;
  EXPECT_EQ(with_span - count_parameters(config).attention, 2 * (2 * 1024 + 1) * 32);
  config.attention.content = PatternKind::strided;
  EXPECT_EQ(count_parameters(config).attention + 4, with_span - 2 * (2 * 1024 + 1) * 32);
}

TEST(SpanHeadGroups, ALimitBeyondTheSequenceIsRefused) {
  ExperimentConfig config;
  config.attention.content = PatternKind::span;
  EXPECT_EQ(refusal_of([&] { validate(config); }), "accepted");
  config.train.sequence_length = 1000;
  EXPECT_EQ(refusal_of([&] { validate(config); }),
            "span.limit 1024 is longer than train.sequence_length 1000; lower span.limit or raise "
            "train.sequence_length");
}

TEST(SpanHeadGroups, TablesReachAsFarAsTheLimitUnlessTheSectionSaysOtherwise) {
  ExperimentConfig config;
  config.attention.content = PatternKind::span;
  config.attention.content_heads = 8;
  const AttentionConfig layer = attention_of_layer(config, 0);
  ASSERT_EQ(layer.head_groups.size(), 8U) << "and no local heads";
  EXPECT_EQ(layer.head_groups.back().max_relative, 1024);
  config.patterns.span.max_relative = 20;
  EXPECT_EQ(attention_of_layer(config, 0).head_groups.back().max_relative, 20);
}

}  // namespace
}  // namespace routing::span_heads_test
