// What a run survives and what it refuses: divergence, full disks, other configurations, other data, damaged files.
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/training/trainer.h"
#include "support/file_size_limit.h"
#include "support/message_of.h"
#include "training/run_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace routing::trainer_failures_test {
namespace {

std::string divergence_of(Trainer& trainer) {
  try {
    trainer.run();
  } catch (const NotFiniteError& error) {
    return error.what();
  }
  return "";
}

TEST_F(Training, OldCheckpointsGoButTheBestStaysHoweverOldItIs) {
  const RunDirectory run(folder_ / "run");
  for (std::int64_t step = 1; step <= 6; ++step) {
    fs::create_directories(run.checkpoint(step).folder);
    std::ofstream(run.checkpoint(step).folder / "DONE") << "";
  }
  const auto left = [&] {
    std::vector<std::int64_t> steps;
    for (const CheckpointPlace& place : run.whole_checkpoints()) steps.push_back(place.step);
    return steps;
  };
  run.remove_old_checkpoints(6, 2);
  EXPECT_EQ(left().size(), 6U);
  run.remove_old_checkpoints(2, 2);
  EXPECT_EQ(left(), (std::vector<std::int64_t>{2, 5, 6}));
  EXPECT_FALSE(fs::exists(run.checkpoint(1).folder));
  run.remove_old_checkpoints(2, 5);
  EXPECT_EQ(left(), (std::vector<std::int64_t>{5, 6}));
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

TEST_F(Training, ARunThatDivergesKeepsACheckpointThatDidNot) {
  config_.train.checkpoint_every = 1;
  config_.train.eval_every = 0;
  config_.train.warmup_steps = 0;
  config_.train.clip = 0.0;
  config_.train.schedule = ScheduleKind::constant;
  train("run", false, 4);
  config_.train.learning_rate = 1e30;
  Trainer trainer(setup("run", true));
  const std::string message = divergence_of(trainer);
  EXPECT_NE(message.find("go on from the checkpoint of step 5 by `resume` with a lower"), std::string::npos) << message;
  EXPECT_NE(message.find("step-00000005: step 4 is still there"), std::string::npos) << message;
  const auto kept = RunDirectory(folder_ / "run").whole_checkpoints();
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept.front().step, 4);
  const std::vector<std::uint8_t> text(100, 'a');
  EXPECT_TRUE(std::isfinite(token_likelihood(*load_model(kept.front().model()), text, {.sequence_length = 32}).nats));
}

TEST_F(Training, GoesOnAfterDivergingWithASmallerLearningRateWhichIsSaidLoggedAndKept) {
  train("run", false, 4);
  const std::string before = read_file(folder_ / "run/config.toml");
  config_.train.learning_rate = 1e-5;
  std::vector<std::string> notes;
  Trainer::Setup given = setup("run", true);
  given.notes = [&](const std::string& note) { notes.push_back(note); };
  {
    Trainer trainer(given);
    EXPECT_EQ(trainer.run().end, TrainingEnd::finished);
  }
  EXPECT_NE(std::find(notes.begin(), notes.end(), "train.learning_rate is 1e-05 from step 4 on, 0.001 before"),
            notes.end())
      << nlohmann::json(notes);
  EXPECT_EQ(read_file(folder_ / "run/config-to-step-00000004.toml"), before);
  const auto lines = metrics("run");
  const auto changed =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.contains("changed"); });
  ASSERT_NE(changed, lines.end());
  EXPECT_EQ(changed->at("step"), 4);
  EXPECT_EQ(changed->at("changed"),
            (nlohmann::ordered_json{{"train.learning_rate", {{"before", "0.001"}, {"now", "1e-05"}}}}));
  // Unchanged from then on.
  notes.clear();
  const Trainer again(given);
  EXPECT_TRUE(notes.empty()) << nlohmann::json(notes);
}

// Short sequences first, then long ones: weights, optimiser and centroids go on, and the log says from where.
TEST_F(Training, SequencesMayGrowWhereNothingIsRemembered) {
  train("run", false, 4);
  const std::int64_t tokens_before = 4 * config_.train.batch_size * config_.train.sequence_length;
  config_.train.sequence_length *= 2;
  config_.train.batch_size = 1;
  config_.routing.routing().window *= 2;
  std::vector<std::string> notes;
  Trainer::Setup given = setup("run", true);
  given.notes = [&](const std::string& note) { notes.push_back(note); };
  {
    Trainer trainer(given);
    EXPECT_EQ(trainer.learner().steps_done(), 4);
    const TrainingResult result = trainer.run();
    EXPECT_EQ(result.end, TrainingEnd::finished);
    EXPECT_EQ(result.state.tokens, tokens_before + (config_.train.steps - 4) * config_.train.sequence_length);
  }
  const std::string length = std::to_string(config_.train.sequence_length);
  EXPECT_NE(std::find(notes.begin(), notes.end(),
                      "train.sequence_length is " + length + " from step 4 on, " +
                          std::to_string(config_.train.sequence_length / 2) + " before"),
            notes.end())
      << nlohmann::json(notes);
  const auto lines = metrics("run");
  const auto changed =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.contains("changed"); });
  ASSERT_NE(changed, lines.end());
  EXPECT_EQ(changed->at("changed").size(), 3U) << *changed;
  EXPECT_TRUE(changed->at("changed").contains("routing.window"));
  ExperimentConfig remembers = config_;
  remembers.memory.length = 8;
  ExperimentConfig longer = remembers;
  longer.train.sequence_length *= 2;
  EXPECT_THROW(require_same_run(remembers, longer, "run"), ConfigError);
  EXPECT_NO_THROW(require_same_run(config_, longer = config_, "run"));
}

TEST_F(Training, FewerStepsThanTheRunHasAreRefusedAndNothingIsWritten) {
  train("run", false, 6);
  const std::string before = read_file(folder_ / "run/config.toml");
  config_.train.steps = 4;
  config_.train.learning_rate = 1e-5;
  try {
    const Trainer trainer(setup("run", true));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("is at step 6 already, but train.steps is 4"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(read_file(folder_ / "run/config.toml"), before);
}

TEST_F(Training, ARunThatIsAtItsEndLeavesNothingNew) {
  train("run", false);
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "run")) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  const std::vector<std::string> before = files();
  const TrainingResult result = train("run", true);
  EXPECT_EQ(result.end, TrainingEnd::finished);
  EXPECT_EQ(result.steps, 0);
  EXPECT_EQ(files(), before);
}

TEST_F(Training, AnEvaluationThatIsNotFiniteIsAnErrorAndIsNotSaved) {
  config_.train.steps = 1;
  config_.train.learning_rate = 1e30;
  config_.train.warmup_steps = 0;
  config_.train.clip = 0.0;
  config_.train.schedule = ScheduleKind::constant;
  Trainer trainer(setup("run"));
  const std::string message = divergence_of(trainer);
  EXPECT_NE(message.find("nothing was saved yet: begin again with a lower train.learning_rate"), std::string::npos)
      << message;
  EXPECT_FALSE(RunDirectory(folder_ / "run").newest_checkpoint().has_value());
}

TEST_F(Training, TwoProcessesCannotTrainIntoOneFolder) {
  const Trainer first(setup("run"));
  EXPECT_THROW(Trainer{setup("run", true)}, FileError);
}

TEST_F(Training, ALockIsSeenWhileItIsHeldAndAskingLeavesItAlone) {
  EXPECT_FALSE(is_locked(folder_)) << "there is none";
  {
    const RunLock lock(folder_);
    EXPECT_TRUE(is_locked(folder_));
    EXPECT_TRUE(is_locked(folder_));
    EXPECT_THROW(RunLock second(folder_), BusyError);
  }
  EXPECT_FALSE(is_locked(folder_));
}

TEST_F(Training, AnExportedModelIsNotTrainedOver) {
  train("run", false);
  fs::create_directories(folder_ / "export");
  for (const char* name : {"config.toml", "metrics.jsonl"}) {
    fs::copy_file(folder_ / "run" / name, folder_ / "export" / name);
  }
  fs::copy_file(RunDirectory(folder_ / "run").find_checkpoint("last").model(), folder_ / "export/model.safetensors");
  EXPECT_TRUE(RunDirectory(folder_ / "export").is_export());
  EXPECT_FALSE(RunDirectory(folder_ / "run").is_export());
  const std::string log = read_file(folder_ / "export/metrics.jsonl");
  for (const bool resume : {true, false}) {
    EXPECT_NE(message_of<ConfigError>([&] { train("export", resume); }).find("holds an exported model"),
              std::string::npos);
  }
  EXPECT_EQ(read_file(folder_ / "export/metrics.jsonl"), log);
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

// Such a number would be undefined as a step, and -2 no step.
TEST(TrainerStateText, CountsThatAreNoneAreRefused) {
  const std::string text = to_text(TrainerState());
  for (const std::string key : {"step", "tokens", "loss_steps", "last_eval_step", "best_step", "data_tokens"}) {
    for (const char* const value :
         {"1e300", "1.5", "-2", "9223372036854775808", "18446744073709551615", "[[]]", "\"3\""}) {
      auto json = nlohmann::ordered_json::parse(text);
      json[key] = nlohmann::ordered_json::parse(value);
      const std::string message = message_of<FileError>([&] { state_from_text(json.dump(), "run/trainer.json"); });
      EXPECT_EQ(message.find("run/trainer.json: is not the trainer.json of a checkpoint"), 0U) << key << " " << value;
      EXPECT_NE(message.find("a count was expected"), std::string::npos) << message;
    }
  }
  EXPECT_EQ(state_from_text(text, "run/trainer.json").best_step, -1);
}

}  // namespace
}  // namespace routing::trainer_failures_test
