#include "lab/runs/run_history.h"

#include "lab/runs/run_curves.h"
#include "routing/core/error.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace routing::run_history_test {
namespace {

const std::string kLines =
    R"({"step":10,"train_loss_nats":4.0,"train_bits_per_byte":5.77,"tokens":1000,"seconds":60,"validity":"causal"}
{"step":15,"eval_loss_nats":3.0,"eval_bits_per_byte":4.5,"eval_split":"valid","eval_tokens":64,"best":true,"seconds":90,"validity":"causal"}
{"step":20,"train_loss_nats":2.0,"train_bits_per_byte":2.88,"tokens":3000,"seconds":120,"validity":"causal","data_label":"partial data"}
{"step":30,"eval_loss_nats":3.5,"eval_bits_per_byte":5.0,"eval_split":"valid","eval_tokens":64,"best":false,"seconds":180,"validity":"causal","data_label":"partial data"}
)";

class RunHistoryTest : public testing::Test {
 protected:
  RunHistory history_of(const std::string& lines) const {
    std::ofstream(folder_ / "metrics.jsonl") << lines;
    return read_run_history(folder_ / "metrics.jsonl");
  }
  TemporaryFolder folder_;
};

TEST_F(RunHistoryTest, LinesBecomePointsTheBestAndLabels) {
  const RunHistory history = history_of(kLines);
  EXPECT_EQ(history.unit->key, "bits_per_byte");
  ASSERT_EQ(history.training.size(), 2U);
  EXPECT_EQ(history.training[1].value, 2.88);
  ASSERT_EQ(history.evaluation.size(), 2U);
  // Half way between 1000 and 3000 tokens; behind them, on at 150 per step.
  EXPECT_EQ(history.evaluation[0].tokens, 2000.0);
  EXPECT_EQ(history.evaluation[1].tokens, 4500.0);
  EXPECT_EQ(history.best->value, 4.5);
  EXPECT_EQ(history.best->step, 15);
  EXPECT_EQ(history.best->split, "valid");
  EXPECT_EQ(history.labels(), "causal, partial data");
  EXPECT_EQ(history.step, 30);
  EXPECT_EQ(history.tokens, 3000.0);
  EXPECT_EQ(history.seconds, 180.0);
  EXPECT_FALSE(history.diverged);
}

// As a run that is still written is read.
TEST(GrowingHistoryTest, KnowsAtEveryLineWhatTheFileSoFarWouldSay) {
  const TemporaryFolder folder;
  GrowingHistory growing;
  EXPECT_FALSE(growing.history().diverged);
  std::string so_far;
  std::istringstream lines(kLines + R"({"step":40,"train_loss_nats":9.0,"train_bits_per_byte":9.0,"tokens":4000})" +
                           "\n");
  for (std::string line; std::getline(lines, line);) {
    so_far += line + "\n";
    std::ofstream(folder / "metrics.jsonl") << so_far;
    growing.add(nlohmann::ordered_json::parse(line));
    const RunHistory whole = read_run_history(folder / "metrics.jsonl");
    const RunHistory now = growing.history();
    EXPECT_EQ(now.step, whole.step);
    EXPECT_EQ(now.tokens, whole.tokens);
    EXPECT_EQ(now.diverged, whole.diverged);
    EXPECT_EQ(now.best.has_value(), whole.best.has_value());
    ASSERT_EQ(now.evaluation.size(), whole.evaluation.size());
    for (std::size_t i = 0; i < now.evaluation.size(); ++i) {
      if (!std::isfinite(whole.evaluation[i].tokens)) continue;
      EXPECT_EQ(now.evaluation[i].tokens, whole.evaluation[i].tokens);
    }
  }
  EXPECT_TRUE(growing.history().diverged);
  EXPECT_THROW(growing.add({{"no", "step"}}), nlohmann::json::exception);
}

TEST_F(RunHistoryTest, ALossThatGrewOrIsNoNumberIsADivergence) {
  const std::string start = R"({"step":1,"train_loss_nats":4.0,"train_perplexity":54.6,"tokens":10,"seconds":1}
)";
  EXPECT_FALSE(history_of(start).diverged);
  EXPECT_TRUE(
      history_of(start + R"({"step":2,"train_loss_nats":9.0,"train_perplexity":8103,"tokens":20,"seconds":2})" + "\n")
          .diverged);
  const RunHistory lost =
      history_of(start + R"({"step":2,"train_loss_nats":null,"train_perplexity":null,"tokens":20,"seconds":2})" + "\n");
  EXPECT_TRUE(lost.diverged);
  EXPECT_TRUE(std::isnan(lost.training[1].value));
  EXPECT_EQ(lost.unit->name, "perplexity");
}

TEST_F(RunHistoryTest, AnEmptyLogIsEmptyAndAForeignOneAnError) {
  EXPECT_FALSE(history_of("").unit.has_value());
  EXPECT_NE(message_of<FileError>([&] { history_of("{\"epoch\":1}\n"); }).find("is not the metrics.jsonl of a run"),
            std::string::npos);
  EXPECT_FALSE(message_of<FileError>([&] { read_run_history(folder_ / "nothing"); }).empty());
}

// As numbers of C++ some of these would be anything.
TEST_F(RunHistoryTest, StepsAndCountsThatAreNoneAreRefused) {
  for (const std::string step : {"-1", "1.5", "1e+300", "9223372036854775808", "\"1\"", "null"}) {
    const std::string message = message_of<FileError>([&] { history_of("{\"step\":" + step + "}\n"); });
    EXPECT_NE(message.find("a count was expected, but found " + step), std::string::npos) << message;
    EXPECT_THROW(history_of(R"({"step":1,"eval_loss_nats":1.0,"best":true,"eval_tokens":)" + step + "}\n"), FileError);
  }
}

// Written out by recursion this would take more stack than there is.
TEST_F(RunHistoryTest, DeepListsAreRefusedByTheirType) {
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  const std::string message = message_of<FileError>([&] { history_of("{\"step\":" + deep + "}\n"); });
  EXPECT_NE(message.find("found array"), std::string::npos) << message.substr(0, 200);
}

TEST_F(RunHistoryTest, CurvesStandOverStepsTokensOrMinutes) {
  const RunHistory history = history_of(kLines);
  EXPECT_EQ(place_on(CurveAxis::steps, history.training[1]), 20.0);
  EXPECT_EQ(place_on(CurveAxis::tokens, history.training[1]), 3000.0);
  EXPECT_EQ(place_on(CurveAxis::minutes, history.training[1]), 2.0);
  const CurvesFigure figure =
      curves_of_runs({{"a", history}, {"b", history}}, {.by = CurveAxis::minutes, .smoothing = 0.9});
  ASSERT_EQ(figure.curves.size(), 4U);
  EXPECT_EQ(figure.curves[0].x, (std::vector<double>{1, 2}));
  EXPECT_EQ(figure.curves[0].smoothing, 0.9);
  EXPECT_EQ(figure.curves[1].x, (std::vector<double>{1.5, 3}));
  EXPECT_TRUE(figure.curves[1].points);
  EXPECT_EQ(figure.curves[1].colour, 0);
  EXPECT_EQ(figure.curves[2].colour, 1);
  EXPECT_EQ(figure.curves[2].name, "b  4.500, partial data");
  EXPECT_EQ(figure.curves[3].name, "");
  EXPECT_EQ(figure.y_label, "bits per byte");
}

TEST_F(RunHistoryTest, WhatReadsTheFutureSaysSoInItsLegend) {
  RunHistory history = history_of(kLines);
  history.validity = "selection reads the future";
  EXPECT_NE(curves_of_runs({{"a", history}}, {}).curves[0].name.find("selection reads the future"), std::string::npos);
}

TEST_F(RunHistoryTest, RunsOfDifferentUnitsOrWithoutALineShareNoFigure) {
  const RunHistory bytes = history_of(kLines);
  const RunHistory words =
      history_of(R"({"step":1,"train_loss_nats":4.0,"train_perplexity":54.6,"tokens":10,"seconds":1})"
                 "\n");
  const std::string message = message_of<ConfigError>([&] { curves_of_runs({{"a", bytes}, {"b", words}}, {}); });
  for (const char* part : {"b: reports perplexity", "a reports bits/byte", "apart"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  EXPECT_NE(message_of<ConfigError>([&] {
              curves_of_runs({{"a", {}}}, {});
            }).find("logged nothing yet"),
            std::string::npos);
  EXPECT_FALSE(message_of<ConfigError>([&] { curves_of_runs({}, {}); }).empty());
  EXPECT_FALSE(message_of<InputError>([&] { curves_of_runs({{"a", bytes}}, {.smoothing = 1.0}); }).empty());
}

TEST_F(RunHistoryTest, UnitsHaveNamesForAnAxis) {
  EXPECT_EQ(axis_name(score_unit(TokenKind::bytes)), "bits per byte");
  EXPECT_EQ(axis_name(score_unit(TokenKind::subpixels)), "bits per dim");
  EXPECT_EQ(axis_name(score_unit(TokenKind::words)), "perplexity");
}

}  // namespace
}  // namespace routing::run_history_test
