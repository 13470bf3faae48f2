#include "routing/evaluation/target_accuracy.h"

#include "routing/model/encoder_decoder.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace routing::target_accuracy_test {
namespace {

ExperimentConfig copy_experiment(std::int64_t shortest) {
  ExperimentConfig config = small_pairs_experiment();
  config.data.format = DataFormat::copy;
  config.train.sequence_length = 25;
  config.train.shortest_length = shortest;
  return config;
}

TEST(TokenBatch, HoldsThePairsAndMasksOnlyWherePaddingIs) {
  const SequencePairs varied(sequence_task_options(copy_experiment(3)));
  const PairBatch pairs = varied.batch("train", 0, 4);
  const TokenBatch batch = token_batch(pairs);
  ASSERT_EQ(batch.source.sizes(), at::IntArrayRef({4, pairs.source.length}));
  ASSERT_EQ(batch.tokens.sizes(), at::IntArrayRef({4, pairs.target.length}));
  for (std::int64_t row = 0; row < 4; ++row) {
    const SequencePair pair = varied.pair("train", row);
    const auto length = static_cast<std::int64_t>(pair.source.size());
    EXPECT_EQ(batch.source_valid[row].sum().item<std::int64_t>(), length);
    EXPECT_EQ(batch.valid[row].sum().item<std::int64_t>(), length + 1);
    EXPECT_TRUE(batch.valid[row].slice(0, 0, length + 1).all().item<bool>());
    for (std::int64_t i = 0; i < length; ++i) {
      EXPECT_EQ(batch.source[row][i].item<std::int64_t>(), pair.source[static_cast<std::size_t>(i)]);
      EXPECT_EQ(batch.tokens[row][i].item<std::int64_t>(), pair.target[static_cast<std::size_t>(i)]);
    }
  }
  const TokenBatch even = token_batch(SequencePairs(sequence_task_options(copy_experiment(0))).batch("train", 0, 2));
  EXPECT_FALSE(even.valid.defined());
  EXPECT_FALSE(even.source_valid.defined());
}

TEST(ScoreTargets, CountsWhatIsRightAmongRealTargets) {
  EncoderDecoder model(copy_experiment(3), at::TensorOptions().dtype(at::kFloat));
  // A model that always says 7.
  {
    const at::NoGradGuard no_gradient;
    model->named_parameters()["output_weight"].zero_();
    model->named_parameters()["output_bias"].zero_();
    model->named_parameters()["output_bias"][7] = 2.0;
  }
  model->train();
  TokenBatch batch{.tokens = at::full({2, 5}, 7, at::kLong), .source = random_tokens(2, 4, 40, 1)};
  batch.tokens[0][1] = 3;
  batch.tokens[1][4] = 3;
  TargetScore score = score_targets(*model, batch, MatmulPrecision::fp32);
  EXPECT_EQ(score.tokens, 10);
  EXPECT_EQ(score.right, 8);
  EXPECT_DOUBLE_EQ(score.accuracy(), 0.8);
  const double total = std::log(std::exp(2.0) + 39.0);
  EXPECT_NEAR(score.nats, 8.0 * (total - 2.0) + 2.0 * total, 1e-5);
  EXPECT_TRUE(model->is_training());
  batch.valid = at::ones({2, 5}, at::kBool);
  batch.valid[1][4] = false;
  score = score_targets(*model, batch, MatmulPrecision::fp32);
  EXPECT_EQ(score.tokens, 9);
  EXPECT_EQ(score.right, 8);
}

TEST(ScoreTargets, TellsOfEveryRowWithoutPadding) {
  EncoderDecoder model(copy_experiment(3), at::TensorOptions().dtype(at::kFloat));
  TokenBatch batch{.tokens = random_tokens(2, 5, 40, 2), .source = random_tokens(2, 4, 40, 1)};
  batch.valid = at::ones({2, 5}, at::kBool);
  batch.valid[1][4] = false;
  batch.source_valid = at::ones({2, 4}, at::kBool);
  batch.source_valid[0][3] = false;
  std::vector<std::size_t> tokens;
  std::vector<std::size_t> sources;
  double nats = 0.0;
  const TargetScore score = score_targets(*model, batch, MatmulPrecision::fp32, [&](const ScoredWindow& row) {
    const auto number = static_cast<std::int64_t>(tokens.size());
    ASSERT_EQ(row.nats.size(), row.tokens.size());
    EXPECT_EQ(row.tokens.back(), batch.tokens[number][number == 0 ? 4 : 3].item<std::int64_t>());
    EXPECT_EQ(row.source.back(), batch.source[number][number == 0 ? 2 : 3].item<std::int64_t>());
    tokens.push_back(row.tokens.size());
    sources.push_back(row.source.size());
    for (const float cost : row.nats) nats += static_cast<double>(cost);
  });
  EXPECT_EQ(tokens, (std::vector<std::size_t>{5, 4}));
  EXPECT_EQ(sources, (std::vector<std::size_t>{3, 4}));
  EXPECT_NEAR(nats, score.nats, 1e-4);
}

TEST(ScorePairs, IsTheSumOverBatchesOfAnySize) {
  const ExperimentConfig config = copy_experiment(3);
  EncoderDecoder model(config, at::TensorOptions().dtype(at::kFloat));
  const SequencePairs pairs(sequence_task_options(config));
  const TargetScore whole = score_pairs(*model, pairs, {.pairs = 7, .batch_size = 7});
  const TargetScore parts = score_pairs(*model, pairs, {.pairs = 7, .batch_size = 3});
  std::int64_t targets = 0;
  for (std::int64_t number = 0; number < 7; ++number) {
    targets += static_cast<std::int64_t>(pairs.pair("valid", number).target.size());
  }
  EXPECT_EQ(whole.tokens, targets);
  EXPECT_EQ(parts.tokens, targets);
  EXPECT_EQ(parts.right, whole.right);
  EXPECT_NEAR(parts.nats, whole.nats, 1e-6);
  EXPECT_NE(score_pairs(*model, pairs, {.part = "test", .pairs = 7}).nats, whole.nats);
}

}  // namespace
}  // namespace routing::target_accuracy_test
