// routing train over ranks: the same training for any number of them, resumes with other numbers, shards, logs, traces,
// interrupts and restarts. scripts/kill-ranks and scripts/ranks-over-network, run by ctest too, lose ranks and
// networks.
#include "cli/ranks_fixture.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace routing::ranks_test {
namespace {

TEST_F(CliRanks, OneTwoAndFourRanksTrainAlike) {
  // --check-every 1: weights, centroids, counts and tau are compared on all ranks after every step.
  for (const int ranks : {1, 2, 4}) {
    expect_done(train("r" + std::to_string(ranks), ranks, 25) +
                "--check-every 1 --set train.checkpoint_every=1 --set train.eval_every=10 --set train.clusters_every=1"
                " --set train.sample_every=25 --set train.sample_tokens=20");
  }
  // Shares are of what all ranks saw.
  const auto first_clusters = [&](const std::string& name) {
    const std::string lines = text_of(folder_ / name / "clusters.jsonl");
    return lines.substr(0, lines.find('\n'));
  };
  EXPECT_TRUE(contains(first_clusters("r1"), "shares")) << first_clusters("r1");
  const auto counts = tensors(checkpoint("r1", 1) / "model.safetensors", "centroids.counts");
  EXPECT_EQ(counts.size(), 2U);
  for (const std::string run : {"r2", "r4"}) {
    EXPECT_EQ(counts, tensors(checkpoint(run, 1) / "model.safetensors", "centroids.counts")) << run;
    // The model before its first step is the same: losses differ by the rounding of sums.
    EXPECT_NEAR(curve("r1", "train_loss_nats").at(1), curve(run, "train_loss_nats").at(1), 1e-12) << run;
    EXPECT_LT(largest_relative_difference(curve("r1", "train_loss_nats"), curve(run, "train_loss_nats")), 1e-4) << run;
    EXPECT_LT(largest_relative_difference(curve("r1", "eval_loss_nats"), curve(run, "eval_loss_nats")), 1e-4) << run;
    EXPECT_EQ(curve("r1", "tokens"), curve(run, "tokens")) << run;
    EXPECT_EQ(first_clusters("r1"), first_clusters(run)) << run;
    EXPECT_EQ(text_of(folder_ / run / "samples/step-00000025.txt").size(), 20U) << run;
  }
}

TEST_F(CliRanks, ARunGoesOnWithOtherNumbersOfRanks) {
  expect_done(train("whole", 1, 30));
  expect_done(train("changing", 1, 10));
  expect_done(train("changing", 2, 20) + "--resume auto");
  expect_done(train("changing", 3, 30) + "--resume auto");
  EXPECT_LT(largest_relative_difference(curve("whole", "train_loss_nats"), curve("changing", "train_loss_nats")), 1e-4);
  // Back to one: whoever wrote a checkpoint, anybody can read it.
  expect_done(train("changing", 1, 32) + "--resume auto");
  EXPECT_EQ(curve("changing", "train_loss_nats").size(), 32U);
}

// What three ranks found of the weights they saved is what one process finds, to the last bit.
TEST_F(CliRanks, EvaluationIsSummedExactly) {
  expect_done(train("one", 3, 25));
  const double by_three =
      nlohmann::json::parse(text_of(checkpoint("one", 25) / "trainer.json")).at("last_eval_nats").get<double>();
  const Outcome outcome =
      run("eval one --data text --split valid --limit-tokens 1000 --threads 1 --json --batch-size 2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(by_three, result.at("eval_loss_nats").get<double>()) << outcome.out;
}

TEST_F(CliRanks, ShardsOfTheOptimiserChangeNoBit) {
  expect_done(train("whole", 3, 8));
  Outcome outcome = run(train("shards", 3, 4) + "--shard-optimizer");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_done(train("shards", 3, 8) + "--shard-optimizer --resume auto");
  EXPECT_EQ(bytes_of_checkpoint("whole", 8), bytes_of_checkpoint("shards", 8));
  // The bytes that each rank says it keeps add up to those of all.
  double own = 0.0;
  double all = 0.0;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string log = text_of(folder_ / "shards/ranks" / ("rank-000" + std::to_string(rank) + ".log"));
    const std::size_t place = log.find("optimiser state ");
    ASSERT_NE(place, std::string::npos) << log;
    char* end = nullptr;
    own += std::strtod(log.c_str() + place + 16, &end);
    all = std::strtod(end + 4, nullptr);
  }
  EXPECT_EQ(own, all);
  std::string args = train("loud", 2, 1) + "--shard-optimizer";
  args.replace(args.find("--quiet"), 7, "");
  outcome = run(args);
  EXPECT_TRUE(contains(outcome.err, "MiB saved by sharding")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "global batch 5 sequences of 64 tokens, 3 of them on rank 0")) << outcome.err;
}

TEST_F(CliRanks, RankZeroWritesAndEachKeepsALogAndATrace) {
  const Outcome outcome = expect_done(train("run", 2, 6) + "--trace 5 --json");
  EXPECT_EQ(outcome.err, "");
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result.at("ranks"), 2);
  EXPECT_EQ(result.at("tokens"), 6 * 5 * 64);
  EXPECT_GT(result.at("bytes_sent_per_step").get<double>(), 0.0);
  EXPECT_EQ(curve("run", "train_loss_nats").size(), 6U);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string number = "rank-000" + std::to_string(rank);
    const std::string log = text_of(folder_ / "run/ranks" / (number + ".log"));
    EXPECT_TRUE(contains(log, "rank " + std::to_string(rank) + " of 2")) << log;
    EXPECT_TRUE(contains(log, "rows " + std::string(rank == 0 ? "0 to 2" : "3 to 4") + " of 5")) << log;
    EXPECT_TRUE(contains(log, "step 6: loss")) << log;
    const auto trace = nlohmann::json::parse(text_of(folder_ / "run/ranks" / ("trace-" + number + ".json")));
    std::set<int> steps;
    int buckets = 0;
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      steps.insert(event.at("args").at("step").get<int>());
      buckets += event.at("cat") == "network" ? 1 : 0;
    }
    EXPECT_EQ(steps, (std::set<int>{1, 2, 3, 4, 5}));
    EXPECT_GE(buckets, 5);
  }
}

// Others wait while rank 0 writes, longer than the timeout in which they would miss it if it were lost. The time-out is
// long enough for a machine that is busy with other things, and nearly all of this time is slept.
TEST_F(CliRanks, AWriteThatTakesLongerThanTheTimeoutEndsNothing) {
  const std::string settings = "--timeout 10 --set train.checkpoint_every=2 --set train.eval_every=0";
  const Outcome outcome = run(train("run", 2, 3) + settings, "LD_PRELOAD='" ROUTING_SLOW_SYNC "' SLOW_SYNC_MS=1200");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // That it did take so long: between the lines of steps 2 and 3.
  const auto seconds = curve("run", "seconds");
  EXPECT_GT(seconds.at(3) - seconds.at(2), 10.0);
}

TEST_F(CliRanks, OneRankHasATraceToo) {
  expect_done(train("run", 1, 3) + "--trace 2");
  const auto trace = nlohmann::json::parse(text_of(folder_ / "run/ranks/trace-rank-0000.json"));
  int backward = 0;
  for (const auto& event : trace.at("traceEvents")) backward += event.at("name") == "backward" ? 1 : 0;
  EXPECT_EQ(backward, 2);
}

TEST_F(CliRanks, CtrlCStopsAllRanksAfterOneStepWithTheStateSaved) {
  const std::string command =
      "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + train("run", 2, 100000) +
      "> .out 2> .err & p=$!; while [ ! -s run/metrics.jsonl ]; do sleep 0.01; done; " + "kill -INT $p; wait $p; }";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130) << text_of(folder_ / ".err");
  const auto steps = curve("run", "train_loss_nats");
  EXPECT_TRUE(fs::exists(checkpoint("run", steps.rbegin()->first) / "DONE"));
  expect_done(train("run", 2, steps.rbegin()->first + 3) + "--resume auto");
}

// Rank 1 dies twice; each time all start again from the last checkpoint, and the end is that of an unbroken run.
TEST_F(CliRanks, RestartsGoOnFromTheLastCheckpoint) {
  expect_done(train("whole", 2, 40));
  const std::string victim =
      "for c in $(pgrep -P $p); do tr '\\0' '\\n' < /proc/$c/environ 2> /dev/null | grep -qx RANK=1 && kill -9 $c; "
      "done";
  const auto reached = [](int step) {
    return "while kill -0 $p 2> /dev/null && [ ! -e run/checkpoints/step-000000" + std::to_string(step) +
           "/DONE ]; do sleep 0.005; done; ";
  };
  const std::string command = "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + train("run", 2, 40) +
                              "--restarts 2 > .out 2> .err & p=$!; " + reached(10) + victim + "; " + reached(25) +
                              victim + "; wait $p; }";
  const int status = std::system(command.c_str());
  const std::string said = text_of(folder_ / ".err");
  EXPECT_EQ(WEXITSTATUS(status), 0) << said;
  EXPECT_TRUE(contains(said, "rank 1 failed after step ")) << said;
  EXPECT_TRUE(contains(said, "killed by signal 9")) << said;
  EXPECT_EQ(bytes_of_checkpoint("whole", 40), bytes_of_checkpoint("run", 40));
}

}  // namespace
}  // namespace routing::ranks_test
