// Gains, leaks, shares and intervals on made-up numbers, worked out by hand.
#include "lab/leak/leak_report.h"

#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/made_up_leak.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>

namespace routing::leak_report_test {
namespace {

constexpr double kT2 = 4.302652730;   // t(0.975, 2)
constexpr double kT1 = 12.706204736;  // t(0.975, 1)

void expect_interval(const MeanInterval& interval, double mean, double half_width) {
  EXPECT_NEAR(interval.mean, mean, 1e-12);
  EXPECT_NEAR(interval.half_width, half_width, 1e-8);
}

TEST(LeakReport, HasMeansOverWindowsWithTheirIntervals) {
  const std::vector<LeakRun> runs{made_up_balanced(), made_up_local()};
  const LeakReport report = leak_report(runs, TokenKind::bytes);
  EXPECT_EQ(report.sequence_length, 8);
  EXPECT_EQ(report.windows, 3);
  EXPECT_EQ(report.samples, 6);
  ASSERT_EQ(report.selections.size(), 2U);
  const SelectionLeak& balanced = report.selections[0];
  EXPECT_EQ(balanced.selection, "balanced");
  EXPECT_TRUE(balanced.reads_future());
  EXPECT_FALSE(report.selections[1].reads_future());
  // Windows 0.9, 1.05, 0.8: mean 0.91667, deviation 0.125831.
  expect_interval(balanced.all.teacher_forced, 2.75 / 3.0, kT2 * 0.12583057392 / std::sqrt(3.0));
  // 1.05, 1.15, 1.0; deviation 0.0763763.
  expect_interval(balanced.all.future_replaced, 3.2 / 3.0, kT2 * 0.07637626158 / std::sqrt(3.0));
  // 1.5, 1.7, 1.45.
  EXPECT_NEAR(balanced.all.prefix_only.mean, 4.65 / 3.0, 1e-12);
  // 0.15, 0.1, 0.2; deviation 0.05: paired, so narrower than either.
  expect_interval(balanced.all.leak, 0.15, kT2 * 0.05 / std::sqrt(3.0));
  // 0.6, 0.65, 0.65.
  expect_interval(balanced.all.prefix_cost, 1.9 / 3.0, kT2 * 0.02886751346 / std::sqrt(3.0));
  EXPECT_NEAR(balanced.every_token.mean, 1.0, 1e-12);
  expect_interval(report.selections[1].all.leak, 0.0, 0.0);
  EXPECT_TRUE(report.selections[1].future_replaced.holds());
  EXPECT_FALSE(balanced.future_replaced.holds());
  EXPECT_EQ(balanced.future_replaced.different, 5);
}

TEST(LeakReport, TellsQuartersOfTheWindowApart) {
  const std::vector<LeakRun> runs{made_up_balanced()};
  const SelectionLeak balanced = leak_report(runs, TokenKind::bytes).selections.front();
  ASSERT_TRUE(balanced.quarters[0].has_value());
  ASSERT_TRUE(balanced.quarters[2].has_value());
  EXPECT_FALSE(balanced.quarters[1].has_value());
  EXPECT_FALSE(balanced.quarters[3].has_value());
  EXPECT_NEAR(balanced.quarters[0]->teacher_forced.mean, 1.0, 1e-12);
  EXPECT_NEAR(balanced.quarters[0]->leak.mean, 0.7 / 3.0, 1e-12);
  EXPECT_NEAR(balanced.quarters[2]->leak.mean, 0.2 / 3.0, 1e-12);
  EXPECT_NEAR(balanced.quarters[0]->prefix_cost.mean, 3.1 / 3.0, 1e-12);
  EXPECT_NEAR(balanced.quarters[2]->prefix_cost.mean, 0.7 / 3.0, 1e-12);
  EXPECT_EQ(balanced.quarters[0]->leak.values, 3);
}

TEST(LeakReport, SharesTheGainOnlyWhereThereIsOne) {
  const std::vector<LeakRun> runs{made_up_balanced(), made_up_local(), made_up_full()};
  const LeakReport report = leak_report(runs, TokenKind::bytes);
  ASSERT_EQ(report.shares.size(), 2U) << "of the one that reads the future, against the two that do not";
  const LeakShare& local = report.shares[0];
  EXPECT_EQ(local.selection, "balanced");
  EXPECT_EQ(local.reference, "local");
  // 0.5, 0.6, 0.7.
  expect_interval(local.gain, 0.6, kT2 * 0.1 / std::sqrt(3.0));
  EXPECT_TRUE(local.is_gain());
  EXPECT_FALSE(local.gain_over_seeds.has_value()) << "one seed";
  EXPECT_NEAR(local.leak_share.ratio, 0.25, 1e-12);
  EXPECT_NEAR(local.prefix_share.ratio, 1.9 / 1.8, 1e-12);
  // Fieller with leaks 0.15, 0.1, 0.2: t²/6 = 3.085470; V's sums 0.005 and 0.02, C's 0.005; so
  // 0.2982906 r² - 2 · 0.07457265 r + 0.00707265 = 0.
  EXPECT_TRUE(local.leak_share.bounded);
  EXPECT_NEAR(local.leak_share.low, 0.0530498, 1e-6);
  EXPECT_NEAR(local.leak_share.high, 0.4469502, 1e-6);
  const LeakShare& full = report.shares[1];
  EXPECT_EQ(full.reference, "full");
  EXPECT_LT(full.gain.mean, 0.0);
  EXPECT_FALSE(full.is_gain());
}

TEST(LeakReport, AveragesSeedsAndGivesTheirOwnInterval) {
  LeakRun second = made_up_balanced(2);
  for (PrefixSample& sample : second.likelihood.samples) sample.future_replaced += 0.1;
  for (double& nats : second.likelihood.window_nats) nats += 0.2;
  // Seeds come in any order; they are paired by number.
  const std::vector<LeakRun> runs{made_up_balanced(1), second, made_up_local(2), made_up_local(1)};
  const LeakReport report = leak_report(runs, TokenKind::bytes);
  ASSERT_EQ(report.selections.size(), 2U);
  const SelectionLeak& balanced = report.selections[0];
  EXPECT_EQ(balanced.seeds, (std::vector<std::uint64_t>{1, 2}));
  // Over windows as before, shifted: the mean over seeds of each window.
  expect_interval(balanced.all.leak, 0.2, kT2 * 0.05 / std::sqrt(3.0));
  EXPECT_EQ(balanced.all.leak.values, 3);
  EXPECT_EQ(balanced.future_replaced.measured, 4);
  ASSERT_TRUE(balanced.leak_over_seeds.has_value());
  // 0.15 and 0.25.
  expect_interval(*balanced.leak_over_seeds, 0.2, kT1 * 0.05);
  // 1.0 and 1.2.
  expect_interval(*balanced.every_token_over_seeds, 1.1, kT1 * 0.1);
  expect_interval(*balanced.prefix_cost_over_seeds, 1.9 / 3.0, 0.0);
  ASSERT_EQ(report.shares.size(), 1U);
  // 0.6 with seed 1, 0.4 with seed 2.
  ASSERT_TRUE(report.shares[0].gain_over_seeds.has_value());
  expect_interval(*report.shares[0].gain_over_seeds, 0.5, kT1 * 0.1);
  // Without a partner for each seed there is no pairing.
  const std::vector<LeakRun> unpaired{made_up_balanced(1), second, made_up_local(1), made_up_local(3)};
  EXPECT_FALSE(leak_report(unpaired, TokenKind::bytes).shares[0].gain_over_seeds.has_value());
}

TEST(LeakReport, RefusesRunsThatCannotBeCompared) {
  EXPECT_THROW(leak_report({}, TokenKind::bytes), InputError);
  const std::vector<LeakRun> twice{made_up_local(), made_up_local()};
  EXPECT_NE(message_of<InputError>([&] { leak_report(twice, TokenKind::bytes); }).find("two runs are local of seed 1"),
            std::string::npos);
  std::vector<LeakRun> elsewhere{made_up_local(), made_up_balanced()};
  elsewhere[1].likelihood.samples[2].place.position = 2;
  EXPECT_NE(message_of<InputError>([&] { leak_report(elsewhere, TokenKind::bytes); }).find("at other places"),
            std::string::npos);
  std::vector<LeakRun> one{made_up_local()};
  one[0].likelihood.window_nats.resize(1);
  one[0].likelihood.samples.resize(2);
  EXPECT_NE(message_of<InputError>([&] { leak_report(one, TokenKind::bytes); }).find("at least 2"), std::string::npos);
}

TEST(LeakReport, CallsModelsByTheirSelection) {
  for (const auto& [name, config] : content_cases()) EXPECT_EQ(selection_label(config), name);
  ExperimentConfig none = small_experiment("routing");
  none.attention.content_heads = 0;
  EXPECT_EQ(selection_label(none), "local");
}

TEST(LeakReport, MeasuresAModelUnderItsOwnName) {
  ExperimentConfig config = content_cases()[5].config;
  config.train.seed = 7;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  std::vector<std::uint8_t> text(200);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::uint8_t>(i * i % 91);
  const PrefixLikelihoodOptions options{.sampling = {.sequence_length = 32, .windows = 3, .positions = 2}};
  const LeakRun run = measure_leak(*model, text, options);
  EXPECT_EQ(run.selection, "balanced");
  EXPECT_EQ(run.seed, 7U);
  EXPECT_EQ(run.validity, "selection reads the future");
  const PrefixLikelihood alone = prefix_likelihood(*model, text, options);
  ASSERT_EQ(run.likelihood.samples.size(), alone.samples.size());
  EXPECT_EQ(run.likelihood.samples[3].prefix_only, alone.samples[3].prefix_only);
  EXPECT_EQ(run.likelihood.window_nats, alone.window_nats);
}

}  // namespace
}  // namespace routing::leak_report_test
