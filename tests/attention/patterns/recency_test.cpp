#include "routing/attention/patterns/recency.h"

#include "routing/attention/multi_head.h"
#include "routing/config/experiment.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace routing::recency_test {
namespace {

using support::random_tensor;

TEST(Recency, SlopesHalveFromHeadToHeadOfEightLocalOnes) {
  const LocalPattern local;
  EXPECT_DOUBLE_EQ(recency_slope(local, 0, 8), 0.5);
  EXPECT_DOUBLE_EQ(recency_slope(local, 1, 8), 0.25);
  EXPECT_DOUBLE_EQ(recency_slope(local, 7, 8), 1.0 / 256);
  EXPECT_DOUBLE_EQ(recency_slope(local, 0, 2), 1.0 / 16);
  EXPECT_DOUBLE_EQ(recency_slope(local, 8, 8), 0.5) << "more heads than are counted begin anew";
}

// A slope of 2^-16 takes 1/16 of a logit over 4096 tokens, one of 2^-8 takes 16, which is all there is.
TEST(Recency, HeadsThatReadAnyDistanceSeeFar) {
  for (const PatternConfig& far :
       {PatternConfig{FullPattern{}}, PatternConfig{StridedPattern{}}, PatternConfig{RandomPattern{}},
        PatternConfig{LshPattern{}}, PatternConfig{RoutingPattern{}}}) {
    EXPECT_DOUBLE_EQ(recency_slope(far, 7, 8) * 4096, 1.0 / 16) << pattern_name(far);
    EXPECT_DOUBLE_EQ(recency_slope(far, 0, 8), 0.25) << pattern_name(far);
  }
  EXPECT_DOUBLE_EQ(recency_slope(LocalPattern{}, 7, 8) * 4096, 16.0);
}

TEST(Recency, SlopesGoByTheNumberOfAHeadInItsLayer) {
  const HeadGroupConfig local{.pattern = LocalPattern{}, .heads = 2, .recency = true};
  const HeadGroupConfig plain{.pattern = FullPattern{}, .heads = 1};
  AttentionConfig layer{.width = 8, .head_groups = {local, plain, local}};
  layer.head_groups[2].heads = 1;
  EXPECT_EQ(recency_slopes(layer, 0), (std::vector<double>{0.25, 0.0625}));
  EXPECT_TRUE(recency_slopes(layer, 1).empty());
  EXPECT_EQ(recency_slopes(layer, 2), (std::vector<double>{1.0 / 256}));
  layer.recency_heads = 2;
  EXPECT_EQ(recency_slopes(layer, 0), (std::vector<double>{1.0 / 16, 1.0 / 256}));
  EXPECT_EQ(recency_slopes(layer, 2), (std::vector<double>{1.0 / 256})) << "head 3 of 2 is head 1";
}

// The previous byte has the same head in every model that is compared, whatever its content heads are.
TEST(Recency, AllModelsOfAComparisonHaveTheSameSlopes) {
  ExperimentConfig config;
  config.patterns.local.recency = true;
  config.attention.heads = 8;
  config.attention.content_heads = 4;
  config.attention.content = PatternKind::local;
  const std::vector<double> all = recency_slopes(attention_of_layer(config, 0), 0);
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(all.front(), 0.5);
  for (const PatternKind content : kEvery<PatternKind>) {
    if (content == PatternKind::local) continue;
    config.attention.content = content;
    const std::vector<double> some = recency_slopes(attention_of_layer(config, 0), 0);
    EXPECT_EQ(some, std::vector<double>(all.begin(), all.begin() + 4)) << to_string(content);
  }
  EXPECT_EQ(attention_of_layer(config, 0).recency_heads, 8);
}

TEST(Recency, AttendGetsSlopesInTheTypeOfItsVectors) {
  const at::Tensor slopes = slopes_for_attend({0.5, 0.1}, at::kFloat);
  EXPECT_EQ(slopes.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(slopes, at::tensor({0.5F, 0.1F})));
  EXPECT_FALSE(slopes_for_attend({}, at::kFloat).defined());
}

TEST(Recency, HeadsOfALayerAttendWithTheirSlopes) {
  const HeadGroupConfig local{.pattern = LocalPattern{.window = 4}, .heads = 2, .recency = true};
  const HeadGroupConfig full{.pattern = FullPattern{}, .heads = 2, .recency = true};
  MultiHeadAttention layer(AttentionConfig{.width = 8, .head_groups = {local, full}}, LayerPlace{},
                           at::TensorOptions(at::kDouble));
  layer->eval();
  AttentionState state{.keep_probes = true};
  layer->forward(random_tensor({1, 9, 8}, 1), state);
  EXPECT_TRUE(at::equal(state.probes[0].recency, at::tensor({1.0 / 4, 1.0 / 16}, at::kDouble)));
  EXPECT_TRUE(at::equal(state.probes[1].recency, at::tensor({0x1.0p-12, 0x1.0p-16}, at::kDouble)));
}

// The last 200 of so many tokens, as a layer of near-sighted local heads sees them.
at::Tensor last_outputs(std::int64_t tokens, MatmulPrecision precision) {
  const at::NoGradGuard no_gradient;
  constexpr std::int64_t kWindow = 48;
  const HeadGroupConfig local{.pattern = LocalPattern{.window = kWindow}, .heads = 4, .recency = true};
  MultiHeadAttention layer(AttentionConfig{.width = 32, .initial_scale = 4.0, .head_groups = {local}}, LayerPlace{},
                           at::TensorOptions(at::kFloat));
  layer->eval();
  const at::Tensor seen = random_tensor({1, 200 + kWindow, 32}, 1, at::kFloat);
  const at::Tensor others = random_tensor({1, 1, 32}, 2, at::kFloat).expand({1, tokens - seen.size(1), 32});
  AttentionState state{.precision = precision};
  return layer->forward(at::cat({others, seen}, 1), state).narrow(1, tokens - 200, 200).clone();
}

// As a column of positions in float32 the same tokens behind 100,000 others differed by 1e-4.
TEST(Recency, TheSameTokensGiveTheSameBitsHoweverManyStandBeforeThem) {
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor near = last_outputs(320, precision);
    // Whole tiles of 64 keys more: not even the order of sums is another one.
    for (const std::int64_t tokens : {320 + 157 * 64, 320 + 1563 * 64}) {
      EXPECT_TRUE(at::equal(last_outputs(tokens, precision), near)) << tokens << " tokens";
    }
  }
  const at::Tensor near = last_outputs(320, MatmulPrecision::fp32);
  for (const std::int64_t tokens : {10'000, 100'000}) {
    const at::Tensor difference = last_outputs(tokens, MatmulPrecision::fp32) - near;
    EXPECT_LT(difference.abs().max().item<double>(), 1e-6 * near.abs().max().item<double>()) << tokens << " tokens";
  }
}

// The same where sequences are read piece by piece, in the one-query way of decoding.
TEST(Recency, DecodingFarIntoASequenceGivesTheBitsOfItsBeginning) {
  const HeadGroupConfig local{.pattern = LocalPattern{.window = 48}, .heads = 4, .recency = true};
  MultiHeadAttention layer(AttentionConfig{.width = 32, .initial_scale = 4.0, .head_groups = {local}}, LayerPlace{},
                           at::TensorOptions(at::kFloat));
  layer->eval();
  const at::Tensor tokens = random_tensor({1, 120, 32}, 1, at::kFloat);
  const std::vector<std::int64_t> sequence{0};
  const auto outputs_after = [&](std::int64_t others, MatmulPrecision precision) {
    AttentionCache cache = layer->make_cache();
    cache.add_sequence(0);
    const at::Tensor other = random_tensor({1, 1, 32}, 2, at::kFloat);
    for (std::int64_t read = 0; read < others; read += 6400) {
      layer->forward_cached(other.expand({1, 6400, 32}), cache, sequence, precision);
    }
    std::vector<at::Tensor> outputs;
    for (std::int64_t token = 0; token < 120; ++token) {
      outputs.push_back(layer->forward_cached(tokens.narrow(1, token, 1), cache, sequence, precision));
    }
    return at::cat(outputs, 1).narrow(1, 48, 72);
  };
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor near = outputs_after(6400, precision);
    EXPECT_TRUE(at::equal(outputs_after(102'400, precision), near));
  }
}

}  // namespace
}  // namespace routing::recency_test
