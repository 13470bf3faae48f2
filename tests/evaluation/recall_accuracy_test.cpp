#include "routing/evaluation/recall_accuracy.h"

#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>

namespace routing::recall_accuracy_test {
namespace {

TEST(Octaves, DoubleTheirWidth) {
  EXPECT_EQ(octave_of(1), 0);
  EXPECT_EQ(octave_of(2), 1);
  EXPECT_EQ(octave_of(3), 1);
  EXPECT_EQ(octave_of(4), 2);
  EXPECT_EQ(octave_of(4095), 11);
  EXPECT_EQ(octave_of(4096), 12);
  EXPECT_THROW(octave_of(0), InputError);
}

TEST(RecallTokens, AreTheSequencesRowByRow) {
  const RecallTask task(recall_options(small_recall_experiment()));
  std::vector<RecallSequence> sequences;
  const at::Tensor tokens = recall_tokens(task, "valid", 3, {2, 50}, &sequences);
  ASSERT_EQ(sequences.size(), 2U);
  for (std::int64_t row = 0; row < 2; ++row) {
    const std::vector<std::int64_t> expected = task.sequence("valid", 3 + row, 50).ids;
    EXPECT_EQ(sequences[static_cast<std::size_t>(row)].ids, expected);
    for (std::int64_t i = 0; i < 50; ++i) {
      EXPECT_EQ(tokens[row][i].item<std::int64_t>(), expected[static_cast<std::size_t>(i)]);
    }
  }
}

TEST(ScoreRecall, CountsAnswersByDistanceLikeAPlainLoop) {
  const ExperimentConfig config = small_recall_experiment();
  const RecallTask task(recall_options(config));
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  model->train();
  const RecallScore score = score_recall(*model, task, {.part = "test", .sequences = 5, .length = 96, .batch_size = 2});
  EXPECT_TRUE(model->is_training());
  model->eval();
  const at::NoGradGuard no_gradient;
  std::vector<DistanceScore> bins(16);
  double nats = 0.0;
  double least = 0.0;
  std::int64_t answers = 0;
  std::int64_t right_beyond_8 = 0;
  std::int64_t beyond_8 = 0;
  for (std::int64_t number = 0; number < 5; ++number) {
    std::vector<RecallSequence> sequences;
    const at::Tensor tokens = recall_tokens(task, "test", number, {1, 96}, &sequences);
    const at::Tensor logits = model->logits(tokens, {})[0].to(at::kDouble);
    const at::Tensor log_probabilities = at::log_softmax(logits, -1);
    least += sequences[0].least_nats;
    for (std::int64_t i = 0; i < 96; ++i)
      nats -= log_probabilities[i][tokens[0][i].item<std::int64_t>()].item<double>();
    for (const RecallAnswer& answer : sequences[0].answers) {
      DistanceScore& bin = bins[static_cast<std::size_t>(std::floor(std::log2(static_cast<double>(answer.distance))))];
      const auto target = tokens[0][answer.position].item<std::int64_t>();
      const bool hit = logits[answer.position].argmax().item<std::int64_t>() == target;
      ++answers;
      ++bin.answers;
      bin.right += hit ? 1 : 0;
      bin.nats -= log_probabilities[answer.position][target].item<double>();
      beyond_8 += answer.distance >= 8 ? 1 : 0;
      right_beyond_8 += answer.distance >= 8 && hit ? 1 : 0;
    }
  }
  ASSERT_GT(beyond_8, 0);
  EXPECT_EQ(score.tokens, 5 * 96);
  EXPECT_NEAR(score.nats, nats, 1e-4);
  EXPECT_NEAR(score.least_nats, least, 1e-9);
  EXPECT_LT(score.least_nats, score.nats) << "no model beats perfect memory, least of all an untrained one";
  EXPECT_EQ(score.answers(), answers);
  EXPECT_DOUBLE_EQ(score.chance, 0.25);
  EXPECT_DOUBLE_EQ(score.accuracy(8), static_cast<double>(right_beyond_8) / static_cast<double>(beyond_8));
  EXPECT_DOUBLE_EQ(score.accuracy(1 << 20), 0.0);
  for (std::size_t octave = 0; octave < score.distances.size(); ++octave) {
    EXPECT_EQ(score.distances[octave].from, 1 << octave);
    EXPECT_EQ(score.distances[octave].to, (2 << octave) - 1);
    EXPECT_EQ(score.distances[octave].answers, bins[octave].answers) << octave;
    EXPECT_EQ(score.distances[octave].right, bins[octave].right) << octave;
    EXPECT_NEAR(score.distances[octave].nats, bins[octave].nats, 1e-4) << octave;
  }
}

TEST(ScoreRecall, RefusesEmptyWork) {
  const ExperimentConfig config = small_recall_experiment();
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  const RecallTask task(recall_options(config));
  EXPECT_THROW(score_recall(*model, task, {.sequences = 0}), InputError);
  EXPECT_THROW(score_recall(*model, task, {.batch_size = 0}), InputError);
}

}  // namespace
}  // namespace routing::recall_accuracy_test
