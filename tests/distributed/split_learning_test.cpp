// Ranks that share the sequences of a batch, each with a piece of them, learn what one rank would have learnt.
#include "distributed/rank_threads.h"
#include "routing/data/batches.h"
#include "routing/distributed/rank_rows.h"
#include "routing/model/transformer.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace routing::split_learning_test {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

constexpr std::int64_t kTokens = 61;  // no two or more ranks have pieces of one length

// Whole sequences of a data rank, which the learner cuts itself.
TokenBatch batch_of(const ExperimentConfig& config, std::int64_t index, const Learner& learner) {
  const TrainConfig& train = config.train;
  const RowRange rows = rows_of_rank(train.batch_size, learner.data_rank(), learner.data_ranks());
  const at::Tensor tokens = random_tokens(train.batch_size, train.sequence_length, config.model.vocab_size,
                                          static_cast<std::uint64_t>(index));
  return {.tokens = tokens.narrow(0, rows.first, rows.count).contiguous(),
          .sample_ids = at::arange(rows.count, at::kLong) + rows.first + index * train.batch_size,
          .index = index,
          .all_targets = tokens.numel()};
}

// What a rank has after the first step, and the losses of all.
struct Learnt {
  Tensors gradients;
  std::vector<StepResult> results;
  Tensors tensors;  // at the end
};

std::vector<Learnt> learn(ExperimentConfig config, int ranks, int sequence_ranks, int steps = 4) {
  config.train.sequence_ranks = sequence_ranks;
  std::vector<Learnt> learnt(static_cast<std::size_t>(ranks));
  as_ranks(ranks, [&](const Group& group) {
    Learner learner(config, {.group = group});
    Learnt& own = learnt[static_cast<std::size_t>(group->rank())];
    for (int step = 0; step < steps; ++step) {
      std::vector<TokenBatch> batches;
      for (std::int64_t i = 0; i < config.train.accumulation; ++i) {
        batches.push_back(batch_of(config, step * config.train.accumulation + i, learner));
      }
      own.results.push_back(learner.step(batches));
      if (step > 0) continue;
      for (const auto& item : learner.model().named_parameters()) {
        own.gradients[item.key()] = item.value().grad().detach().clone();
      }
    }
    for (const auto& [name, value] : named_tensors(learner.model())) own.tensors[name] = value.detach().clone();
  });
  return learnt;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kDouble);
  const at::Tensor y = b.to(at::kDouble);
  const double size = y.norm().item<double>();
  return (x - y).norm().item<double>() / (size > 0.0 ? size : 1.0);
}

// Dropout wherever there is any, positions, and windows longer than the pieces of four ranks.
ExperimentConfig with_everything(ExperimentConfig config) {
  config.model.residual_dropout = 0.1;
  config.model.attention_dropout = 0.2;
  config.model.feedforward_dropout = 0.1;
  config.model.embedding_dropout = 0.1;
  config.model.input_dropout = 0.1;
  config.model.initial_scale = 1.0;
  config.train.sequence_length = kTokens;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 20;
  if (config.model.image_height == 0) config.model.positions = PositionKind::learned;
  return config;
}

ExperimentConfig routed(RoutingSelection selection, bool shift) {
  ExperimentConfig config = small_experiment("routing");
  config.routing.routing().selection = selection;
  config.routing.routing().commitment = 0.1;
  if (!shift) keys_as_they_stand(config.routing.group);
  return with_everything(config);
}

std::vector<ContentCase> split_cases() {
  std::vector<ContentCase> cases;
  for (const char* content : {"local", "full", "strided", "lsh", "fixed", "local2d", "span"}) {
    cases.push_back({content, with_everything(small_experiment(content))});
  }
  ExperimentConfig blocks = with_everything(small_experiment("local"));
  blocks.patterns.local.pattern = LocalPattern{.form = LocalForm::block, .window = 7, .flange = 2};
  blocks.patterns.local.recency = false;
  cases.push_back({"block", blocks});
  cases.push_back({"threshold_shifted", routed(RoutingSelection::threshold, true)});
  cases.push_back({"threshold", routed(RoutingSelection::threshold, false)});
  cases.push_back({"nearest_shifted", routed(RoutingSelection::nearest, true)});
  cases.push_back({"nearest", routed(RoutingSelection::nearest, false)});
  ExperimentConfig keys = routed(RoutingSelection::threshold, false);
  keys.routing.group.shared_query_key = false;
  cases.push_back({"threshold_with_keys", keys});
  ExperimentConfig recomputed = routed(RoutingSelection::threshold, true);
  recomputed.model.checkpoint_activations = true;
  recomputed.patterns.local.recency = true;
  cases.push_back({"recomputed_with_recency", recomputed});
  // So long that the rows of local heads begin behind the first token.
  ExperimentConfig of_text = routed(RoutingSelection::threshold, true);
  of_text.train.sequence_length = 403;
  of_text.patterns.local.relative = RelativePosition::true_offset;
  cases.push_back({"longer", of_text});
  // One cluster is a list like others: not every token need be in it.
  ExperimentConfig one_cluster = of_text;
  one_cluster.routing.routing().clusters = 1;
  one_cluster.routing.routing().window = 40;
  cases.push_back({"longer_one_cluster", one_cluster});
  of_text.patterns.local = blocks.patterns.local;
  of_text.patterns.lsh.pattern = LshPattern{.buckets = 4, .rounds = 2, .window = 20};
  of_text.attention.content = PatternKind::lsh;
  cases.push_back({"longer_blocks_and_rounds", of_text});
  return cases;
}

class SplitLearning : public testing::TestWithParam<ContentCase> {};

TEST_P(SplitLearning, HasTheGradientsOfOneRankAndTheSameBitsOnAllOfThem) {
  const ExperimentConfig& config = GetParam().config;
  const Learnt one = learn(config, 1, 1).front();
  for (const int ranks : {2, 3, 4}) {
    const std::vector<Learnt> all = learn(config, ranks, ranks);
    for (const auto& [name, gradient] : one.gradients) {
      EXPECT_LT(relative_difference(all[0].gradients.at(name), gradient), 1e-5) << name << ", ranks " << ranks;
    }
    for (std::size_t step = 0; step < one.results.size(); ++step) {
      const StepResult& result = all[0].results[step];
      EXPECT_NEAR(result.loss_nats, one.results[step].loss_nats, 1e-4) << "step " << step << ", ranks " << ranks;
      EXPECT_EQ(result.tokens, one.results[step].tokens);
    }
    EXPECT_NEAR(all[0].results[0].loss_nats, one.results[0].loss_nats, 1e-12) << "the forward pass has the same bits";
    EXPECT_NEAR(all[0].results[0].auxiliary_loss, one.results[0].auxiliary_loss,
                1e-6 * std::abs(one.results[0].auxiliary_loss));
    for (std::size_t i = 0; i < one.results[0].routing.size(); ++i) {
      EXPECT_EQ(all[0].results[0].routing[i].statistics.occupancy, one.results[0].routing[i].statistics.occupancy);
    }
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      for (const auto& [name, value] : all[0].tensors) {
        EXPECT_TRUE(same_bits(value, all[rank].tensors.at(name))) << name << " of rank " << rank << " of " << ranks;
      }
      EXPECT_EQ(all[rank].results.back().loss_nats, all[0].results.back().loss_nats);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Contents, SplitLearning, testing::ValuesIn(split_cases()),
                         [](const auto& item) { return item.param.name; });

// In double there is no rounding to hide behind: attention by tensors, over pieces of any length.
TEST(SplitModels, InDoubleHaveTheGradientsOfTheWholeWhateverThePieces) {
  using Ends = std::vector<std::int64_t>;
  for (ContentCase each : split_cases()) {
    each.config.train.batch_size = 2;
    each.config.train.sequence_length = kTokens;
    const at::Tensor tokens = random_tokens(2, kTokens, each.config.model.vocab_size, 3);
    const auto gradients_of = [&](const TokenBatch& batch, const SequencePiece* piece, RankGroup& group) {
      Transformer model(each.config, at::TensorOptions().dtype(at::kDouble));
      model->train();
      model->loss(batch, {.step = 5, .piece = piece}).nats.sum().backward();
      Tensors gradients;
      for (const auto& item : model->named_parameters()) {
        const at::Tensor gradient = item.value().grad().contiguous();
        group.sum(gradient);
        gradients[item.key()] = gradient;
      }
      return gradients;
    };
    OneRank alone;
    const Tensors whole = gradients_of({.tokens = tokens}, nullptr, alone);
    // Even ones; of one token, and shorter than a window; whose last is of one token.
    for (const Ends& ends : {Ends{31, 61}, Ends{1, 8, 61}, Ends{40, 47, 60, 61}}) {
      const int pieces = static_cast<int>(ends.size());
      as_ranks(pieces, [&](const Group& group) {
        RankRows rows(*group, pieces);
        SequencePiece piece{.exchange = &rows, .ends = ends};
        const std::int64_t begin = piece.begin();
        if (begin > 0) piece.before = tokens.select(1, begin - 1).contiguous();
        const Tensors split =
            gradients_of({.tokens = tokens.narrow(1, begin, piece.end() - begin).contiguous()}, &piece, *group);
        for (const auto& [name, gradient] : whole) {
          EXPECT_LT(relative_difference(split.at(name), gradient), 1e-10) << each.name << ": " << name;
        }
      });
    }
  }
}

TEST(SplitLearners, OfTwoPiecesAndTwoSharesOfTheBatchLearnWhatOneWould) {
  ExperimentConfig config = routed(RoutingSelection::threshold, true);
  config.train.batch_size = 3;
  config.train.accumulation = 2;
  const Learnt one = learn(config, 1, 1).front();
  const std::vector<Learnt> all = learn(config, 4, 2);
  for (const auto& [name, gradient] : one.gradients) {
    EXPECT_LT(relative_difference(all[3].gradients.at(name), gradient), 1e-5) << name;
  }
  EXPECT_NEAR(all[3].results.back().loss_nats, one.results.back().loss_nats, 1e-4);
}

TEST(SplitLearners, GiveTheSameBitsEveryTime) {
  const ExperimentConfig config = routed(RoutingSelection::threshold, true);
  const std::vector<Learnt> first = learn(config, 3, 3);
  const std::vector<Learnt> second = learn(config, 3, 3);
  for (const auto& [name, value] : first[0].tensors) EXPECT_TRUE(same_bits(value, second[0].tensors.at(name))) << name;
}

TEST(SplitLearners, NeedAMultipleOfTheirRanksAndATokenForEach) {
  const auto reason_of = [](ExperimentConfig config, int ranks, int sequence_ranks) {
    config.train.sequence_ranks = sequence_ranks;
    std::vector<std::string> reasons(static_cast<std::size_t>(ranks));
    as_ranks(ranks, [&](const Group& group) {
      reasons[static_cast<std::size_t>(group->rank())] =
          message_of<ConfigError>([&] { const Learner learner(config, {.group = group}); });
    });
    EXPECT_EQ(reasons.front(), reasons.back());
    return reasons.front();
  };
  const ExperimentConfig config = routed(RoutingSelection::threshold, true);
  EXPECT_NE(reason_of(config, 1, 2).find("train.sequence_ranks is 2"), std::string::npos);
  EXPECT_NE(reason_of(config, 3, 2).find("there are 3 ranks; start a multiple of them"), std::string::npos);
  ExperimentConfig one_row = config;
  one_row.train.batch_size = 1;
  EXPECT_NE(reason_of(one_row, 4, 2).find("of which 2 share a sequence"), std::string::npos);
}

}  // namespace
}  // namespace routing::split_learning_test
