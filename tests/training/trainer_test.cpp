// The loop over a run directory: exact resume, retention, stops, and refusals.
#include "routing/training/trainer.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/model/weights.h"
#include "support/file_size_limit.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

class Training : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("routing-trainer-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 2000; ++i) text << "line " << i * i % 97 << " of the text\n";
    config_ = small_experiment();
    config_.model.residual_dropout = 0.1;
    config_.data.path = (folder_ / "text").string();
    config_.train.steps = 12;
    config_.train.log_every = 4;
    config_.train.eval_every = 5;
    config_.train.eval_tokens = 100;
    config_.train.checkpoint_every = 3;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Trainer::Setup setup(const std::string& run, bool resume = false) const {
    return {.config = config_, .run = folder_ / run, .resume = resume, .version = "test"};
  }

  // Runs until the step after which the stop is asked for; -1 for no stop.
  TrainingResult train(const std::string& run, bool resume, std::int64_t stop_after = -1) {
    Trainer::Setup given = setup(run, resume);
    std::int64_t seen = 0;
    given.observer.step = [&](const StepReport& report) { seen = report.step; };
    given.observer.stop_requested = [&] { return stop_after >= 0 && seen >= stop_after; };
    Trainer trainer(given);
    return trainer.run();
  }

  std::vector<nlohmann::ordered_json> metrics(const std::string& run) const {
    auto lines = read_metrics(folder_ / run / "metrics.jsonl");
    for (auto& line : lines) {
      line.erase("seconds");
      line.erase("tokens_per_second");
    }
    return lines;
  }

  std::map<std::string, at::Tensor> weights(const std::string& run) const {
    return named_tensors(*load_model(RunDirectory(folder_ / run).find_checkpoint("last").model()));
  }

  void expect_same_end(const std::string& run, const std::string& other) const {
    const auto a = weights(run);
    const auto b = weights(other);
    for (const auto& [name, value] : a) EXPECT_TRUE(at::equal(value, b.at(name))) << name;
    EXPECT_EQ(metrics(run), metrics(other));
    const CheckpointPlace first = RunDirectory(folder_ / run).find_checkpoint("last");
    const CheckpointPlace second = RunDirectory(folder_ / other).find_checkpoint("last");
    EXPECT_EQ(read_file(first.state()), read_file(second.state()));
    auto first_state = nlohmann::json::parse(read_file(first.trainer()));
    auto second_state = nlohmann::json::parse(read_file(second.trainer()));
    first_state.erase("seconds");
    second_state.erase("seconds");
    EXPECT_EQ(first_state, second_state);
  }

  fs::path folder_;
  ExperimentConfig config_;
};

TEST_F(Training, WritesWhatTheDesignSays) {
  const TrainingResult result = train("run", false);
  EXPECT_EQ(result.end, TrainingEnd::finished);
  EXPECT_EQ(result.state.step, 12);
  EXPECT_EQ(result.state.tokens, 12 * 2 * 32);
  EXPECT_EQ(RunDirectory(folder_ / "run").read_config(), config_);
  const auto lines = metrics("run");
  std::vector<std::int64_t> trained;
  std::vector<std::int64_t> evaluated;
  for (const auto& line : lines) {
    EXPECT_EQ(line.at("validity"), "causal");
    if (line.contains("train_loss_nats")) trained.push_back(line.at("step"));
    if (line.contains("eval_loss_nats")) {
      evaluated.push_back(line.at("step"));
      EXPECT_EQ(line.at("eval_bytes"), 100);
      EXPECT_TRUE(line.contains("eval_routing_occupancy_entropy_min"));
    }
  }
  EXPECT_EQ(trained, (std::vector<std::int64_t>{4, 8, 12}));
  EXPECT_EQ(evaluated, (std::vector<std::int64_t>{5, 10, 12}));
  const fs::path last = folder_ / "run/checkpoints/step-00000012";
  for (const char* name : {"model.safetensors", "state.safetensors", "trainer.json", "DONE"}) {
    EXPECT_TRUE(fs::exists(last / name)) << name;
  }
  bool events = false;
  for (const auto& entry : fs::directory_iterator(folder_ / "run")) {
    events |= entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0;
  }
  EXPECT_TRUE(events);
}

TEST_F(Training, StoppedAfterAnyStepAndResumedEndsWithTheSameBitsAndLog) {
  train("whole", false);
  for (std::int64_t stop = 1; stop <= 11; ++stop) {
    const std::string run = "stopped-" + std::to_string(stop);
    const TrainingResult part = train(run, false, stop);
    EXPECT_EQ(part.end, TrainingEnd::interrupted);
    EXPECT_EQ(part.state.step, stop);
    EXPECT_EQ(train(run, true).end, TrainingEnd::finished);
    expect_same_end("whole", run);
  }
}

// What a kill leaves behind: lines after the checkpoint, a torn line, half a checkpoint.
TEST_F(Training, LeftoversOfAKillAreCutBack) {
  train("whole", false);
  train("killed", false, 7);
  {
    std::ofstream log(folder_ / "killed/metrics.jsonl", std::ios::app);
    log << R"({"step":8,"train_loss_nats":9.0})"
        << "\n"
        << R"({"step":9,"train)";
  }
  const fs::path half = folder_ / "killed/checkpoints/step-00000009";
  fs::create_directories(half);
  std::ofstream(half / "model.safetensors") << "half";
  fs::create_directories(folder_ / "killed/checkpoints/step-00000009.partial");
  train("killed", true);
  expect_same_end("whole", "killed");
  EXPECT_FALSE(fs::exists(folder_ / "killed/checkpoints/step-00000009.partial"));
}

TEST_F(Training, ResumeWithoutAnyCheckpointStartsFromTheBeginning) {
  train("whole", false);
  RunDirectory(folder_ / "bare").create(config_);
  std::ofstream(folder_ / "bare/metrics.jsonl") << R"({"step":1,"train_loss_nats":9.0})"
                                                << "\n";
  train("bare", true);
  expect_same_end("whole", "bare");
  train("new", true);
  expect_same_end("whole", "new");
}

TEST_F(Training, AFinishedRunResumedChangesNothing) {
  train("run", false);
  const auto before = metrics("run");
  EXPECT_EQ(train("run", true).end, TrainingEnd::finished);
  EXPECT_EQ(metrics("run"), before);
}

TEST_F(Training, KeepsTheNewestAndTheBestCheckpoints) {
  config_.train.keep_checkpoints = 2;
  const TrainingResult result = train("run", false);
  std::vector<std::int64_t> steps;
  for (const CheckpointPlace& place : RunDirectory(folder_ / "run").whole_checkpoints()) steps.push_back(place.step);
  EXPECT_EQ(steps.back(), 12);
  EXPECT_LE(steps.size(), 3U);
  EXPECT_NE(std::find(steps.begin(), steps.end(), result.state.best_step), steps.end());
  const RunDirectory run(folder_ / "run");
  EXPECT_EQ(run.find_checkpoint("best").step, result.state.best_step);
  EXPECT_EQ(run.find_checkpoint("last").step, 12);
  EXPECT_EQ(run.find_checkpoint("12").step, 12);
  EXPECT_THROW(run.find_checkpoint("77"), FileError);
  EXPECT_THROW(run.find_checkpoint("newest"), FileError);
}

TEST_F(Training, RefusesARunThatIsThereAndAnotherConfiguration) {
  train("run", false, 3);
  EXPECT_THROW(Trainer{setup("run")}, ConfigError);
  config_.model.width = 32;
  try {
    const Trainer trainer(setup("run", true));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("model.width (run: 16, asked: 32)"), std::string::npos) << error.what();
  }
  config_.model.width = 16;
  config_.train.steps = 5;
  EXPECT_EQ(train("run", true).state.step, 5);
}

TEST_F(Training, RefusesOtherData) {
  train("run", false, 3);
  {
    std::fstream text(folder_ / "text", std::ios::in | std::ios::out);
    text << "L";
  }
  EXPECT_THROW(Trainer{setup("run", true)}, ConfigError);
}

// Accumulation, the other order of data, bf16 and recomputed layers, each stopped twice.
TEST_F(Training, EveryWayOfTrainingResumesExactly) {
  config_.train.accumulation = 2;
  config_.train.order = DataOrder::contiguous;
  config_.train.precision = Precision::bf16;
  config_.model.checkpoint_activations = true;
  train("whole", false);
  train("cut", false, 5);
  train("cut", true, 8);
  train("cut", true);
  expect_same_end("whole", "cut");
}

// The step that wrecks the weights has a finite loss itself; the checkpoint before it must still be there.
TEST_F(Training, ARunThatDivergesKeepsACheckpointThatDidNot) {
  config_.train.checkpoint_every = 1;
  config_.train.eval_every = 0;
  config_.train.warmup_steps = 0;
  config_.train.clip = 0.0;
  config_.train.schedule = ScheduleKind::constant;
  train("run", false, 4);
  config_.train.learning_rate = 1e30;
  Trainer trainer(setup("run", true));
  EXPECT_THROW(trainer.run(), NotFiniteError);
  const auto kept = RunDirectory(folder_ / "run").whole_checkpoints();
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept.front().step, 4);
  const std::vector<std::uint8_t> text(100, 'a');
  EXPECT_TRUE(std::isfinite(byte_likelihood(*load_model(kept.front().model()), text, {.sequence_length = 32}).nats));
}

TEST_F(Training, GoesOnAfterDivergingWithASmallerLearningRate) {
  train("run", false, 4);
  config_.train.learning_rate = 1e-5;
  EXPECT_EQ(train("run", true).end, TrainingEnd::finished);
}

TEST_F(Training, AnEvaluationThatIsNotFiniteIsAnErrorAndIsNotSaved) {
  config_.train.steps = 1;
  config_.train.learning_rate = 1e30;
  config_.train.warmup_steps = 0;
  config_.train.clip = 0.0;
  config_.train.schedule = ScheduleKind::constant;
  Trainer trainer(setup("run"));
  EXPECT_THROW(trainer.run(), NotFiniteError);
  EXPECT_FALSE(RunDirectory(folder_ / "run").newest_checkpoint().has_value());
}

TEST_F(Training, OutOfTimeEvaluatesAndSavesOnceHoweverOftenItIsResumed) {
  config_.train.minutes = 1e-6;
  const TrainingResult result = train("run", false);
  EXPECT_EQ(result.end, TrainingEnd::out_of_time);
  EXPECT_LT(result.state.step, 12);
  const auto lines = metrics("run");
  const auto written = fs::last_write_time(RunDirectory(folder_ / "run").find_checkpoint("last").model());
  for (int again = 0; again < 2; ++again) EXPECT_EQ(train("run", true).end, TrainingEnd::out_of_time);
  EXPECT_EQ(metrics("run"), lines);
  EXPECT_EQ(fs::last_write_time(RunDirectory(folder_ / "run").find_checkpoint("last").model()), written)
      << "weights of a step are written once";
}

TEST_F(Training, TwoProcessesCannotTrainIntoOneFolder) {
  const Trainer first(setup("run"));
  EXPECT_THROW(Trainer{setup("run", true)}, FileError);
}

TEST_F(Training, ACheckpointOfAnotherConfigurationWithEqualShapesIsRefused) {
  train("run", false, 3);
  config_.train.seed = 2;
  train("other", false, 3);
  fs::remove_all(folder_ / "other/checkpoints/step-00000003");
  fs::copy(folder_ / "run/checkpoints/step-00000003", folder_ / "other/checkpoints/step-00000003");
  EXPECT_THROW(Trainer{setup("other", true)}, ConfigError);
}

TEST_F(Training, FilesOfDifferentCheckpointsAreRefused) {
  config_.train.keep_checkpoints = 9;
  train("run", false, 6);
  const RunDirectory run(folder_ / "run");
  fs::copy_file(run.checkpoint(3).state(), run.checkpoint(6).state(), fs::copy_options::overwrite_existing);
  EXPECT_THROW(Trainer{setup("run", true)}, FileError);
}

TEST_F(Training, TheBestStartsAnewWhenOtherTextIsEvaluated) {
  train("run", false, 6);
  config_.eval.split = "train";
  Trainer trainer(setup("run", true));
  EXPECT_EQ(trainer.state().best_step, -1);
}

TEST_F(Training, PrecisionIsResolvedBeforeItIsKept) {
  config_.train.precision = Precision::automatic;
  const Trainer trainer(setup("run"));
  EXPECT_NE(RunDirectory(folder_ / "run").read_config().train.precision, Precision::automatic);
}

// A disk that is full while a checkpoint is written: the one before stays, nothing half is left.
TEST_F(Training, AFullDiskDuringASaveKeepsTheCheckpointBefore) {
  train("run", false, 4);
  Trainer::Setup given = setup("run", true);
  // Logs stay below the limit, model.safetensors does not.
  const FileSizeLimit limit(20000);
  Trainer trainer(given);
  try {
    trainer.run();
    FAIL() << "the save should have failed";
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find("model.safetensors"), std::string::npos) << error.what();
  }
  const auto kept = RunDirectory(folder_ / "run").whole_checkpoints();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].step, 4);
  for (const auto& entry : fs::directory_iterator(folder_ / "run/checkpoints")) {
    EXPECT_EQ(entry.path(), kept[0].folder);
  }
}

TEST_F(Training, EvaluatesThePartThatIsAskedFor) {
  config_.data.split = "100%/0%/0%";
  config_.eval.split = "train";
  EXPECT_GT(train("run", false).state.best_step, 0);
  // Of a short text a small share may be nothing.
  config_.eval.split = "valid";
  config_.data.split = "99%/0.0001%/0.9999%";
  fs::resize_file(folder_ / "text", 900);
  EXPECT_THROW(Trainer{setup("other")}, ConfigError);
}

TEST_F(Training, AFileWhereTheFolderShouldBeIsReported) {
  std::ofstream(folder_ / "taken") << "x";
  EXPECT_THROW(Trainer{setup("taken")}, FileError);
  EXPECT_THROW(RunDirectory(folder_ / "nothing").read_config(), FileError);
  EXPECT_THROW(RunDirectory(folder_ / "nothing").find_checkpoint("last"), FileError);
}

TEST_F(Training, ATrainerFileOfAnotherStepIsRefused) {
  train("run", false, 3);
  const RunDirectory run(folder_ / "run");
  fs::rename(run.checkpoint(3).folder, run.checkpoint(4).folder);
  EXPECT_THROW(Trainer{setup("run", true)}, FileError);
  write_file_at_once(run.checkpoint(4).trainer(), std::string("not json"));
  EXPECT_THROW(Trainer{setup("run", true)}, FileError);
}

}  // namespace
}  // namespace routing
