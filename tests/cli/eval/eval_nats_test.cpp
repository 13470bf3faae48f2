// routing eval --nats as a user runs it: every token once, with what it cost, and refusals.
#include "cli/program_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace routing::eval_nats_test {
namespace {

class CliEvalNats : public Cli {
 protected:
  CliEvalNats() {
    std::ofstream file(folder_ / "text");
    for (int i = 0; i < 300; ++i) text_ += "line " + std::to_string(i * i % 89) + " of a text\n";
    file << text_;
  }

  void train(const std::string& arguments) const {
    const Outcome trained =
        run("train --quiet --out run --steps 1 --set model.width=32 --set attention.heads=2 --set "
            "attention.content_layers=all"
            " --set attention.content_heads=1 --set model.feedforward_width=32 " +
            arguments);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }

  std::vector<nlohmann::json> windows(const std::string& name) const {
    std::istringstream lines(text_of(folder_ / name));
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  std::string text_;
};

TEST_F(CliEvalNats, EveryTokenIsScoredOnceAndTheMeanIsTheLoss) {
  train(
      "--preset tiny-enwik8 --data text --set model.layers=1 --set train.sequence_length=64 --set routing.window=16"
      " --set local.window=16 --set train.eval_tokens=64");
  const Outcome outcome = run("eval run --data text --split all --limit-tokens 200 --stride 24 --nats nats --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  std::string scored;
  double nats = 0.0;
  for (const auto& window : windows("nats")) {
    ASSERT_EQ(window.at("tokens").size(), window.at("nats").size());
    EXPECT_FALSE(window.contains("source"));
    for (auto i = window.at("scored_from").get<std::size_t>(); i < window.at("tokens").size(); ++i) {
      scored += static_cast<char>(window.at("tokens")[i].get<int>());
      nats += window.at("nats")[i].get<double>();
    }
  }
  EXPECT_EQ(scored, text_.substr(0, 200));
  EXPECT_NEAR(nats / 200.0, json.at("eval_loss_nats").get<double>(), 1e-6);
  expect_refused("eval run --nats nats --by-recurrence", {"--nats, --by-recurrence and --by-position are ways"});
  const Outcome folder = run("eval run --nats no/such/folder --limit-tokens 64");
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_TRUE(contains(folder.err, "no/such/folder")) << folder.err;
}

TEST_F(CliEvalNats, PairsHaveTheirSources) {
  train(
      "--preset tiny-copy --set train.sequence_length=13 --set train.source_length=12 --set train.shortest_length=0 "
      "--set routing.window=4"
      " --set local.window=4 --set attention.cross_heads=1 --set train.eval_tokens=26 --set full.max_relative=4");
  const Outcome outcome = run("eval run --limit-tokens 39 --nats nats --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<nlohmann::json> pairs = windows("nats");
  ASSERT_EQ(pairs.size(), 3U);
  double nats = 0.0;
  for (const auto& pair : pairs) {
    auto copied = pair.at("source").get<std::vector<int>>();
    copied.push_back(1);
    EXPECT_EQ(pair.at("tokens").get<std::vector<int>>(), copied);
    for (const auto& cost : pair.at("nats")) nats += cost.get<double>();
  }
  EXPECT_NEAR(nats / 39.0, nlohmann::json::parse(outcome.out).at("eval_loss_nats").get<double>(), 1e-6);
}

TEST_F(CliEvalNats, RecallIsRefused) {
  train(
      "--preset tiny-recall --set train.sequence_length=64 --set routing.window=16 --set local.window=16"
      " --set model.layers=1 --set train.eval_tokens=64 --set train.batch_size=1 --set data.recall_keys=8"
      " --set data.recall_values=4 --set data.recall_filler=4 --set model.vocab_size=18");
  expect_refused("eval run --nats nats", {"recall", "--nats is for models of data and of pairs"});
  EXPECT_FALSE(fs::exists(folder_ / "nats"));
}

}  // namespace
}  // namespace routing::eval_nats_test
