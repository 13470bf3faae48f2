// Ranks that learn together: the same bits on all of them, and what one rank would have learnt.
#include "distributed/rank_threads.h"
#include "routing/data/batches.h"
#include "routing/distributed/watch/step_trace.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace routing::learning_ranks_test {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

// The batches of a step; of each, the rows of one rank.
std::vector<TokenBatch> batches_of(const ExperimentConfig& config, std::int64_t step, const RankGroup& group) {
  const TrainConfig& train = config.train;
  const RowRange rows = rows_of_rank(train.batch_size, group.rank(), group.size());
  std::vector<TokenBatch> batches;
  for (std::int64_t i = 0; i < train.accumulation; ++i) {
    const std::int64_t index = step * train.accumulation + i;
    const at::Tensor tokens = random_tokens(train.batch_size, train.sequence_length, config.model.vocab_size,
                                            static_cast<std::uint64_t>(index));
    batches.push_back({.tokens = tokens.narrow(0, rows.first, rows.count).contiguous(),
                       .sample_ids = at::arange(rows.count, at::kLong) + rows.first + index * train.batch_size,
                       .index = index,
                       .all_targets = tokens.numel()});
  }
  return batches;
}

Tensors copies(const Tensors& tensors) {
  Tensors result;
  for (const auto& [name, value] : tensors) result[name] = value.detach().clone();
  return result;
}

void expect_same_bits(const Tensors& a, const Tensors& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [name, value] : a) EXPECT_TRUE(same_bits(value, b.at(name))) << what << ": " << name;
}

// What a rank has after each step.
struct Learnt {
  std::vector<StepResult> results;
  std::vector<Tensors> tensors;
  Tensors optimizer;
  std::int64_t optimizer_bytes = 0;
};

struct HowToLearn {
  int ranks = 1;
  int steps = 4;
  bool shard = false;
};

std::vector<Learnt> learn(const ExperimentConfig& config, const HowToLearn& how) {
  std::vector<Learnt> learnt(static_cast<std::size_t>(how.ranks));
  as_ranks(how.ranks, [&](const Group& group) {
    Learner learner(config, {.group = group, .shard_optimizer = how.shard});
    Learnt& own = learnt[static_cast<std::size_t>(group->rank())];
    for (int step = 0; step < how.steps; ++step) {
      own.results.push_back(learner.step(batches_of(config, step, *group)));
      own.tensors.push_back(copies(named_tensors(learner.model())));
    }
    own.optimizer = copies(learner.optimizer_state());
    own.optimizer_bytes = learner.optimizer_bytes();
  });
  return learnt;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

ExperimentConfig five_rows(RoutingSelection selection, CentroidInit init) {
  ExperimentConfig config = small_experiment();
  config.routing.routing().selection = selection;
  config.routing.routing().init = init;
  config.model.residual_dropout = 0.1;
  config.model.attention_dropout = 0.1;
  config.train.batch_size = 5;
  config.train.accumulation = 2;
  return config;
}

struct RoutingCase {
  std::string name;
  ExperimentConfig config;
};

class EveryRouting : public testing::TestWithParam<RoutingCase> {};

TEST_P(EveryRouting, RanksHoldTheSameBitsAfterEveryStepAndLearnWhatOneWould) {
  const ExperimentConfig& config = GetParam().config;
  const Learnt one = learn(config, {.ranks = 1, .steps = 10}).front();
  for (const int ranks : {2, 3}) {
    const std::vector<Learnt> all = learn(config, {.ranks = ranks, .steps = 10});
    for (std::size_t step = 0; step < 10; ++step) {
      for (std::size_t rank = 1; rank < all.size(); ++rank) {
        expect_same_bits(all[0].tensors[step], all[rank].tensors[step], "step " + std::to_string(step));
        EXPECT_EQ(all[0].results[step].loss_nats, all[rank].results[step].loss_nats);
        EXPECT_EQ(all[0].results[step].gradient_norm, all[rank].results[step].gradient_norm);
      }
      EXPECT_NEAR(all[0].results[step].loss_nats, one.results[step].loss_nats, 1e-4) << ranks << ", step " << step;
      EXPECT_EQ(all[0].results[step].tokens, 2 * 5 * 32);
    }
    const StepResult& first = all[0].results[0];
    EXPECT_NEAR(first.loss_nats, one.results[0].loss_nats, 1e-12);
    EXPECT_NEAR(first.auxiliary_loss, one.results[0].auxiliary_loss, 1e-6 * one.results[0].auxiliary_loss);
    EXPECT_NEAR(first.gradient_norm, one.results[0].gradient_norm, 1e-5 * one.results[0].gradient_norm);
    EXPECT_EQ(first.routing[0].statistics.occupancy, one.results[0].routing[0].statistics.occupancy);
    int exact = 0;
    for (const auto& [name, value] : one.tensors[0]) {
      const at::Tensor& other = all[0].tensors[0].at(name);
      // Counts are whole numbers, and the first thresholds come from a sample: nothing is rounded differently.
      if (ends_with(name, ".counts") || ends_with(name, ".tau") || ends_with(name, ".empty_updates")) {
        EXPECT_TRUE(same_bits(value, other)) << name;
        ++exact;
      } else {
        EXPECT_TRUE(at::allclose(value.to(at::kDouble), other.to(at::kDouble), 1e-4, 1e-5)) << name;
      }
    }
    EXPECT_EQ(exact, 2 * 3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EveryRouting,
    testing::Values(RoutingCase{"threshold", five_rows(RoutingSelection::threshold, CentroidInit::gaussian)},
                    RoutingCase{"threshold_from_kmeans",
                                five_rows(RoutingSelection::threshold, CentroidInit::first_batch_kmeans)},
                    RoutingCase{"nearest", five_rows(RoutingSelection::nearest, CentroidInit::gaussian)},
                    RoutingCase{"bands", in_bands(five_rows(RoutingSelection::threshold, CentroidInit::gaussian))},
                    RoutingCase{"balanced", five_rows(RoutingSelection::balanced, CentroidInit::gaussian)}),
    [](const auto& item) { return item.param.name; });

// Ranks have different numbers of targets: a mean of means would be wrong.
// Streams keep their memory wherever they are; checkpoints have those of all ranks, for any number of ranks to go on.
TEST(LearningRanks, TheMemoryOfAllStreamsIsThatOfOneRankAndGoesBackToAnyNumberOfRanks) {
  ExperimentConfig config = five_rows(RoutingSelection::threshold, CentroidInit::gaussian);
  config.train.order = DataOrder::contiguous;
  config.memory.length = 40;
  config.memory.compressed = 8;
  const auto learn_on = [&](int ranks, const Tensors& model, const Tensors& optimizer, const Tensors& memory) {
    std::vector<std::pair<Tensors, Tensors>> ends(static_cast<std::size_t>(ranks));
    Tensors moments;
    as_ranks(ranks, [&](const Group& group) {
      Learner learner(config, {.group = group});
      const bool resumes = !model.empty();
      if (resumes) {
        learner.restore(model, optimizer, 2, "here");
        learner.restore_memory(memory, "here");
      }
      for (int step = resumes ? 2 : 0; step < (resumes ? 4 : 2); ++step) learner.step(batches_of(config, step, *group));
      ends[static_cast<std::size_t>(group->rank())] = {copies(named_tensors(learner.model())),
                                                       copies(learner.memory_state())};
      if (group->leads()) moments = copies(learner.optimizer_state());
    });
    for (const auto& [weights, streams] : ends) {
      expect_same_bits(ends.front().first, weights, "weights");
      expect_same_bits(ends.front().second, streams, "memory");
    }
    return std::tuple(ends.front().first, moments, ends.front().second);
  };
  const auto [model, optimizer, memory] = learn_on(1, {}, {}, {});
  EXPECT_EQ(memory.at("layer0").sizes(), at::IntArrayRef({5, 40, 16}));
  EXPECT_EQ(memory.at("compressed.layer1").sizes(), at::IntArrayRef({5, 8, 16}));
  const auto [one, one_moments, one_memory] = learn_on(1, model, optimizer, memory);
  for (const int ranks : {2, 3}) {
    const auto [all, moments, all_memory] = learn_on(ranks, model, optimizer, memory);
    for (const auto& [name, value] : one_memory) {
      EXPECT_TRUE(at::allclose(value.to(at::kDouble), all_memory.at(name).to(at::kDouble), 1e-3, 1e-4)) << name;
    }
    EXPECT_TRUE(at::equal(one_memory.at("last_tokens"), all_memory.at("last_tokens")));
  }
}

TEST(LearningRanks, PaddedTargetsWeighTheSameOnAnyRank) {
  ExperimentConfig config = small_pairs_experiment();
  config.data.format = DataFormat::copy;
  config.train.sequence_length = 25;
  config.train.batch_size = 5;
  const SequencePairs pairs({.vocab_size = 40, .shortest = 3, .longest = 24});
  const TokenBatch whole = token_batch(pairs.batch("train", 0, 5));
  ASSERT_TRUE(whole.valid.defined());
  std::vector<StepResult> firsts;
  for (const int ranks : {1, 2, 3}) {
    std::vector<StepResult> results(static_cast<std::size_t>(ranks));
    as_ranks(ranks, [&](const Group& group) {
      const RowRange rows = rows_of_rank(5, group->rank(), ranks);
      const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(0, rows.first, rows.count).contiguous(); };
      Learner learner(config, {.group = group});
      results[static_cast<std::size_t>(group->rank())] =
          learner.step(std::vector{TokenBatch{.tokens = part(whole.tokens),
                                              .sample_ids = part(at::arange(5, at::kLong)),
                                              .valid = part(whole.valid),
                                              .source = part(whole.source),
                                              .source_valid = part(whole.source_valid),
                                              .all_targets = whole.valid.sum().item<std::int64_t>()}});
    });
    for (const StepResult& result : results) EXPECT_EQ(result.loss_nats, results[0].loss_nats);
    firsts.push_back(results[0]);
  }
  for (const StepResult& result : firsts) {
    EXPECT_EQ(result.tokens, whole.valid.sum().item<std::int64_t>());
    EXPECT_NEAR(result.loss_nats, firsts[0].loss_nats, 1e-12);
    EXPECT_NEAR(result.gradient_norm, firsts[0].gradient_norm, 1e-5 * firsts[0].gradient_norm);
  }
}

// The penalty is a mean over targets like the loss, and all ranks clamp alike.
TEST(LearningRanks, LearnedSpansAreThoseOfOneRank) {
  ExperimentConfig config = small_experiment("span");
  config.train.batch_size = 5;
  config.train.accumulation = 2;
  config.train.learning_rate = 0.1;  // far enough to be clamped
  std::get<SpanPattern>(config.patterns.span.pattern).penalty = 0.05;
  const Learnt one = learn(config, {.ranks = 1, .steps = 6}).front();
  for (const int ranks : {2, 3}) {
    const std::vector<Learnt> all = learn(config, {.ranks = ranks, .steps = 6});
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      expect_same_bits(all[0].tensors.back(), all[rank].tensors.back(), "rank " + std::to_string(rank));
    }
    const StepResult& first = all[0].results[0];
    EXPECT_NEAR(first.auxiliary_loss, one.results[0].auxiliary_loss, 1e-6 * one.results[0].auxiliary_loss);
    ASSERT_EQ(first.spans.size(), 4U) << "two heads in each of two layers";
    for (std::size_t head = 0; head < 4; ++head) {
      EXPECT_NEAR(first.spans[head].span, one.results[0].spans[head].span, 1e-3) << head;
      EXPECT_EQ(all[0].results.back().spans[head].span, 0.0) << "six steps of 0.1 are more than 0.3 of the limit";
    }
  }
}

TEST(LearningRanks, AShardedOptimiserMakesTheSameBitsAndKeepsEveryMomentOnce) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adafactor}) {
    ExperimentConfig config = small_experiment();
    config.train.optimizer = kind;
    config.train.weight_decay = 1e-3;
    config.train.batch_size = 3;
    for (const int ranks : {1, 2, 3}) {
      const std::vector<Learnt> whole = learn(config, {.ranks = ranks});
      const std::vector<Learnt> shards = learn(config, {.ranks = ranks, .shard = true});
      std::int64_t bytes = 0;
      std::map<std::string, int> keepers;
      for (std::size_t rank = 0; rank < shards.size(); ++rank) {
        for (std::size_t step = 0; step < 4; ++step) {
          expect_same_bits(whole[0].tensors[step], shards[rank].tensors[step], "sharded");
        }
        bytes += shards[rank].optimizer_bytes;
        if (rank == 0) continue;
        for (const auto& [name, value] : shards[rank].optimizer) ++keepers[name];
        EXPECT_LT(shards[rank].optimizer.size(), whole[0].optimizer.size()) << "a share of it";
      }
      expect_same_bits(whole[0].optimizer, shards[0].optimizer, "the state on rank 0");
      // "steps", 8 bytes, is everybody's.
      EXPECT_EQ(bytes, whole[0].optimizer_bytes + 8 * (ranks - 1));
      for (const auto& [name, count] : keepers) EXPECT_EQ(count, name == "steps" ? ranks - 1 : 1) << name;
    }
  }
}

TEST(LearningRanks, AShardedStateComesBackToTheRanksThatKeepIt) {
  ExperimentConfig config = small_experiment();
  config.train.batch_size = 3;
  as_ranks(2, [&](const Group& group) {
    Learner learner(config, {.group = group, .shard_optimizer = true});
    for (int step = 0; step < 2; ++step) learner.step(batches_of(config, step, *group));
    const Tensors model = copies(named_tensors(learner.model()));
    const Tensors saved = copies(learner.optimizer_state());
    Learner restored(config, {.group = group, .shard_optimizer = true});
    const Tensors own =
        broadcast_tensors(*group, saved, [&](const std::string& n) { return restored.keeps_moment(n); });
    restored.restore(model, own, 2, "test");
    restored.set_bucket_order(learner.bucket_order());
    for (int step = 2; step < 4; ++step) {
      learner.step(batches_of(config, step, *group));
      restored.step(batches_of(config, step, *group));
    }
    expect_same_bits(named_tensors(learner.model()), named_tensors(restored.model()), "restored");
  });
}

// Large enough for several buckets: the embedding alone fills one.
ExperimentConfig several_buckets() {
  ExperimentConfig config = small_experiment();
  config.model.vocab_size = 3000;
  config.model.width = 96;
  config.train.sequence_length = 16;
  config.train.batch_size = 3;
  return config;
}

TEST(GradientReducer, GivenItsOrderBackARestoredRunHasTheBitsOfOneWithoutABreak) {
  const ExperimentConfig config = several_buckets();
  std::vector<BucketOrder> orders(3);
  as_ranks(3, [&](const Group& group) {
    Learner whole(config, {.group = group});
    EXPECT_TRUE(whole.bucket_order().empty());
    for (int step = 0; step < 2; ++step) whole.step(batches_of(config, step, *group));
    const BucketOrder order = whole.bucket_order();
    orders[static_cast<std::size_t>(group->rank())] = order;
    EXPECT_GE(order.size(), 2U);
    std::multiset<std::string> named;
    for (const auto& bucket : order) named.insert(bucket.begin(), bucket.end());
    std::multiset<std::string> parameters;
    for (const auto& item : whole.model().named_parameters()) parameters.insert(item.key());
    EXPECT_EQ(named, parameters) << "every parameter once";

    Learner restored(config, {.group = group});
    restored.restore(copies(named_tensors(whole.model())), copies(whole.optimizer_state()), 2, "test");
    restored.set_bucket_order(order);
    EXPECT_EQ(restored.bucket_order(), order);
    for (int step = 2; step < 5; ++step) {
      const StepResult expected = whole.step(batches_of(config, step, *group));
      const StepResult result = restored.step(batches_of(config, step, *group));
      EXPECT_EQ(result.gradient_norm, expected.gradient_norm);
      expect_same_bits(named_tensors(whole.model()), named_tensors(restored.model()), "step " + std::to_string(step));
    }
    EXPECT_EQ(whole.bucket_order(), order);
    EXPECT_EQ(restored.bucket_order(), order);
  });
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
}

// Not the order in which gradients come: it is kept all the same.
TEST(GradientReducer, AnyOrderThatIsGivenStays) {
  const ExperimentConfig config = several_buckets();
  std::vector<Tensors> learnt(2);
  as_ranks(2, [&](const Group& group) {
    Learner first(config, {.group = group});
    first.step(batches_of(config, 0, *group));
    BucketOrder order = first.bucket_order();
    std::reverse(order.begin(), order.end());
    for (auto& bucket : order) std::reverse(bucket.begin(), bucket.end());
    ASSERT_NE(order, first.bucket_order());
    Learner learner(config, {.group = group});
    learner.set_bucket_order(order);
    for (int step = 0; step < 4; ++step) {
      StepTrace trace(group->rank());
      group->set_trace(&trace);
      learner.step(batches_of(config, step, *group));
      EXPECT_EQ(learner.bucket_order(), order);
      std::map<std::string, std::int64_t> sent;
      for (const StepTrace::Event& event : trace.events()) {
        if (event.lane == StepTrace::Lane::network) sent[event.name] = event.bytes;
      }
      ASSERT_EQ(sent.size(), order.size()) << "step " << step;
      std::int64_t expected = 0;
      for (const std::string& name : order[0]) {
        expected += static_cast<std::int64_t>(learner.model().named_parameters()[name].nbytes());
      }
      EXPECT_EQ(sent.at("sum of bucket 0"), expected) << "step " << step;
      group->set_trace(nullptr);
    }
    learnt[static_cast<std::size_t>(group->rank())] = copies(named_tensors(learner.model()));
  });
  expect_same_bits(learnt[0], learnt[1], "both ranks");
}

TEST(GradientReducer, AnOrderOfOtherParametersIsRefused) {
  const ExperimentConfig config = small_experiment();
  as_ranks(2, [&](const Group& group) {
    BucketOrder order(1);
    for (const auto& item : Learner(config).model().named_parameters()) order[0].push_back(item.key());
    const auto refused = [&](const BucketOrder& wrong) {
      Learner learner(config, {.group = group});
      learner.set_bucket_order(wrong);
      return message_of<InputError>([&] { learner.step(batches_of(config, 0, *group)); });
    };
    BucketOrder unknown = order;
    unknown[0][3] = "no_such_weight";
    EXPECT_NE(refused(unknown).find("names \"no_such_weight\""), std::string::npos);
    BucketOrder twice = order;
    twice.push_back({order[0][0]});
    EXPECT_NE(refused(twice).find("names \"" + order[0][0] + "\", which is not a parameter or comes twice"),
              std::string::npos);
    BucketOrder too_few = order;
    too_few[0].pop_back();
    const std::string counts = "names " + std::to_string(order[0].size() - 1) + " parameters, but there are " +
                               std::to_string(order[0].size());
    EXPECT_NE(refused(too_few).find(counts), std::string::npos);
  });
}

// Beside the buckets only totals travel; those of two more batches are two counts and two sums more.
TEST(LearningRanks, OnlyTheLastOfAccumulatedBatchesCommunicates) {
  std::vector<CommunicationCounts> spent;
  std::int64_t parameter_bytes = 0;
  for (const std::int64_t accumulation : {1, 3}) {
    ExperimentConfig config = small_experiment();
    config.train.accumulation = accumulation;
    CommunicationCounts& counts = spent.emplace_back();
    as_ranks(2, [&](const Group& group) {
      Learner learner(config, {.group = group});
      learner.step(batches_of(config, 0, *group));
      const CommunicationCounts before = group->counts();
      learner.step(batches_of(config, 1, *group));
      if (group->rank() != 0) return;
      counts.collectives = group->counts().collectives - before.collectives;
      counts.bytes_sent = group->counts().bytes_sent - before.bytes_sent;
      parameter_bytes = 4 * learner.model().num_parameters();
    });
  }
  EXPECT_EQ(spent[0].collectives, 3) << "one bucket, counts, sums";
  EXPECT_EQ(spent[1].collectives, 3);
  EXPECT_GT(spent[0].bytes_sent, parameter_bytes);
  EXPECT_EQ(spent[1].bytes_sent - spent[0].bytes_sent, 2 * (8 + 8));
}

TEST(LearningRanks, AStepThatIsNotFiniteOnOneRankIsGivenUpByAllWhichCanGoOn) {
  const ExperimentConfig config = small_experiment();
  as_ranks(2, [&](const Group& group) {
    Learner learner(config, {.group = group});
    learner.step(batches_of(config, 0, *group));
    const Tensors before = copies(named_tensors(learner.model()));
    const at::NoGradGuard no_gradient;
    at::Tensor bias = learner.model().named_parameters()["output_bias"];
    if (group->rank() == 1) bias[3] = std::numeric_limits<float>::quiet_NaN();
    {
      const at::AutoGradMode with_gradient(true);
      EXPECT_NE(message_of<NotFiniteError>([&] { learner.step(batches_of(config, 1, *group)); }).find("step 2"),
                std::string::npos);
    }
    bias.copy_(before.at("output_bias"));
    expect_same_bits(named_tensors(learner.model()), before, "given up");
    const at::AutoGradMode with_gradient(true);
    learner.step(batches_of(config, 1, *group));
    const std::string hash = std::to_string(bias.sum().item<double>());
    EXPECT_EQ(group->gather_texts(hash), std::vector<std::string>(2, hash));
    EXPECT_EQ(learner.steps_done(), 2);
  });
}

TEST(LearningRanks, TooFewRowsAndWrongTargetsAreRefused) {
  const ExperimentConfig config = small_experiment();
  as_ranks(3, [&](const Group& group) {
    const std::string message = message_of<ConfigError>([&] { Learner(config, {.group = group}); });
    EXPECT_NE(message.find("train.batch_size is 2"), std::string::npos);
    EXPECT_NE(message.find("there are 3 ranks"), std::string::npos);
  });
  as_ranks(2, [&](const Group& group) {
    Learner learner(config, {.group = group});
    std::vector<TokenBatch> batches = batches_of(config, 0, *group);
    batches[0].all_targets = 99;
    EXPECT_EQ(message_of<InputError>([&] { learner.step(batches); }),
              "step 1: batch 0 has 99 targets, but the ranks together saw 64");
  });
}

TEST(LearningRanks, ATraceShowsTheWorkAndEveryBucketOnTheNetwork) {
  const ExperimentConfig config = several_buckets();
  as_ranks(2, [&](const Group& group) {
    StepTrace trace(group->rank());
    Learner learner(config, {.group = group});
    learner.step(batches_of(config, 0, *group));
    group->set_trace(&trace);
    learner.step(batches_of(config, 1, *group));
    group->set_trace(nullptr);
    learner.step(batches_of(config, 2, *group));
    std::multiset<std::string> work;
    std::int64_t bytes = 0;
    std::size_t buckets = 0;
    for (const StepTrace::Event& event : trace.events()) {
      EXPECT_EQ(event.step, 2);
      EXPECT_LE(event.begin, event.end);
      if (event.lane == StepTrace::Lane::network) {
        bytes += event.bytes;
        ++buckets;
      } else {
        work.insert(event.name);
      }
    }
    EXPECT_EQ(work, (std::multiset<std::string>{"forward", "backward", "sums of routing", "optimiser and centroids"}));
    EXPECT_EQ(buckets, learner.bucket_order().size());
    EXPECT_EQ(bytes, 4 * learner.model().num_parameters());
  });
}

}  // namespace
}  // namespace routing::learning_ranks_test
