// routing train over ranks that share the sequences of a batch (train.sequence_ranks): the same training, kills and
// resumes with other ranks, and what cannot be split.
#include "cli/ranks_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace routing::split_ranks_test {
namespace {

class CliSplitRanks : public CliRanks {
 protected:
  // So many ranks, of which `split` share a sequence.
  static std::string split(const std::string& run, int ranks, int split, int steps) {
    return train(run, ranks, steps) + "--set train.sequence_ranks=" + std::to_string(split) + " ";
  }
  std::string log(const std::string& run, int rank) const {
    return text_of(folder_ / run / "ranks" / ("rank-000" + std::to_string(rank) + ".log"));
  }
};

TEST_F(CliSplitRanks, TrainAsOneRankDoes) {
  struct Ranks {
    int all, split;
  };
  expect_done(split("whole", 1, 1, 25) + "--set train.checkpoint_every=1");
  for (const Ranks ranks : {Ranks{2, 2}, Ranks{3, 3}, Ranks{4, 2}}) {
    const std::string run = "r" + std::to_string(ranks.all) + "-" + std::to_string(ranks.split);
    // --check-every 1: all weights, centroids and thresholds are compared on all ranks after every step.
    expect_done(split(run, ranks.all, ranks.split, 25) + "--check-every 1 --set train.checkpoint_every=1");
    EXPECT_NEAR(curve("whole", "train_loss_nats").at(1), curve(run, "train_loss_nats").at(1), 1e-12) << run;
    EXPECT_LT(largest_relative_difference(curve("whole", "train_loss_nats"), curve(run, "train_loss_nats")), 1e-4)
        << run;
    EXPECT_LT(largest_relative_difference(curve("whole", "eval_loss_nats"), curve(run, "eval_loss_nats")), 1e-4) << run;
    EXPECT_EQ(curve("whole", "tokens"), curve(run, "tokens")) << run;
    // What clusters saw in the first step is counted, not summed.
    EXPECT_EQ(tensors(checkpoint("whole", 1) / "model.safetensors", "centroids.counts"),
              tensors(checkpoint(run, 1) / "model.safetensors", "centroids.counts"))
        << run;
  }
  EXPECT_TRUE(contains(log("r4-2", 2), "rows 3 to 4 of 5, piece 0 of 2 of each")) << log("r4-2", 2);
  EXPECT_TRUE(contains(log("r4-2", 3), "rows 3 to 4 of 5, piece 1 of 2 of each")) << log("r4-2", 3);
}

TEST_F(CliSplitRanks, GoOnWithOtherRanksAndOtherPieces) {
  expect_done(split("whole", 1, 1, 30));
  expect_done(split("changing", 2, 2, 8));
  expect_done(split("changing", 4, 2, 14) + "--resume auto");
  expect_done(split("changing", 3, 3, 20) + "--resume auto");
  expect_done(split("changing", 2, 1, 25) + "--resume auto");
  expect_done(split("changing", 1, 1, 30) + "--resume auto");
  EXPECT_EQ(curve("changing", "train_loss_nats").size(), 30U);
  EXPECT_LT(largest_relative_difference(curve("whole", "train_loss_nats"), curve("changing", "train_loss_nats")), 1e-4);
}

TEST_F(CliSplitRanks, SayWhoHasWhat) {
  std::string args = split("run", 4, 2, 1);
  args.replace(args.find("--quiet"), 7, "");
  const Outcome outcome = expect_done(args);
  EXPECT_TRUE(contains(outcome.err,
                       "4 ranks of 1 threads, global batch 5 sequences of 64 tokens, 3 of them on rank 0, which shares "
                       "them with the next rank, a piece of 32 tokens each"))
      << outcome.err;
}

// The last rank is killed as soon as a checkpoint is there; then the whole run goes on to the bits of an unbroken one.
TEST_F(CliSplitRanks, AKilledRankEndsTheRunInOneLineAndTheRestIsThatOfAnUnbrokenOne) {
  expect_done(split("whole", 2, 2, 20));
  const std::string command =
      "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + split("run", 2, 2, 100000) +
      "--timeout 20 > .out 2> .err & p=$!; "
      "while kill -0 $p 2> /dev/null && [ ! -e run/checkpoints/step-00000005/DONE ]; do sleep 0.005; done; "
      "for c in $(pgrep -P $p); do tr '\\0' '\\n' < /proc/$c/environ 2> /dev/null | grep -qx RANK=1 && kill -9 $c; "
      "done; wait $p; }";
  const int status = std::system(command.c_str());
  const std::string said = text_of(folder_ / ".err");
  EXPECT_EQ(WEXITSTATUS(status), 1) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_TRUE(contains(said, "rank 1 failed after step ")) << said;
  EXPECT_TRUE(contains(said, "killed by signal 9")) << said;
  EXPECT_TRUE(contains(said, "go on with --resume")) << said;
  // Wherever it was, it goes on; so far the loss curve is that of the unbroken run.
  const auto steps = curve("run", "train_loss_nats");
  const auto whole = curve("whole", "train_loss_nats");
  for (int step = 1; step <= 5; ++step) EXPECT_EQ(steps.at(step), whole.at(step)) << step;
  expect_done(split("resumed", 2, 2, 7));
  expect_done(split("resumed", 2, 2, 20) + "--resume auto");
  EXPECT_TRUE(bytes_of_checkpoint("whole", 20) == bytes_of_checkpoint("resumed", 20));
}

TEST_F(CliSplitRanks, RestartsGoOnFromTheLastCheckpoint) {
  expect_done(split("whole", 2, 2, 20));
  const std::string command =
      "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + split("run", 2, 2, 20) +
      "--restarts 1 > .out 2> .err & p=$!; "
      "while kill -0 $p 2> /dev/null && [ ! -e run/checkpoints/step-00000005/DONE ]; do sleep 0.005; done; "
      "for c in $(pgrep -P $p); do tr '\\0' '\\n' < /proc/$c/environ 2> /dev/null | grep -qx RANK=1 && kill -9 $c; "
      "done; wait $p; }";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << text_of(folder_ / ".err");
  EXPECT_TRUE(contains(text_of(folder_ / ".err"), "rank 1 failed after step ")) << text_of(folder_ / ".err");
  EXPECT_TRUE(bytes_of_checkpoint("whole", 20) == bytes_of_checkpoint("run", 20));
}

TEST_F(CliSplitRanks, WhatCannotBeSplitIsRefusedInOneLine) {
  expect_refused(split("run", 3, 2, 3), {"train.sequence_ranks is 2", "there are 3 ranks; start a multiple of them"});
  expect_refused(split("run", 1, 2, 3), {"train.sequence_ranks is 2", "there is 1 rank; start a multiple"});
  expect_refused(split("run", 2, 2, 3) + "--set attention.content=random --set random.window=16",
                 {"train.sequence_ranks is 2", "random heads draw from the whole sequence"});
  expect_refused(split("run", 2, 2, 3) + "--set routing.selection=balanced --set routing.key_shift=0",
                 {"train.sequence_ranks is 2", "set routing.selection to threshold or nearest"});
  expect_refused(split("run", 2, 2, 3) + "--set train.order=contiguous --set memory.length=16",
                 {"train.sequence_ranks is 2", "memory.length is 16"});
  expect_refused(split("run", 2, 2, 3) + "--set train.shortest_length=1",
                 {"train.sequence_ranks is 2", "a sequence may have 1 tokens"});
  expect_refused(split("run", 12, 2, 3), {"train.batch_size is 5", "12 ranks, of which 2 share a sequence"});
  EXPECT_FALSE(fs::exists(folder_ / "run/config.toml"));
}

}  // namespace
}  // namespace routing::split_ranks_test
