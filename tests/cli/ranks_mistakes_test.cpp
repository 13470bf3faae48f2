// What can be wrong with ranks before the first step, each answered with one line.
#include "cli/ranks_fixture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::ranks_mistakes_test {
namespace {

class CliRankMistakes : public CliRanks {
 protected:
  static std::string arguments(const std::string& run, const std::string& more = "") {
    return small() + "--out " + run + " --steps 3 --timeout 4 " + (contains(more, "--data") ? "" : "--data text ") +
           more;
  }
};

TEST_F(CliRankMistakes, RanksOfTheContractTrainTogether) {
  const auto outcomes = run_processes(
      {{.rank = 0, .arguments = arguments("run")}, {.rank = 1, .arguments = arguments("run")}}, free_port());
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcomes[0].out, "finished")) << outcomes[0].out;
  EXPECT_EQ(outcomes[1].out, "");
  expect_done(train("local", 2, 3));
  EXPECT_EQ(bytes_of_checkpoint("run", 3), bytes_of_checkpoint("local", 3));
}

TEST_F(CliRankMistakes, AMissingRankIsNamed) {
  const auto outcomes = run_processes(
      {{.rank = 0, .size = 3, .arguments = arguments("run")}, {.rank = 2, .size = 3, .arguments = arguments("run")}},
      free_port());
  for (const Outcome& outcome : outcomes) {
    expect_one_line(outcome, 1, {"WORLD_SIZE is 3", "only rank 0, 2 came", "start rank 1"});
  }
  EXPECT_FALSE(fs::exists(folder_ / "run/config.toml"));
}

TEST_F(CliRankMistakes, DifferentWorldSizesAreNamed) {
  const auto outcomes = run_processes(
      {{.rank = 0, .size = 2, .arguments = arguments("run")}, {.rank = 1, .size = 3, .arguments = arguments("run")}},
      free_port());
  for (const Outcome& outcome : outcomes) expect_one_line(outcome, 1, {"WORLD_SIZE is 3 on rank 1, but 2 on rank 0"});
}

TEST_F(CliRankMistakes, TwoProcessesOfOneRankAreNamed) {
  const auto outcomes = run_processes({{.rank = 0, .size = 3, .arguments = arguments("run")},
                                       {.rank = 1, .size = 3, .arguments = arguments("run")},
                                       {.rank = 1, .size = 3, .arguments = arguments("run")}},
                                      free_port());
  for (const Outcome& outcome : outcomes) expect_one_line(outcome, 1, {"two processes have RANK 1"});
}

TEST_F(CliRankMistakes, AnUnreachableMasterIsNamed) {
  const int port = free_port();
  const auto outcomes = run_processes({{.rank = 1, .arguments = arguments("run")}}, port);
  expect_one_line(outcomes[0], 1,
                  {"nobody answered at 127.0.0.1:" + std::to_string(port) + " for 4.0 s", "MASTER_ADDR"});
}

TEST_F(CliRankMistakes, ATakenPortIsNamed) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  const int port = ntohs(address.sin_port);
  const auto outcomes = run_processes({{.rank = 0, .arguments = arguments("run")}}, port);
  ::close(socket);
  expect_one_line(outcomes[0], 1, {"port " + std::to_string(port), "is taken", "MASTER_PORT"});
}

TEST_F(CliRankMistakes, OtherConfigurationsAndDataAreNamed) {
  auto outcomes = run_processes({{.rank = 0, .arguments = arguments("run")},
                                 {.rank = 1, .arguments = arguments("run", "--set model.feedforward_width=96")}},
                                free_port());
  for (const Outcome& outcome : outcomes) {
    expect_one_line(outcome, 2, {"rank 1", "model.feedforward_width is 96, but 128 on rank 0"});
  }
  outcomes = run_processes(
      {{.rank = 0, .arguments = arguments("run")}, {.rank = 1, .arguments = arguments("run", "--data other")}},
      free_port());
  for (const Outcome& outcome : outcomes)
    expect_one_line(outcome, 2, {"rank 1", "of the training data is ", "on rank 0"});
  // One that cannot even open its data tells the other why it ends.
  outcomes = run_processes(
      {{.rank = 0, .arguments = arguments("run")}, {.rank = 1, .arguments = arguments("run", "--data nowhere")}},
      free_port());
  for (const Outcome& outcome : outcomes) expect_one_line(outcome, 1, {"rank 1 failed", "nowhere: is not there"});
  EXPECT_FALSE(fs::exists(folder_ / "run/config.toml"));
}

TEST_F(CliRankMistakes, WrongArgumentsAreRefused) {
  expect_refused(train("run", 6, 3), {"train.batch_size is 5", "6 ranks"});
  expect_refused(train("run", 0, 3), {"--ranks"});
  expect_refused(train("run", 2, 3) + "--timeout 0", {"--timeout"});
  expect_refused(train("run", 1, 3) + "--restarts 1", {"--restarts is for several ranks, but there is one"});
  expect_refused(train("run", 1, 3) + "--shard-optimizer", {"--shard-optimizer is for several ranks"});
  EXPECT_FALSE(fs::exists(folder_ / "run/config.toml"));
  const auto with = [&](const std::string& variables, const std::string& more) {
    return run(small() + "--data text --out run --steps 3 " + more, variables);
  };
  expect_one_line(with("WORLD_SIZE=2", ""), 2, {"WORLD_SIZE is 2, but RANK is not set"});
  expect_one_line(with("RANK=2 WORLD_SIZE=2", ""), 2, {"RANK is 2, but WORLD_SIZE is 2"});
  expect_one_line(with("RANK=0 WORLD_SIZE=2", ""), 2, {"MASTER_ADDR is not set"});
  const Outcome both = with("RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500", "--ranks 2");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(contains(both.err, "--ranks is 2, but RANK is set to 0")) << both.err;
  // A contract of one is no contract.
  EXPECT_EQ(with("RANK=0 WORLD_SIZE=1", "").exit_code, 0);
}

}  // namespace
}  // namespace routing::ranks_mistakes_test
