// The lines of metrics.jsonl that a run writes, key by key.
#include "routing/training/run_log.h"

#include "routing/core/files.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace routing::run_log_test {
namespace {

std::vector<std::string> keys_of(const nlohmann::ordered_json& line) {
  std::vector<std::string> keys;
  for (const auto& item : line.items()) keys.push_back(item.key());
  return keys;
}

TEST(RunLog, WritesStepsAndEvaluationsInTheOrderOfTheirKeys) {
  const TemporaryFolder folder;
  const RunDirectory run(folder.path());
  TrainerState state;
  state.step = state.best_step = 4;
  state.tokens = 256;
  state.last_eval_nats = std::log(2.0);
  RunLog log(run, 0, {.kind = TokenKind::bytes, .split = "valid", .labels = {.validity = "causal"}});
  log.add_step(state, {.auxiliary_loss = 0.25, .gradient_norm = 2.0, .learning_rate = 0.5},
               {.loss_nats = std::log(4.0), .tokens_per_second = 64.0});
  log.add_step(state, {},
               {.loss_nats = 1.0, .traffic = RankTraffic{.ranks = 2, .waiting_share = 0.5, .bytes_sent_per_step = 8}});
  log.add_evaluation(state, {.nats = 7.0, .tokens = 10, .stride = 5, .accuracy = 0.75});
  log.sync();
  const auto lines = read_metrics(run.metrics_file());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(keys_of(lines[0]), (std::vector<std::string>{"step", "train_loss_nats", "train_bits_per_byte",
                                                         "learning_rate", "gradient_norm", "auxiliary_loss", "tokens",
                                                         "tokens_per_second", "seconds", "validity"}));
  EXPECT_NEAR(lines[0].at("train_bits_per_byte").get<double>(), 2.0, 1e-12);
  EXPECT_EQ(lines[0].at("gradient_norm"), 2.0);
  EXPECT_EQ(lines[1].at("ranks"), 2);
  EXPECT_EQ(lines[1].at("waiting_share"), 0.5);
  EXPECT_EQ(lines[1].at("bytes_sent_per_step"), 8.0);
  EXPECT_EQ(keys_of(lines[2]),
            (std::vector<std::string>{"step", "eval_loss_nats", "eval_bits_per_byte", "eval_split", "eval_tokens",
                                      "eval_stride", "best", "seconds", "eval_accuracy", "validity"}));
  EXPECT_NEAR(lines[2].at("eval_bits_per_byte").get<double>(), 1.0, 1e-12);
  EXPECT_EQ(lines[2].at("best"), true);
}

TEST(RunLog, NamesTheSpanOfEveryHeadByAttentionAndHead) {
  const TemporaryFolder folder;
  const RunDirectory run(folder.path());
  TrainerState state;
  state.step = 4;
  RunLog log(run, 0, {.labels = {.validity = "causal"}});
  StepResult result;
  result.spans = {{.layer = 0, .attention = "layer 0", .head = 3, .span = 2.5, .keys = 35},
                  {.layer = 1, .attention = "layer 1", .head = 0, .span = 7.5, .keys = 40}};
  log.add_step(state, result, {.loss_nats = 1.0});
  log.sync();
  const auto line = read_metrics(run.metrics_file()).at(0);
  EXPECT_EQ(line.at("spans"), nlohmann::ordered_json::parse(R"({"layer 0":{"3":2.5},"layer 1":{"0":7.5}})"));
  EXPECT_EQ(line.at("span_mean"), 5.0);
  EXPECT_EQ(line.at("span_largest"), 7.5);
  EXPECT_EQ(line.at("span_keys_mean"), 37.5);
}

TEST(RunLog, SharesOfClustersStandInAFileOfTheirOwnThatIsCutBackToo) {
  const TemporaryFolder folder;
  const RunDirectory run(folder.path());
  std::vector<LayerStatistics> routing(2);
  routing[0] = {.layer = 1, .attention = "layer 1", .first_head = 2};
  routing[0].statistics.occupancy = {{0.25, 0.75}, {1.0 / 3.0, 2.0 / 3.0}};
  routing[0].statistics.dead_centroids = {0, 1};
  routing[1] = {.layer = 2, .attention = "layer 2"};
  routing[1].statistics.occupancy = {{1.0, 0.0}};
  routing[1].statistics.dead_centroids = {1};
  {
    RunLog log(run, 0, {});
    log.add_clusters(1, {});
    EXPECT_FALSE(std::filesystem::exists(run.clusters_file())) << "no head is routed";
    log.add_clusters(4, routing);
    log.add_clusters(8, routing);
    log.sync();
  }
  EXPECT_EQ(read_file(run.clusters_file()).substr(0, read_file(run.clusters_file()).find('\n')),
            R"({"step":4,"heads":[{"attention":"layer 1","head":2,"shares":[0.25,0.75],"dead":0},)"
            R"({"attention":"layer 1","head":3,"shares":[0.33333,0.66667],"dead":1},)"
            R"({"attention":"layer 2","head":0,"shares":[1.0,0.0],"dead":1}]})");
  const RunLog resumed(run, 7, {});
  ASSERT_EQ(read_metrics(run.clusters_file()).size(), 1U);
  EXPECT_EQ(read_metrics(run.clusters_file()).front().at("step"), 4);
}

TEST(RunLog, GoesOnBehindItsStepAndNamesPartialData) {
  const TemporaryFolder folder;
  const RunDirectory run(folder.path());
  const RunLabels labels{.validity = "causal", .data = "partial data"};
  EXPECT_EQ(labels.text(), "causal, partial data");
  for (const std::int64_t before : {0, 2}) {
    RunLog log(run, before, {.labels = labels});
    for (std::int64_t step = before + 1; step <= before + 3; ++step) {
      TrainerState state;
      state.step = step;
      log.add_step(state, {}, {.loss_nats = static_cast<double>(10 * before + step)});
    }
  }
  const auto lines = read_metrics(run.metrics_file());
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1].at("train_loss_nats"), 2.0);
  EXPECT_EQ(lines[2].at("train_loss_nats"), 23.0) << "written again";
  EXPECT_EQ(lines[4].at("data_label"), "partial data");
}

}  // namespace
}  // namespace routing::run_log_test
