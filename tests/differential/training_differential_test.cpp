// Random configurations, each computed in two ways that must agree to the bit: with one thread and three, without a
// break and resumed, in one pass and token by token. And with one rank and two, within rounding.
#include "differential/random_experiment.h"
#include "differential/seeds.h"
#include "distributed/rank_threads.h"
#include "routing/core/parallel.h"
#include "routing/data/batches.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"
#include "training/random_batches.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace routing::training_differential_test {
namespace {

using differential::for_each_seed;
using differential::random_experiment;
using differential::RandomExperiment;
using Tensors = std::map<std::string, at::Tensor>;

constexpr std::int64_t kSteps = 3;

void expect_same_bits(const Tensors& a, const Tensors& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [name, value] : a) ASSERT_TRUE(same_bits(value, b.at(name))) << what << ": " << name;
}

void set_all_threads(int threads) {
  set_num_threads(threads);
  at::set_num_threads(threads);
}

// The threads of the program while a test sets others.
class ThreadsAsTheyWere {
 public:
  ThreadsAsTheyWere() = default;
  ~ThreadsAsTheyWere() { set_all_threads(before_); }
  ThreadsAsTheyWere(const ThreadsAsTheyWere&) = delete;
  ThreadsAsTheyWere& operator=(const ThreadsAsTheyWere&) = delete;

 private:
  int before_ = num_threads();
};

Tensors train(const ExperimentConfig& config, int threads) {
  set_all_threads(threads);
  Learner learner(config);
  for (std::int64_t step = 0; step < kSteps; ++step) learner.step(batches_of(config, step));
  return copies(named_tensors(learner.model()));
}

TEST(TrainingDifferential, ThreeThreadsAndAResumedRunHaveTheBitsOfOneThreadWithoutABreak) {
  const ThreadsAsTheyWere threads;
  for_each_seed(25, [](std::uint64_t seed) {
    const RandomExperiment drawn = random_experiment(seed);
    SCOPED_TRACE(drawn.settings);
    const Tensors one = train(drawn.config, 1);
    expect_same_bits(one, train(drawn.config, 3), "three threads");
    Learner first(drawn.config);
    first.step(batches_of(drawn.config, 0));
    Learner resumed(drawn.config);
    resumed.restore(copies(named_tensors(first.model())), copies(first.optimizer_state()), 1, "test");
    for (std::int64_t step = 1; step < kSteps; ++step) resumed.step(batches_of(drawn.config, step));
    expect_same_bits(one, named_tensors(resumed.model()), "resumed after the first step");
  });
}

TEST(TrainingDifferential, TokenByTokenAndInPiecesHaveTheLogitsOfTheWholePass) {
  const ThreadsAsTheyWere threads;
  for_each_seed(40, [](std::uint64_t seed) {
    const RandomExperiment drawn = random_experiment(seed);
    SCOPED_TRACE(drawn.settings);
    set_all_threads(1 + static_cast<int>(seed % 3));
    Learner learner(drawn.config);
    // Routed heads have thresholds, and no two rows are alike any more.
    learner.step(batches_of(drawn.config, 0));
    SequenceModel& model = learner.model();
    model.eval();
    if (!model.reason_against_cache().empty()) return;
    const at::NoGradGuard no_gradient;
    const std::int64_t length = drawn.config.train.sequence_length;
    const at::Tensor tokens = random_tokens(2, length, drawn.config.model.vocab_size, seed);
    const at::Tensor previous = tokens.roll(1, 1);
    const MatmulPrecision precision = learner.precision();
    const at::Tensor expected = model.logits({.tokens = tokens}, {.precision = precision});
    differential::Draws draws(seed, "pieces");
    for (const std::int64_t longest : {std::int64_t{1}, std::int64_t{70}}) {
      ModelCache cache = model.make_cache(precision);
      const std::vector<std::int64_t> sequences{cache.add_sequence(), cache.add_sequence()};
      for (std::int64_t position = 0; position < length;) {
        const std::int64_t count = std::min(draws.between(1, longest), length - position);
        const at::Tensor rows =
            model.logits_cached(previous.narrow(1, position, count), cache, sequences, {.precision = precision});
        const at::Tensor wanted = expected.narrow(1, position, count);
        ASSERT_TRUE(at::equal(rows, wanted)) << "positions " << position << " to " << position + count - 1 << " of "
                                             << length << ", by at most " << (rows - wanted).abs().max().item<double>();
        position += count;
      }
    }
  });
}

// The batches of a step, of each the rows of one rank.
std::vector<TokenBatch> batches_of_rank(const ExperimentConfig& config, std::int64_t step, const RankGroup& group) {
  std::vector<TokenBatch> batches = batches_of(config, step);
  const RowRange rows = rows_of_rank(config.train.batch_size, group.rank(), group.size());
  for (TokenBatch& batch : batches) {
    batch.all_targets = batch.tokens.numel();
    batch.tokens = batch.tokens.narrow(0, rows.first, rows.count).contiguous();
    batch.sample_ids = batch.sample_ids.narrow(0, rows.first, rows.count).contiguous();
  }
  return batches;
}

TEST(TrainingDifferential, TwoRanksHaveTheSameBitsAndLearnWhatOneWould) {
  for_each_seed(10, [](std::uint64_t seed) {
    const RandomExperiment drawn = random_experiment(seed);
    SCOPED_TRACE(drawn.settings);
    if (drawn.config.train.batch_size < 2) return;
    Learner alone(drawn.config);
    std::vector<double> expected;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      expected.push_back(alone.step(batches_of(drawn.config, step)).loss_nats);
    }
    std::vector<std::vector<double>> losses(2);
    std::vector<Tensors> tensors(2);
    as_ranks(2, [&](const auto& group) {
      Learner learner(drawn.config, {.group = group});
      const auto rank = static_cast<std::size_t>(group->rank());
      for (std::int64_t step = 0; step < kSteps; ++step) {
        losses[rank].push_back(learner.step(batches_of_rank(drawn.config, step, *group)).loss_nats);
      }
      tensors[rank] = copies(named_tensors(learner.model()));
    });
    expect_same_bits(tensors[0], tensors[1], "ranks");
    EXPECT_EQ(losses[0], losses[1]);
    // Rows do not know of each other, so the first loss has the bits; later ones differ by the order of sums.
    ASSERT_EQ(losses[0].size(), expected.size());
    EXPECT_NEAR(losses[0][0], expected[0], 1e-12 * std::abs(expected[0]));
    EXPECT_NEAR(losses[0].back(), expected.back(), 2e-2 * std::abs(expected.back()));
  });
}

}  // namespace
}  // namespace routing::training_differential_test
