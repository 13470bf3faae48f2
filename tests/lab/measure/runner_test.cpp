// Rounds, medians and quartiles by a clock that the tests move.
#include "lab/measure/runner.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::bench::runner_test {
namespace {

// Work that takes what it says, on a clock of its own.
struct FakeMachine {
  double now = 100.0;
  std::string order;

  Case taking(const std::string& name, std::vector<double> seconds, int runs_a_round = 1) {
    return {.name = name,
            .run =
                [this, name, seconds, run = std::size_t{0}]() mutable {
                  now += seconds[run++ % seconds.size()];
                  order += name;
                },
            .runs_a_round = runs_a_round};
  }
  RunnerOptions options(int repeats) {
    return {.repeats = repeats, .clock = [this] { return now; }};
  }
};

TEST(BenchRunner, CasesRunOnceUntimedAndThenInTurns) {
  FakeMachine machine;
  run_in_turns({machine.taking("a", {1.0}), machine.taking("b", {1.0}), machine.taking("c", {1.0})},
               machine.options(5));
  EXPECT_EQ(machine.order, "abcabcabcabcabcabc");
}

TEST(BenchRunner, TheFirstRunIsNotCounted) {
  FakeMachine machine;
  // The untimed run takes 1000 s, the five timed ones 5, 1, 4, 2 and 3.
  const std::vector<Timing> timings =
      run_in_turns({machine.taking("a", {1000.0, 5.0, 1.0, 4.0, 2.0, 3.0})}, machine.options(5));
  ASSERT_EQ(timings.size(), 1U);
  EXPECT_DOUBLE_EQ(timings[0].median, 3.0);
  EXPECT_DOUBLE_EQ(timings[0].fastest, 1.0);
  EXPECT_DOUBLE_EQ(timings[0].slowest, 5.0);
  EXPECT_DOUBLE_EQ(timings[0].lower_quartile, 2.0);
  EXPECT_DOUBLE_EQ(timings[0].upper_quartile, 4.0);
  EXPECT_DOUBLE_EQ(timings[0].spread(), 2.0 / 3.0);
  EXPECT_EQ(timings[0].samples, 5);
}

TEST(BenchRunner, SeveralRunsARoundAreTimedOneByOne) {
  FakeMachine machine;
  const std::vector<Timing> timings =
      run_in_turns({machine.taking("a", {2.0}, 3), machine.taking("b", {7.0})}, machine.options(5));
  EXPECT_EQ(machine.order, "abaaabaaabaaabaaabaaab");
  EXPECT_EQ(timings[0].samples, 15);
  EXPECT_DOUBLE_EQ(timings[0].median, 2.0);
  EXPECT_DOUBLE_EQ(timings[1].median, 7.0);
}

TEST(BenchRunner, WhatComesBeforeARunIsNotTimed) {
  FakeMachine machine;
  Case each = machine.taking("a", {2.0}, 2);
  each.before = [&] {
    machine.now += 50.0;
    machine.order += "-";
  };
  const std::vector<Timing> timings = run_in_turns({each, machine.taking("b", {1.0})}, machine.options(5));
  EXPECT_EQ(machine.order, "-ab-a-ab-a-ab-a-ab-a-ab-a-ab");
  EXPECT_DOUBLE_EQ(timings[0].slowest, 2.0);
}

TEST(BenchRunner, SecondsAreThoseOfOneItemOfARun) {
  FakeMachine machine;
  Case each = machine.taking("a", {12.0});
  each.items_a_run = 4;
  const std::vector<Timing> timings = run_in_turns({each}, machine.options(5));
  EXPECT_DOUBLE_EQ(timings[0].median, 3.0);
  EXPECT_EQ(timings[0].samples, 5);
}

TEST(BenchRunner, SlowCasesStopAfterSomeRounds) {
  FakeMachine machine;
  Case slow = machine.taking("s", {9.0});
  slow.most_rounds = 2;
  const std::vector<Timing> timings = run_in_turns({slow, machine.taking("b", {1.0})}, machine.options(5));
  EXPECT_EQ(machine.order, "sbsbsbbbb");
  EXPECT_EQ(timings[0].samples, 2);
  EXPECT_EQ(timings[1].samples, 5);
}

TEST(BenchRunner, ProgressComesAfterEveryRoundAndIsNotTimed) {
  FakeMachine machine;
  RunnerOptions options = machine.options(6);
  std::vector<int> rounds;
  options.progress = [&](int done, int all) {
    rounds.push_back(done);
    EXPECT_EQ(all, 6);
    machine.now += 50.0;
  };
  const std::vector<Timing> timings = run_in_turns({machine.taking("a", {1.0})}, options);
  EXPECT_EQ(rounds, (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_DOUBLE_EQ(timings[0].slowest, 1.0);
}

TEST(BenchRunner, FewerThanFiveRoundsAreRefusedByName) {
  FakeMachine machine;
  try {
    run_in_turns({machine.taking("a", {1.0})}, machine.options(4));
    FAIL() << "four rounds ran";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("repeats is 4"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("at least 5"), std::string::npos) << error.what();
  }
  EXPECT_EQ(machine.order, "");
}

TEST(BenchRunner, WithoutAClockRealTimePasses) {
  const std::vector<Timing> timings = run_in_turns({{.name = "nothing", .run = [] {}}}, {.repeats = 5});
  EXPECT_GE(timings[0].fastest, 0.0);
  EXPECT_LT(timings[0].fastest, 1.0);
}

}  // namespace
}  // namespace routing::bench::runner_test
