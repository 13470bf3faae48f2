// What a run does because there are several ranks, without the rest of the run.
#include "routing/training/training_ranks.h"

#include "distributed/rank_threads.h"
#include "routing/core/files.h"
#include "routing/distributed/state_check.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace routing::training_ranks_test {
namespace {

// A batch whose rows are the ranks'.
std::vector<TokenBatch> rows_of(const ExperimentConfig& config, const RankGroup& group) {
  const at::Tensor tokens = random_tokens(group.size(), config.train.sequence_length, config.model.vocab_size, 1);
  return {{.tokens = tokens.narrow(0, group.rank(), 1).contiguous(),
           .sample_ids = at::full({1}, group.rank(), at::kLong),
           .all_targets = tokens.numel()}};
}

TEST(TrainingRanks, VotesOfAllAreAddedUp) {
  const ExperimentConfig config = small_experiment();
  as_ranks(2, [&](const Group& group) {
    Learner learner(config, {.group = group});
    TrainingRanks ranks(learner, {});
    const bool second = group->rank() == 1;
    const TrainingRanks::Votes all = ranks.vote({.stop = second, .time_is_up = false});
    EXPECT_TRUE(all.stop && !all.time_is_up && all.any());
    EXPECT_FALSE(ranks.vote({}).any());
    // During a step.
    const std::int64_t before = group->counts().bytes_sent;
    ranks.begin_step({.stop = false, .time_is_up = !second});
    learner.step(rows_of(config, *group));
    ranks.end_step();
    EXPECT_TRUE(ranks.votes_of_step().time_is_up && !ranks.votes_of_step().stop);
    EXPECT_EQ(ranks.counts().bytes_sent, group->counts().bytes_sent - before);
  });
}

TEST(TrainingRanks, EachKeepsALogAndATraceOfItsOwn) {
  const ExperimentConfig config = small_experiment();
  const TemporaryFolder run;
  as_ranks(2, [&](const Group& group) {
    Learner learner(config, {.group = group});
    TrainingRanks ranks(learner, {.check_every = 1, .trace_steps = 1});
    ranks.begin(config, run.path(), 0);
    EXPECT_EQ(ranks.facts().ranks, 2);
    EXPECT_EQ(ranks.facts().rows, 1);
    EXPECT_EQ(ranks.facts().all_rows, 2);
    StepClock clock;
    ranks.begin_step({});
    const StepResult result = learner.step(rows_of(config, *group));
    ranks.end_step();
    clock.end_step(result.tokens);
    const std::optional<RankTraffic> traffic = ranks.log_step(1, result.loss_nats, clock);
    ASSERT_TRUE(traffic);
    EXPECT_EQ(traffic->ranks, 2);
    EXPECT_GT(traffic->bytes_sent_per_step, 0.0);
    EXPECT_NE(group->trace(), nullptr);
    ranks.finish_step(1, clock);
    EXPECT_EQ(group->trace(), nullptr) << "one step was asked for";
    ranks.note("that is all");
    const std::string log = read_file(rank_log_path(run.path(), group->rank()));
    EXPECT_NE(log.find("rank " + std::to_string(group->rank()) + " of 2 on "), std::string::npos);
    EXPECT_NE(log.find(" step 1: loss "), std::string::npos);
    EXPECT_NE(log.find(" that is all\n"), std::string::npos);
    EXPECT_TRUE(
        std::filesystem::exists(run.path() / "ranks" / ("trace-rank-000" + std::to_string(group->rank()) + ".json")));
    const at::NoGradGuard no_gradient;
    if (group->rank() == 1) learner.model().named_parameters()["output_bias"].fill_(7.0);
    EXPECT_THROW(ranks.check_models(1), DriftError);
  });
}

TEST(TrainingRanks, WhatIsNotOfTheSameRunIsNamed) {
  as_ranks(2, [&](const Group& group) {
    ExperimentConfig config = small_experiment();
    config.data.path = std::to_string(group->rank());
    require_same_everywhere(*group, config, {});
    config.train.seed += static_cast<std::uint64_t>(group->rank());
    EXPECT_NE(message_of<ConfigError>([&] { require_same_everywhere(*group, config, {}); }).find("train.seed"),
              std::string::npos);
  });
}

TEST(TrainingRanks, OfOneRankNothingIsWrittenAndItsVotesAreThoseOfAll) {
  const TemporaryFolder run;
  Learner learner(small_experiment());
  TrainingRanks ranks(learner, {});
  ranks.begin(small_experiment(), run.path(), 0);
  EXPECT_EQ(ranks.facts().rows, ranks.facts().all_rows);
  EXPECT_TRUE(ranks.vote({.stop = true}).stop);
  EXPECT_FALSE(ranks.log_step(1, 2.0, StepClock()).has_value());
  ranks.note("to nobody");
  ranks.finish_step(1, StepClock());
  ranks.end_trace();
  EXPECT_EQ(run.num_entries(), 0U);
}

}  // namespace
}  // namespace routing::training_ranks_test
