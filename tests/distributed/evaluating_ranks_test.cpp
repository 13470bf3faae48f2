// Evaluations spread over ranks give the numbers of one, bit for bit.
#include "distributed/rank_threads.h"
#include "routing/evaluation/recall_accuracy.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <vector>

namespace routing::evaluating_ranks_test {
namespace {

void expect_equal(const std::vector<LayerStatistics>& a, const std::vector<LayerStatistics>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].statistics.tokens, b[i].statistics.tokens);
    EXPECT_EQ(a[i].statistics.occupancy_entropy, b[i].statistics.occupancy_entropy);
    EXPECT_EQ(a[i].statistics.dead_centroids, b[i].statistics.dead_centroids);
    EXPECT_EQ(a[i].statistics.mean_memberships, b[i].statistics.mean_memberships);
    EXPECT_NEAR(a[i].statistics.commitment_loss, b[i].statistics.commitment_loss, 1e-12);
  }
}

// Seven windows in batches of two: four batches, the last of one window.
TEST(EvaluatingRanks, LikelihoodIsThatOfOneRank) {
  ExperimentConfig config = small_experiment();
  const at::Tensor ids = random_tokens(1, 210, 256, 5);
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < 210; ++i) bytes.push_back(static_cast<std::uint8_t>(ids[0][i].item<std::int64_t>()));
  const auto likelihood = [&](RankGroup* ranks) {
    Transformer model(config, at::TensorOptions().dtype(at::kFloat));
    return token_likelihood(*model, bytes, {.sequence_length = 32, .batch_size = 2, .ranks = ranks});
  };
  for (const std::int64_t memory : {0, 40}) {
    config.memory.length = memory;
    config.train.order = DataOrder::contiguous;
    const Likelihood one = likelihood(nullptr);
    for (const int ranks : {1, 2, 3, 5}) {
      as_ranks(ranks, [&](const Group& group) {
        const Likelihood all = likelihood(group.get());
        EXPECT_EQ(all.nats, one.nats) << ranks;
        EXPECT_EQ(all.tokens, 210);
        EXPECT_EQ(all.windows, one.windows);
        expect_equal(all.routing, one.routing);
      });
    }
  }
}

TEST(EvaluatingRanks, TheScoreOfPairsIsThatOfOneRank) {
  ExperimentConfig config = small_pairs_experiment();
  config.data.format = DataFormat::copy;
  config.train.sequence_length = 25;
  config.train.shortest_length = 3;
  const SequencePairs pairs(sequence_task_options(config));
  const auto score = [&](RankGroup* ranks, std::vector<LayerStatistics>& routing) {
    EncoderDecoder model(config, at::TensorOptions().dtype(at::kFloat));
    const TargetScore result = score_pairs(*model, pairs, {.pairs = 11, .batch_size = 2, .ranks = ranks});
    routing = model->take_evaluation_statistics();
    return result;
  };
  std::vector<LayerStatistics> routing_of_one;
  const TargetScore one = score(nullptr, routing_of_one);
  for (const int ranks : {2, 3}) {
    as_ranks(ranks, [&](const Group& group) {
      std::vector<LayerStatistics> routing;
      const TargetScore all = score(group.get(), routing);
      EXPECT_EQ(all.nats, one.nats) << ranks;
      EXPECT_EQ(all.tokens, one.tokens);
      EXPECT_EQ(all.right, one.right);
      expect_equal(routing, routing_of_one);
    });
  }
}

TEST(EvaluatingRanks, TheScoreOfRecallIsThatOfOneRank) {
  const ExperimentConfig config = small_recall_experiment();
  const RecallTask task(recall_options(config));
  const auto score = [&](RankGroup* ranks) {
    Transformer model(config, at::TensorOptions().dtype(at::kFloat));
    return score_recall(*model, task, {.sequences = 7, .length = 96, .batch_size = 2, .ranks = ranks});
  };
  const RecallScore one = score(nullptr);
  ASSERT_GT(one.answers(), 20);
  for (const int ranks : {1, 2, 3}) {
    as_ranks(ranks, [&](const Group& group) {
      const RecallScore all = score(group.get());
      EXPECT_EQ(all.tokens, one.tokens);
      EXPECT_EQ(all.nats, one.nats) << ranks;
      EXPECT_EQ(all.least_nats, one.least_nats) << ranks;
      EXPECT_EQ(all.chance, one.chance);
      ASSERT_EQ(all.distances.size(), one.distances.size());
      for (std::size_t i = 0; i < all.distances.size(); ++i) {
        EXPECT_EQ(all.distances[i].from, one.distances[i].from);
        EXPECT_EQ(all.distances[i].to, one.distances[i].to);
        EXPECT_EQ(all.distances[i].answers, one.distances[i].answers);
        EXPECT_EQ(all.distances[i].right, one.distances[i].right);
        EXPECT_EQ(all.distances[i].nats, one.distances[i].nats) << "octave " << i;
      }
    });
  }
}

}  // namespace
}  // namespace routing::evaluating_ranks_test
