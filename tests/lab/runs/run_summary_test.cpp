#include "lab/runs/run_summary.h"

#include "lab/runs/model_header.h"
#include "routing/config/parameter_count.h"
#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/model/weights.h"
#include "routing/training/run_lock.h"
#include "support/message_of.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace routing::run_summary_test {
namespace {

namespace fs = std::filesystem;

class RunSummaryTest : public testing::Test {
 protected:
  ExperimentConfig config_of(std::int64_t steps) const {
    ExperimentConfig config = small_experiment();
    config.data.path = "/somewhere/text/";
    config.train.steps = steps;
    return config;
  }
  // A run that has logged this step.
  fs::path make_run(const std::string& name, std::int64_t steps, const std::string& log) const {
    fs::create_directories(folder_ / name);
    write_file_at_once(folder_ / name / "config.toml", to_toml(config_of(steps)));
    if (!log.empty()) write_file_at_once(folder_ / name / "metrics.jsonl", log);
    return folder_ / name;
  }
  static std::string line(std::int64_t step, double loss) {
    return "{\"step\":" + std::to_string(step) + ",\"train_loss_nats\":" + std::to_string(loss) +
           ",\"train_bits_per_byte\":" + std::to_string(loss) + ",\"tokens\":10,\"seconds\":60}\n";
  }
  TemporaryFolder folder_;
};

TEST_F(RunSummaryTest, AHistoryThatIsKnownIsNotReadAgain) {
  const fs::path run = make_run("run", 20, "no history");
  RunHistory known;
  known.step = 20;
  known.validity = "causal";
  const RunSummary summary = summarize_run(run, [&] { return known; });
  EXPECT_EQ(summary.problem, "");
  EXPECT_EQ(summary.history.step, 20);
  EXPECT_EQ(summary.state, RunState::finished);
  EXPECT_EQ(summarize_run(run, []() -> RunHistory { throw FileError("as it is"); }).problem, "as it is");
  const fs::path bare = make_run("bare", 20, "");
  EXPECT_EQ(summarize_run(bare, []() -> RunHistory { throw FileError("not asked"); }).problem, "");
}

TEST_F(RunSummaryTest, ParametersInAHeaderAreThoseOfTheModel) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  std::vector<ContentCase> all = content_cases();
  for (const ContentCase& pairs : pairs_cases()) all.push_back(pairs);
  for (const ContentCase& each : all) {
    const auto path = folder_ / "model.safetensors";
    save_model(path, *make_model(each.config, options), {.version = "1"});
    const ModelHeader header = read_model_header(path);
    EXPECT_EQ(header.parameters, count_parameters(each.config).total()) << each.name;
    EXPECT_EQ(header.config(), each.config) << each.name;
    EXPECT_EQ(header.text("version"), "1");
    EXPECT_EQ(header.text("audit"), "");
  }
  EXPECT_NE(message_of<FileError>([] { ModelHeader().config(); }).find("holds no 'config'"), std::string::npos);
}

TEST_F(RunSummaryTest, StatesFollowFromLogAndLock) {
  EXPECT_EQ(summarize_run(make_run("new", 10, "")).state, RunState::stopped);
  EXPECT_EQ(summarize_run(make_run("half", 10, line(1, 5) + line(5, 3))).state, RunState::stopped);
  EXPECT_EQ(summarize_run(make_run("lost", 10, line(1, 5) + line(5, 8))).state, RunState::diverged);
  const fs::path done = make_run("done", 10, line(1, 5) + line(10, 3));
  EXPECT_EQ(summarize_run(done).state, RunState::finished);
  {
    const RunLock lock(done);
    EXPECT_EQ(summarize_run(done).state, RunState::running);
  }
  ExperimentConfig timed = config_of(1000);
  timed.train.minutes = 1.0;
  write_file_at_once(done / "config.toml", to_toml(timed));
  EXPECT_EQ(summarize_run(done).state, RunState::finished) << "its minute is over";
}

TEST_F(RunSummaryTest, FactsComeFromConfigurationLogAndCheckpoint) {
  const fs::path run = make_run("run", 10, line(1, 5) + line(4, 3));
  RunSummary summary = summarize_run(run);
  EXPECT_EQ(summary.problem, "");
  EXPECT_EQ(summary.data, "text");
  EXPECT_EQ(summary.history.step, 4);
  EXPECT_EQ(summary.steps, 10);
  EXPECT_EQ(summary.history.validity, "causal");
  EXPECT_FALSE(summary.parameters.has_value());
  EXPECT_GT(summary.changed, 0);
  const auto model = make_model(config_of(10), at::TensorOptions().dtype(at::kFloat));
  save_model(run / "model.safetensors", *model, {.version = "1", .audit = "causal; 64 positions"});
  summary = summarize_run(run);
  EXPECT_EQ(summary.state, RunState::exported);
  EXPECT_EQ(summary.parameters, count_parameters(config_of(10)).total());
  EXPECT_EQ(summary.audit, "causal; 64 positions");
}

TEST_F(RunSummaryTest, RunsAreFoundBelowAndBrokenOnesSayWhy) {
  make_run("b/deep/run", 10, "");
  make_run("a", 10, "");
  make_run("a/inside", 10, "");
  make_run(".hidden", 10, "");
  fs::create_directories(folder_ / "notes");
  fs::create_directories(folder_ / "foreign");
  write_file_at_once(folder_ / "foreign" / "config.toml", "baseURL = 'https://example.org'\n");
  fs::create_directories(folder_ / "lost/checkpoints");
  make_run("torn", 10, "not JSON\n");
  fs::create_directory_symlink(folder_.path(), folder_ / "circle");
  std::vector<fs::path> expected;
  for (const char* name : {"a", "b/deep/run", "foreign", "lost", "torn"}) expected.push_back(folder_ / name);
  EXPECT_EQ(find_runs(folder_.path()), expected);
  EXPECT_EQ(find_runs(folder_ / "a"), (std::vector{folder_ / "a"})) << "a run itself";
  EXPECT_EQ(summarize_run(expected[0]).problem, "");
  EXPECT_NE(summarize_run(expected[2]).problem.find("baseURL"), std::string::npos);
  EXPECT_NE(summarize_run(expected[3]).problem.find("config.toml is missing"), std::string::npos);
  EXPECT_NE(summarize_run(expected[4]).problem.find("line 1 is not a JSON object"), std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { find_runs(folder_ / "nowhere"); }).find("is not a folder"), std::string::npos);
}

}  // namespace
}  // namespace routing::run_summary_test
