// Trained tasks: the sources are what they say, the attention is the audited one, and the leak of balanced routing is
// learned while causal selections stay at the floor. Some seconds each.
#include "lab/leak/leak_tasks.h"

#include "routing/config/presets.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace routing::leak_tasks_test {
namespace {

TEST(LeakTasks, FloorsAreTheEntropiesOfTwoAndFifteenEquallyLikelySymbols) {
  EXPECT_NEAR(entropy_floor(LeakTask::coin_flips), 0.693147, 1e-6);
  EXPECT_NEAR(entropy_floor(LeakTask::secret), 2.708050, 1e-6);
  EXPECT_EQ(to_string(LeakTask::coin_flips), "coin flips");
  EXPECT_EQ(to_string(LeakTask::secret), "secret");
}

TEST(LeakTasks, TheSecretStandsBehindTheOnlyMarkerAndFloodsTheSecondHalf) {
  constexpr std::int64_t kRows = 3000;
  const LeakTaskOptions options{.task = LeakTask::secret, .sizes = {.tokens = 32}};
  const LeakTaskBatch batch = leak_task_batch(options, LeakTaskPart::training, 0, kRows);
  ASSERT_EQ(batch.scored.size(), static_cast<std::size_t>(kRows));
  const auto tokens = batch.tokens.accessor<std::int64_t, 2>();
  std::map<std::int64_t, int> secrets;
  std::map<std::int64_t, int> copies_before;  // of the secret among the symbols before the marker, by count
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t place = batch.scored[static_cast<std::size_t>(row)];
    ASSERT_GE(place, 8);
    ASSERT_LT(place, 16);
    const std::int64_t secret = tokens[row][place];
    ASSERT_EQ(tokens[row][place - 1], 16);
    ++secrets[secret];
    int copies = 0;
    for (std::int64_t i = 0; i < 32; ++i) {
      ASSERT_TRUE(i < 16 || tokens[row][i] == secret);
      ASSERT_TRUE(i == place - 1 || (tokens[row][i] >= 1 && tokens[row][i] <= 15));
      if (i < 7) copies += tokens[row][i] == secret ? 1 : 0;
    }
    copies_before[copies]++;
  }
  EXPECT_EQ(secrets.size(), 15U);
  // 3000 / 15 = 200, with a standard deviation of 13.7.
  for (const auto& [symbol, count] : secrets) EXPECT_NEAR(count, 200, 60) << symbol;
  // Nothing before tells it: the first seven symbols hold none of it with probability (14 / 15)^7 = 0.617.
  EXPECT_NEAR(copies_before[0] / static_cast<double>(kRows), 0.617, 0.04);
}

TEST(LeakTasks, SequencesAreAFunctionOfTaskSeedPartAndNumber) {
  const LeakTaskOptions options{.task = LeakTask::coin_flips, .sizes = {.tokens = 64}};
  const at::Tensor all = leak_task_batch(options, LeakTaskPart::training, 0, 100).tokens;
  EXPECT_TRUE(at::equal(leak_task_batch(options, LeakTaskPart::training, 40, 10).tokens, all.narrow(0, 40, 10)));
  EXPECT_FALSE(at::equal(leak_task_batch(options, LeakTaskPart::held_out, 0, 100).tokens, all));
  LeakTaskOptions other = options;
  other.seed = 2;
  EXPECT_FALSE(at::equal(leak_task_batch(other, LeakTaskPart::training, 0, 100).tokens, all));
  EXPECT_EQ(all.min().item<std::int64_t>(), 0);
  EXPECT_EQ(all.max().item<std::int64_t>(), 1);
  // 6400 flips: a standard deviation of 40 around 3200.
  EXPECT_NEAR(static_cast<double>(all.sum().item<std::int64_t>()), 3200.0, 160.0);
}

TEST(LeakTasks, TheAttentionIsTheAuditedOneInAllButItsSizes) {
  ExperimentConfig audited = small_experiment("routing");
  audited.routing.routing().selection = RoutingSelection::nearest;
  audited.routing.routing().decay = 0.9;
  audited.routing.group.merge = Merge::mean;
  audited.routing.group.scale = 0.7;
  audited.routing.group.key_shift = 0;
  audited.routing.group.shared_query_key = false;
  audited.routing.group.relative = RelativePosition::rank;
  audited.routing.group.max_relative = 99;
  audited.routing.head_mix = true;
  audited.model.norm = NormPlacement::post;
  audited.model.residual_dropout = 0.5;
  audited.model.image_height = 0;
  const ExperimentConfig config =
      leak_task_config(audited, {.sizes = {.tokens = 64, .clusters = 5, .window = 7, .width = 32}});
  RoutingSettings expected = audited.routing;
  expected.routing().clusters = 5;
  expected.routing().window = 7;
  expected.group.max_relative = 7;
  EXPECT_EQ(config.routing, expected);
  EXPECT_EQ(config.model.norm, NormPlacement::post);
  EXPECT_EQ(config.model.residual_dropout, 0.0);
  EXPECT_EQ(config.model.layers, 2);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(pattern_name(attention_of_layer(config, layer).head_groups.back().pattern), "routing");
  }
  for (const ContentCase& each : content_cases()) EXPECT_NO_THROW(leak_task_config(each.config, {})) << each.name;
  audited.attention.content = PatternKind::span;
  audited.patterns.span.pattern = SpanPattern{.limit = 1024, .ramp = 500};
  const auto span = std::get<SpanPattern>(leak_task_config(audited, {.sizes = {.window = 7}}).patterns.span.pattern);
  EXPECT_EQ(span, (SpanPattern{.limit = 7, .ramp = 7}));
  EXPECT_NE(message_of<ConfigError>([&] { leak_task_config(audited, {.sizes = {.tokens = 4}}); }).find("at least 8"),
            std::string::npos);
}

// Whatever somebody trains can be audited: many clusters with a share that four of them do not have.
TEST(LeakTasks, EveryPresetWithoutAnEncoderHasItsTasks) {
  for (const std::string& name : preset_names()) {
    const ExperimentConfig audited = resolve({.preset = name});
    if (audited.model.encoder_layers > 0) continue;
    for (const LeakTaskCase& each : audit_tasks()) {
      EXPECT_NO_THROW(leak_task_config(audited, {.task = each.task, .sizes = each.sizes})) << name;
    }
  }
  const ExperimentConfig config = leak_task_config(resolve({.preset = "my-text"}), {.sizes = {.clusters = 4}});
  EXPECT_EQ(config.routing.routing().target_share, 2.0);
}

TEST(LeakTasks, AResultLeaksOnlyIfItsWholeIntervalIsBelowTheFloor) {
  EXPECT_TRUE((LeakTaskResult{.nats = 0.60, .half_width = 0.05, .floor = 0.69}).leaks());
  EXPECT_FALSE((LeakTaskResult{.nats = 0.66, .half_width = 0.05, .floor = 0.69}).leaks());
  EXPECT_FALSE((LeakTaskResult{.nats = 0.75, .half_width = 0.01, .floor = 0.69}).leaks());
}

// Untrained, both tasks cost about what guessing does, and the interval is that of the numbers.
TEST(LeakTasks, WithoutLearningNothingIsBelowTheFloor) {
  for (const LeakTask task : {LeakTask::coin_flips, LeakTask::secret}) {
    const LeakTaskResult result = run_leak_task(
        small_experiment("full"), {.task = task, .sizes = {.tokens = 32, .steps = 1, .held_out = 300}, .seed = 4});
    EXPECT_FALSE(result.leaks());
    EXPECT_NEAR(result.nats, task == LeakTask::coin_flips ? std::log(2.0) : std::log(17.0), 0.8);
    EXPECT_GT(result.half_width, 0.0);
    EXPECT_EQ(result.floor, entropy_floor(task));
  }
}

struct Trained {
  RoutingSelection selection = RoutingSelection::balanced;
  std::uint64_t seed = 1;
};
class SecretTask : public ::testing::TestWithParam<Trained> {};

TEST_P(SecretTask, IsLearnedAheadOfTimeByBalancedSelectionOnly) {
  ExperimentConfig audited = small_experiment("routing");
  audited.routing.routing().selection = GetParam().selection;
  keys_as_they_stand(audited.routing.group);
  const LeakTaskCase& task = audit_tasks().at(1);
  ASSERT_EQ(task.task, LeakTask::secret);
  ASSERT_EQ(task.sizes.tokens, 32);
  const LeakTaskResult result =
      run_leak_task(audited, {.task = task.task, .sizes = task.sizes, .seed = GetParam().seed});
  EXPECT_EQ(result.leaks(), GetParam().selection == RoutingSelection::balanced)
      << result.nats << " +- " << result.half_width;
  EXPECT_LT(result.nats, result.floor + 0.2) << "it learned at least that there are fifteen symbols";
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, SecretTask,
    ::testing::Values(Trained{RoutingSelection::balanced, 1}, Trained{RoutingSelection::balanced, 2},
                      Trained{RoutingSelection::balanced, 3}, Trained{RoutingSelection::threshold, 1}),
    [](const auto& instance) {
      return std::string(to_string(instance.param.selection)) + std::to_string(instance.param.seed);
    });

}  // namespace
}  // namespace routing::leak_tasks_test
