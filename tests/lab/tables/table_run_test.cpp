#include "lab/tables/table_run.h"

#include "lab/measure/step_timer.h"
#include "lab/tables/row_likelihood.h"
#include "lab/tables/table_fixture.h"
#include "lab/tables/table_terms.h"
#include "routing/core/clock.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/dataset.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/run_lock.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace routing::table_run_test {
namespace {

namespace fs = std::filesystem;

TEST_F(SmallTable, EveryRowIsTrainedAndItsResultIsTheLikelihoodOfItsLastCheckpoint) {
  TableOptions given = options();
  given.rows = "local,routing-w8";
  given.host["cpu"] = "made up";
  const TableOutcome outcome = run_table(spec_, given);
  EXPECT_EQ(outcome.end, TableEnd::finished);
  EXPECT_EQ(outcome.done, 4);
  EXPECT_EQ(steps_, 4 * 4);
  const std::vector<RowResult> all = results();
  ASSERT_EQ(all.size(), 4U);
  for (const RowResult& result : all) {
    EXPECT_EQ(result.terms, (TableTerms{.table = "small", .scale = TableScale::tiny, .steps = 4}));
    EXPECT_EQ(result.train_tokens, 4 * 2 * 32);
    EXPECT_GT(result.steps_per_second, 0.0);
    EXPECT_EQ(result.host["cpu"], "made up");
    EXPECT_EQ(result.validity, result.row == "local" ? "causal" : "selection reads the future");
    // Again, without the engine.
    const fs::path run = folder_ / "table/runs" / (result.row + "-seed" + std::to_string(result.seed));
    Transformer model = load_model(RunDirectory(run).find_checkpoint("4").model());
    const Dataset data(model->config().data);
    const Likelihood likelihood = token_likelihood(*model, data.part("test").tokens,
                                                   {.sequence_length = 32, .batch_size = 1, .limit_tokens = 100});
    EXPECT_EQ(result.number("nats"), likelihood.nats);
    EXPECT_EQ(result.number("tokens"), 100.0);
    EXPECT_NEAR(*result.value(), likelihood.nats / 100.0 / std::log(2.0), 1e-12);
  }
  EXPECT_NE(all[0].value(), all[1].value()) << "seeds differ";
}

TEST_F(SmallTable, WhatIsDoneIsNotDoneAgain) {
  TableOptions given = options();
  given.rows = "local";
  run_table(spec_, given);
  const std::string before = read_file(folder_ / "table/results/local-seed1.json");
  steps_ = 0;
  given.rows = "local,routing-w4";
  const TableOutcome outcome = run_table(spec_, given);
  EXPECT_EQ(outcome.before, 2);
  EXPECT_EQ(outcome.done, 2);
  EXPECT_EQ(steps_, 2 * 4);
  EXPECT_EQ(read_file(folder_ / "table/results/local-seed1.json"), before);
}

TEST_F(SmallTable, StoppedAnywhereItEndsAsIfUndisturbed) {
  TableOptions given = options("whole");
  given.rows = "local,routing-w4";
  run_table(spec_, given);
  given = options("cut");
  given.rows = "local,routing-w4";
  // Asked for before each run, step and window; every call gets a little further.
  int calls = 0;
  for (bool finished = false; !finished; ++calls) {
    ASSERT_LT(calls, 40);
    int asked = 0;
    given.observer.training.stop_requested = [&] { return ++asked > 2 + calls; };
    finished = run_table(spec_, given).end == TableEnd::finished;
  }
  EXPECT_GT(calls, 3);
  const auto whole = results("whole");
  const auto cut = results("cut");
  ASSERT_EQ(whole.size(), cut.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i].row, cut[i].row);
    EXPECT_EQ(whole[i].numbers, cut[i].numbers);
  }
}

TEST_F(SmallTable, PartsTogetherCoverEverythingOnce) {
  TableOptions given = options();
  given.part = {.index = 1, .count = 2};
  EXPECT_EQ(run_table(spec_, given).done, 3);
  EXPECT_EQ(results().size(), 3U);
  given.part = {.index = 2, .count = 2};
  const TableOutcome second = run_table(spec_, given);
  EXPECT_EQ(second.done, 3);
  EXPECT_EQ(second.before, 0);
  EXPECT_EQ(results().size(), 6U);
}

TEST(PlannedRuns, EachIsInExactlyOnePart) {
  const std::vector<std::size_t> rows{0, 3, 5, 6};
  const std::vector<std::uint64_t> seeds{1, 2, 7};
  const auto whole = planned_runs(rows, seeds, {});
  ASSERT_EQ(whole.size(), 12U);
  EXPECT_EQ(whole[4], (PlannedRun{0, 2}));
  for (const std::int64_t count : {1, 2, 3, 5, 20}) {
    std::set<std::pair<std::uint64_t, std::size_t>> seen;
    std::size_t total = 0;
    for (std::int64_t index = 1; index <= count; ++index) {
      for (const PlannedRun& run : planned_runs(rows, seeds, {index, count})) {
        seen.insert({run.seed, run.row});
        ++total;
      }
    }
    EXPECT_EQ(total, 12U);
    EXPECT_EQ(seen.size(), 12U);
  }
}

TEST(TableOptionsText, IsReadOrRefused) {
  EXPECT_EQ(parse_table_part("2/3").index, 2);
  EXPECT_EQ(parse_table_part("2/3").count, 3);
  for (const char* wrong : {"0/2", "3/2", "1", "a/b", "1/", "/2", "1/2/3", ""}) {
    EXPECT_THROW(parse_table_part(wrong), ConfigError) << wrong;
  }
  EXPECT_EQ(parse_seeds("3,1"), (std::vector<std::uint64_t>{3, 1}));
  for (const char* wrong : {"", "1,1", "x", "1,,2", "-1"}) EXPECT_THROW(parse_seeds(wrong), ConfigError) << wrong;
}

TEST_F(SmallTable, ARowThatAnotherProcessTrainsIsLeftOut) {
  fs::create_directories(folder_ / "table/runs/local-seed1");
  const RunLock lock(folder_ / "table/runs/local-seed1");
  TableOptions given = options();
  given.rows = "local";
  const TableOutcome outcome = run_table(spec_, given);
  EXPECT_EQ(outcome.busy, 1);
  EXPECT_EQ(outcome.done, 1);
  EXPECT_NE(notes_.find("local seed 1 is left out"), std::string::npos) << notes_;
}

TEST_F(SmallTable, ADivergedRowIsRecordedAndDoesNotStopTheRest) {
  spec_.rows[1].tiny.settings.insert(spec_.rows[1].tiny.settings.end(),
                                     {"train.learning_rate=1e30", "train.clip=0", "train.warmup_steps=0"});
  TableOptions given = options();
  given.rows = "local,routing-w4";
  given.seeds = {1};
  const TableOutcome outcome = run_table(spec_, given);
  EXPECT_EQ(outcome.failed, 1);
  EXPECT_EQ(outcome.done, 1);
  const auto all = results();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].row, "local");
  EXPECT_FALSE(all[0].failure.empty());
  EXPECT_EQ(all[0].value(), std::nullopt);
  EXPECT_TRUE(all[1].value().has_value());
  EXPECT_EQ(run_table(spec_, given).before, 2) << "a failed row is not run again";
}

TEST_F(SmallTable, WhatWasDecidedStays) {
  TableOptions given = options();
  given.rows = "local";
  given.seeds = {1};
  given.steps = 3;
  run_table(spec_, given);
  given.steps = 0;
  given.seeds = {2};
  run_table(spec_, given);
  EXPECT_EQ(results()[1].terms.steps, 3);
  const auto refusal = [&](const auto& change) {
    TableOptions other = given;
    change(other);
    return message_of<ConfigError>([&] { run_table(spec_, other); });
  };
  EXPECT_NE(refusal([](TableOptions& o) { o.steps = 5; }).find("3 steps, not 5"), std::string::npos);
  EXPECT_NE(refusal([](TableOptions& o) { o.scale = TableScale::paper; }).find("tiny scale, not paper"),
            std::string::npos);
  EXPECT_NE(refusal([](TableOptions& o) { o.settings = {"train.beta1=0.8"}; }).find("the same `settings`"),
            std::string::npos);
  EXPECT_NE(refusal([](TableOptions& o) { o.settings = {"train.steps=9"}; }).find("use `steps`"), std::string::npos);
  EXPECT_NE(refusal([](TableOptions& o) { o.settings = {"train.seed=9"}; }).find("use `seeds`"), std::string::npos);
  EXPECT_NE(refusal([](TableOptions& o) { o.data = ""; }).find("name any file with `data`"), std::string::npos);
  spec_.name = "another";
  EXPECT_THROW(run_table(spec_, given), Error);
}

TEST_F(SmallTable, MinutesBecomeEqualStepsInTens) {
  TableOptions given = options();
  given.rows = "local,routing-w4";
  given.minutes = 0.002;
  run_table(spec_, given);
  const auto all = results();
  ASSERT_EQ(all.size(), 4U);
  const std::int64_t steps = all[0].terms.steps;
  EXPECT_GE(steps, 10);
  EXPECT_EQ(steps % 10, 0);
  EXPECT_EQ(steps_, 4 * steps);
}

TEST_F(SmallTable, WarmUpIsCutForShortRuns) {
  const TableOptions given = options();
  TableTerms terms{.table = "small", .steps = 5};
  EXPECT_EQ(planned_config(spec_.rows[1], given, terms, 3).train.warmup_steps, 1);
  EXPECT_EQ(planned_config(spec_.rows[1], given, terms, 3).train.seed, 3U);
  EXPECT_EQ(planned_config(spec_.rows[1], given, terms, 3).train.steps, 5);
  terms.steps = 100;
  EXPECT_EQ(planned_config(spec_.rows[1], given, terms, 3).train.warmup_steps, 2);
  terms.settings = {"train.warmup_steps=77"};
  EXPECT_EQ(planned_config(spec_.rows[1], given, terms, 3).train.warmup_steps, 77);
}

// As at paper scale, where the systems of others have the steps of their papers.
TEST_F(SmallTable, RowsWhosePresetsDisagreeKeepTheirOwnSteps) {
  spec_.tiny_steps.reset();
  for (std::size_t row = 1; row < spec_.rows.size(); ++row) {
    spec_.rows[row].tiny.settings.push_back("train.steps=" + std::to_string(row == 1 ? 2 : 3));
  }
  TableOptions given = options();
  given.rows = "local,routing-w4";
  given.seeds = {1};
  run_table(spec_, given);
  EXPECT_EQ(steps_, 2 + 3);
  const auto all = results();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].terms.steps, TableTerms::kOwnSteps);
  EXPECT_EQ(all[0].train_tokens, 2 * 2 * 32);
  EXPECT_NE(notes_.find("at tiny scale, the steps of their presets, 2 runs"), std::string::npos) << notes_;
  given.steps = 2;
  EXPECT_NE(message_of<ConfigError>([&] { run_table(spec_, given); }).find("have the steps of their presets, not 2"),
            std::string::npos);
}

TEST_F(SmallTable, AnotherSelectionIsAnotherRow) {
  TableOptions given = options();
  given.rows = "local,routing-w4";
  given.seeds = {1};
  run_table(spec_, given);
  given.selection = RoutingSelection::nearest;
  const TableOutcome outcome = run_table(spec_, given);
  EXPECT_EQ(outcome.before, 1) << "local has no selection";
  EXPECT_EQ(outcome.done, 1);
  const auto all = results();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].row, "routing-w4-nearest");
  EXPECT_EQ(all[1].validity, "causal");
}

TEST_F(SmallTable, TheBestRowsAreThoseWithTheBestMeans) {
  const auto result = [&](const std::string& row, std::uint64_t seed, double value) {
    return RowResult{.terms = {.table = "small", .steps = 4},
                     .row = row,
                     .seed = seed,
                     .numbers = {{"bits_per_byte", value}},
                     .metric = "bits_per_byte"};
  };
  std::vector<RowResult> all{result("local", 1, 0.1), result("routing-w4", 1, 3.0), result("routing-w4", 2, 1.0),
                             result("routing-w8", 1, 1.9), result("routing-w4-nearest", 1, 0.2)};
  EXPECT_EQ(ranked_routed_rows(spec_, all, RoutingSelection::balanced), (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(ranked_routed_rows(spec_, all, RoutingSelection::nearest), (std::vector<std::size_t>{2}));
  spec_.metric.lower_is_better = false;
  EXPECT_EQ(ranked_routed_rows(spec_, all, RoutingSelection::balanced), (std::vector<std::size_t>{2, 3}));
  for (const RowResult& one : all) TableFolder(folder_ / "table").write_result(one);
  TableOptions given = options();
  given.rows = "best:1";
  given.seeds = {7};
  spec_.metric.lower_is_better = true;
  run_table(spec_, given);
  EXPECT_TRUE(fs::exists(folder_ / "table/results/routing-w8-seed7.json"));
  EXPECT_FALSE(fs::exists(folder_ / "table/results/routing-w4-seed7.json"));
}

TEST_F(SmallTable, ARowsEvaluationMayBeAnyFunctionOfItsModel) {
  spec_.metric.key = "layers";
  spec_.evaluate = [](const RowToEvaluate& row) {
    return RowNumbers{{"layers", static_cast<double>(load_model(row.model)->config().model.layers)}};
  };
  TableOptions given = options();
  given.rows = "local";
  run_table(spec_, given);
  EXPECT_EQ(results()[0].value(), 1.0);
  EXPECT_EQ(results()[0].number("bits_per_byte"), std::nullopt);
}

TEST_F(SmallTable, TimedRowsTakeTurnsAndKnowTheirRatio) {
  spec_.kind = TableKind::timed;
  spec_.metric = {.key = "steps_per_second", .name = "steps/s", .lower_is_better = false};
  spec_.data = "";
  TableOptions given = options();
  given.data = "";
  given.seeds = {1};
  EXPECT_EQ(run_table(spec_, given).done, 1);
  const auto all = results();
  ASSERT_EQ(all.size(), 3U);
  for (const RowResult& result : all) {
    EXPECT_GT(*result.value(), 0.0);
    EXPECT_NEAR(*result.value() * *result.number("seconds_per_step"), 1.0, 1e-12);
    EXPECT_LE(*result.number("lower_quartile"), *result.number("upper_quartile"));
    EXPECT_GT(*result.number("slower_than_baseline"), 0.0);
  }
  EXPECT_EQ(all[0].row, "local");
  EXPECT_EQ(all[0].number("slower_than_baseline"), 1.0);
  EXPECT_EQ(run_table(spec_, given).before, 1);
  given.part = {1, 2};
  EXPECT_THROW(run_table(spec_, given), ConfigError);
}

TEST_F(SmallTable, AStepIsTimedOnDataOrOnMadeUpTokens) {
  const ExperimentConfig config = planned_config(spec_.rows[2], options(), {.table = "small", .steps = 4}, 1);
  EXPECT_GT(StepTimer(config).seconds_of_a_step(), 0.0);
  const auto data = open_training_data(config);
  EXPECT_GT(StepTimer(config, data.get()).seconds_of_a_step(), 0.0);
}

TEST_F(SmallTable, ResultsComeBackFromTheirFilesAndStrangersAreRefused) {
  const TableFolder folder(folder_ / "table");
  RowResult result{.terms = {.table = "small", .scale = TableScale::paper, .steps = 7, .settings = {"a=b"}},
                   .row = "local",
                   .seed = 9,
                   .failure = "diverged",
                   .numbers = {{"nats", 0.1}, {"odd", std::nan("")}},
                   .metric = "nats",
                   .steps_per_second = 1.0 / 3.0,
                   .train_tokens = 5,
                   .seconds = 2.5,
                   .validity = "causal",
                   .data_label = "partial data",
                   .data_hash = "0123456789abcdef",
                   .date = "2026-11-16T12:00:00Z",
                   .version = "test"};
  folder.write_result(result);
  const RowResult read = folder.read_results("small").at(0);
  EXPECT_EQ(to_json(read), to_json(result));
  EXPECT_EQ(read.steps_per_second, result.steps_per_second);
  EXPECT_EQ(read.terms, result.terms);
  EXPECT_EQ(read.failure, "diverged");
  result.seed = 10;
  result.data_hash = "fedcba9876543210";
  folder.write_result(result);
  EXPECT_NE(message_of<FileError>([&] { folder.read_results("small"); }).find("fedcba9876543210"), std::string::npos);
  result.data_hash = "";
  folder.write_result(result);
  EXPECT_EQ(folder.read_results("small").size(), 2U) << "results of earlier versions do not say";
  result.terms.steps = 8;
  folder.write_result(result);
  EXPECT_NE(message_of<FileError>([&] { folder.read_results("small"); }).find("8 steps"), std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { folder.read_results("other"); }).find("is of the table small"),
            std::string::npos);
  write_file_at_once(folder_ / "table/results/a.json", "{}");
  EXPECT_THROW(folder.read_results("small"), FileError);
  EXPECT_EQ(utc_now().size(), std::string("2026-11-16T12:00:00Z").size());
}

}  // namespace
}  // namespace routing::table_run_test
