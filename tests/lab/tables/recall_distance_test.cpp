#include "lab/tables/recall_distance.h"

#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

namespace routing::recall_distance_test {
namespace {

RecallModel made_up(const std::string& name) {
  RecallModel model{.name = name, .pairs = {.heads = 2, .per_query = 12.34}};
  model.score.chance = 0.125;
  model.score.distances = {{.from = 1, .to = 1, .answers = 4, .right = 4},
                           {.from = 2, .to = 3},
                           {.from = 4, .to = 7, .answers = 20, .right = 5}};
  return model;
}

TEST(RecallFigure, HasAPointForEveryOctaveWithEnoughAnswers) {
  const CurvesFigure figure = recall_figure({made_up("full"), made_up("local")}, 4);
  ASSERT_EQ(figure.curves.size(), 2U);
  EXPECT_EQ(figure.curves[1].name, "local");
  ASSERT_EQ(figure.curves[0].x.size(), 2U);
  EXPECT_DOUBLE_EQ(figure.curves[0].x[0], 1.0);
  EXPECT_DOUBLE_EQ(figure.curves[0].x[1], 5.5) << "tokens, not their logarithm";
  EXPECT_EQ(figure.x_scale, AxisScale::doubling);
  EXPECT_EQ(figure.x_label, "distance in tokens");
  EXPECT_DOUBLE_EQ(figure.curves[0].y[0], 1.0);
  EXPECT_DOUBLE_EQ(figure.curves[0].y[1], 0.25);
  ASSERT_EQ(figure.references.size(), 1U);
  EXPECT_DOUBLE_EQ(figure.references[0].y, 0.125);
  EXPECT_EQ(recall_figure({made_up("full")}, 5).curves[0].x.size(), 1U);
  EXPECT_THROW(recall_figure({}), InputError);
}

TEST(RecallMarkdown, HasAColumnAnOctave) {
  EXPECT_EQ(recall_markdown({made_up("full")}),
            "| attention | pairs a query | all | 1-1 | 2-3 | 4-7 |\n"
            "|---|---|---|---|---|---|\n"
            "| full | 12.3 | 0.375 | 1.000 | - | 0.250 |\n");
}

// Keys that full and local heads read, by hand.
TEST(ContentPairs, CountKeysOfOneHeadAndQuery) {
  ExperimentConfig config = small_experiment();
  config.attention.content = PatternKind::full;
  const std::int64_t n = 24;
  const at::Tensor tokens = random_tokens(2, n, config.model.vocab_size, 1);
  Transformer full(config, at::TensorOptions().dtype(at::kFloat));
  full->train();
  const ContentPairs pairs = content_pairs(*full, tokens, MatmulPrecision::fp32);
  EXPECT_DOUBLE_EQ(pairs.per_query, (n + 1) / 2.0);
  EXPECT_GT(pairs.heads, 0);
  EXPECT_LT(pairs.heads, config.model.layers * config.attention.heads);
  EXPECT_TRUE(full->is_training());
  // The local heads beside them, which see every key of so short a text that their windows allow.
  const auto window = static_cast<double>(std::get<LocalPattern>(config.patterns.local.pattern).window);
  const double by_local = (window * (window + 1) / 2 + window * (static_cast<double>(n) - window)) / n;
  const auto local_heads = static_cast<double>(config.model.layers * config.attention.heads - pairs.heads);
  EXPECT_DOUBLE_EQ(pairs.of_model, static_cast<double>(pairs.heads) * pairs.per_query + local_heads * by_local);

  config.attention.content = PatternKind::local;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 4;
  Transformer local(config, at::TensorOptions().dtype(at::kFloat));
  const ContentPairs near = content_pairs(*local, tokens, MatmulPrecision::fp32);
  EXPECT_EQ(near.heads, config.model.layers * config.attention.heads);
  EXPECT_DOUBLE_EQ(near.per_query, (1 + 2 + 3 + 4.0 * (n - 3)) / n);
  EXPECT_DOUBLE_EQ(near.of_model, near.per_query * static_cast<double>(near.heads));
}

TEST(ContentName, SaysWhatContentHeadsAre) {
  ExperimentConfig config;
  config.attention.content = PatternKind::routing;
  config.routing.routing().selection = RoutingSelection::nearest;
  EXPECT_EQ(content_name(config), "routing, nearest");
  config.attention.content = PatternKind::lsh;
  EXPECT_EQ(content_name(config), "LSH");
  config.attention.content = PatternKind::random;
  EXPECT_EQ(content_name(config), "random");
}

}  // namespace
}  // namespace routing::recall_distance_test
