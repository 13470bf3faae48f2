// routing eval --split-sequence and the prompts of routing generate over ranks: to the bit what one process has, and
// one line for what cannot be.
#include "cli/ranks_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace routing::split_reading_test {
namespace {

class CliSplitReading : public CliRanks {
 protected:
  void train_a_little(const std::string& more = "") const { expect_done(train("run", 1, 3) + more); }
  static std::string eval(const std::string& more) {
    return "eval run --data text --split test --quiet --threads 1 --json " + more;
  }
  // What a command ends with when its rank 1 is killed as soon as it is there.
  Outcome with_rank_1_killed(const std::string& arguments) const {
    const std::string command =
        "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + arguments +
        " > .stdout 2> .stderr & p=$!; killed=; while [ -z \"$killed\" ] && kill -0 $p 2> /dev/null; do "
        "for c in $(pgrep -P $p); do tr '\\0' '\\n' < /proc/$c/environ 2> /dev/null | grep -qx RANK=1 && "
        "kill -9 $c && killed=1; done; done; wait $p; }";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), text_of(folder_ / ".stdout"), text_of(folder_ / ".stderr")};
  }
};

TEST_F(CliSplitReading, EvaluatesToTheBitsOfOneProcess) {
  train_a_little();
  // The last window has one token, fewer than there are ranks.
  const std::string windows = "--sequence-length 500 --limit-tokens 1701 --stride 400 ";
  const auto whole = nlohmann::json::parse(expect_done(eval(windows + "--nats whole.jsonl")).out);
  EXPECT_EQ(whole.at("windows"), 5);
  EXPECT_FALSE(whole.contains("ranks"));
  for (const int ranks : {1, 2, 3}) {
    const auto split = nlohmann::json::parse(
        expect_done(eval(windows + "--nats split.jsonl --split-sequence --ranks " + std::to_string(ranks))).out);
    EXPECT_EQ(split.at("eval_loss_nats").get<double>(), whole.at("eval_loss_nats").get<double>()) << ranks;
    EXPECT_EQ(split.at("tokens"), whole.at("tokens"));
    EXPECT_TRUE(text_of(folder_ / "split.jsonl") == text_of(folder_ / "whole.jsonl")) << ranks;
    if (ranks == 1) continue;
    EXPECT_EQ(split.at("ranks"), ranks);
    EXPECT_GT(split.at("bytes_sent").get<std::int64_t>(), 0);
  }
  const std::string said =
      expect_done("eval run --data text --split test --quiet --threads 1 " + windows + "--split-sequence --ranks 2")
          .out;
  EXPECT_TRUE(contains(said, "2, each with a piece of every window; rank 0 sent ")) << said;
}

// The contract of torchrun: processes that somebody else has started.
TEST_F(CliSplitReading, EvaluatesOverTheRanksOfTheEnvironment) {
  train_a_little();
  const std::string arguments = eval("--sequence-length 500 --limit-tokens 1000 --split-sequence");
  const auto whole = nlohmann::json::parse(expect_done(eval("--sequence-length 500 --limit-tokens 1000")).out);
  const auto outcomes =
      run_processes({{.rank = 0, .arguments = arguments}, {.rank = 1, .arguments = arguments}}, free_port());
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcomes[0].out).at("eval_loss_nats"), whole.at("eval_loss_nats"));
  EXPECT_EQ(outcomes[1].out, "");
}

TEST_F(CliSplitReading, SaysWhatIsBeyondTraining) {
  train_a_little("--set model.positions=learned ");
  const Outcome outcome = run("eval run --data text --split test --threads 1 --sequence-length 500 --limit-tokens 500");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.err, "train.sequence_length")) << outcome.err;
  fs::remove_all(folder_ / "run");
  train_a_little();
  const Outcome longer =
      expect_done("eval run --data text --split test --threads 1 --sequence-length 500 --limit-tokens 500");
  EXPECT_TRUE(contains(longer.err, "token 65 is past train.sequence_length 64; windows go on")) << longer.err;
  const Outcome shorter = expect_done("eval run --data text --split test --threads 1 --limit-tokens 500");
  EXPECT_FALSE(contains(shorter.err, "is past")) << shorter.err;
  fs::remove_all(folder_ / "run");
  train_a_little("--set attention.content=full --set full.max_relative=63 ");
  const Outcome full =
      expect_done("eval run --data text --split test --threads 1 --sequence-length 500 --limit-tokens 500");
  EXPECT_TRUE(contains(full.err, "relative positions of full heads end at 63 tokens")) << full.err;
}

TEST_F(CliSplitReading, GoesOnFromAPromptAsOneProcess) {
  train_a_little();
  std::ofstream(folder_ / "prompt") << text_of(folder_ / "text").substr(0, 700);
  // All that is said of tokens, their log probabilities to six digits; three samples in two batches.
  for (const std::string& how : {std::string("--seed 3 --num-samples 3 --batch-size 2 --logprobs 2"),
                                 std::string("--seed 3 --precision bf16"), std::string("--beams 2")}) {
    const std::string arguments = "generate run --prompt-file prompt -n 30 --quiet --threads 1 " + how;
    const std::string whole = expect_done(arguments).out;
    EXPECT_FALSE(whole.empty());
    for (const int ranks : {2, 3}) {
      const Outcome split = expect_done(arguments + " --ranks " + std::to_string(ranks));
      EXPECT_EQ(split.out, whole) << how;
      EXPECT_EQ(split.err, "");
    }
  }
}

TEST_F(CliSplitReading, ALostRankIsOneLine) {
  train_a_little();
  expect_one_line(with_rank_1_killed(eval("--sequence-length 5000 --split-sequence --ranks 2 --timeout 20")), 1,
                  {"rank 1 failed: it was killed by signal 9", "start all of them again"});
  expect_one_line(with_rank_1_killed("generate run --prompt line -n 100 --quiet --threads 1 --ranks 2 --timeout 20"), 1,
                  {"rank 1 failed: it was killed by signal 9", "start all of them again"});
}

TEST_F(CliSplitReading, WhatCannotBeSplitIsRefusedInOneLine) {
  expect_refused(eval("--ranks 2"), {"--ranks is 2", "--split-sequence; give that too"});
  expect_refused("generate run --ranks 2", {"--ranks is 2, but there is no prompt to read"});
  expect_refused("generate run - --ranks 2", {"- is for one process, but --ranks is 2"});
  expect_refused("generate run --prompt a --ranks 2 --no-cache", {"--no-cache is for one process"});
  train_a_little("--set routing.selection=balanced --set routing.key_shift=0 ");
  expect_refused(eval("--split-sequence --ranks 2"), {"selection = balanced", "a rank that reads a piece"});
  expect_refused("generate run --prompt a --quiet --threads 1 --ranks 2",
                 {"a prompt cannot be split over ranks", "let one process read it"});
}

}  // namespace
}  // namespace routing::split_reading_test
