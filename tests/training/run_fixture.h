// A run directory with a small text and a small model, for tests of the loop.
#pragma once

#include "routing/core/files.h"
#include "routing/model/weights.h"
#include "routing/training/trainer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace routing {

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
    return named_tensors(*load_sequence_model(RunDirectory(folder_ / run).find_checkpoint("last").model()));
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

}  // namespace routing
