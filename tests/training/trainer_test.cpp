// The loop over a run directory: what it writes, exact resume, stops.
#include "routing/training/trainer.h"

#include "routing/core/error.h"
#include "training/run_fixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace routing::trainer_test {
namespace {

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
      EXPECT_EQ(line.at("eval_tokens"), 100);
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

TEST_F(Training, TheBestEvaluationIsThatOfTheLowestLoss) {
  config_.train.eval_every = 1;
  Trainer::Setup given = setup("run");
  double lowest = std::numeric_limits<double>::infinity();
  std::int64_t step_of_lowest = -1, times_best = 0;
  given.observer.evaluation = [&](const EvaluationReport& report) {
    EXPECT_EQ(report.best, report.nats_per_token < lowest) << report.step;
    if (report.nats_per_token >= lowest) return;
    lowest = report.nats_per_token;
    step_of_lowest = report.step;
    ++times_best;
  };
  Trainer trainer(given);
  const TrainerState state = trainer.run().state;
  EXPECT_GT(times_best, 1) << "nothing was learned";
  EXPECT_EQ(state.best_step, step_of_lowest);
  EXPECT_EQ(state.best_eval_nats, lowest);
  EXPECT_EQ(RunDirectory(folder_ / "run").find_checkpoint("best").step, step_of_lowest);
}

// Nothing is learned between: so a step of two batches costs the mean of what two steps of one cost.
TEST_F(Training, AStepOfSeveralBatchesTakesThemOneAfterTheOther) {
  config_.model.residual_dropout = 0.0;
  config_.attention.content = PatternKind::local;
  config_.train.learning_rate = 1e-30;
  config_.train.log_every = 1;
  const auto losses = [&](const std::string& run, std::int64_t steps, std::int64_t accumulation) {
    config_.train.steps = steps;
    config_.train.accumulation = accumulation;
    train(run, false);
    std::vector<double> found;
    for (const auto& line : metrics(run)) {
      if (line.contains("train_loss_nats")) found.push_back(line["train_loss_nats"].get<double>());
    }
    return found;
  };
  const std::vector<double> single = losses("single", 4, 1), pairs = losses("pairs", 2, 2);
  ASSERT_EQ(single.size(), 4U);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_GT(std::abs(single[0] - single[1]), 1e-4) << "the batches cost the same";
  for (std::size_t step = 0; step < 2; ++step) {
    EXPECT_NEAR(pairs[step], (single[2 * step] + single[2 * step + 1]) / 2.0, 1e-6) << step;
  }
}

TEST_F(Training, AVocabularyInBandsResumesExactlyWithEitherOptimiser) {
  config_ = in_bands(config_);
  for (const OptimizerKind optimizer : {OptimizerKind::adam, OptimizerKind::adafactor}) {
    config_.train.optimizer = optimizer;
    const std::string name(to_string(optimizer));
    train("whole-" + name, false);
    train("cut-" + name, false, 7);
    train("cut-" + name, true);
    expect_same_end("whole-" + name, "cut-" + name);
  }
}

TEST_F(Training, LearnedSpansResumeExactly) {
  config_.attention.content = PatternKind::span;
  config_.patterns.span.pattern = SpanPattern{.limit = 16, .ramp = 4, .initial = 0.3};
  for (const bool recompute : {false, true}) {
    config_.model.checkpoint_activations = recompute;
    const std::string name = recompute ? "recomputed" : "kept";
    train(name, false);
    train(name + "_cut", false, 5);
    train(name + "_cut", true);
    expect_same_end(name, name + "_cut");
  }
}

TEST_F(Training, RandomLengthsCountTheirTokensAndResumeExactly) {
  config_.train.shortest_length = 5;
  const TrainingResult whole = train("whole", false);
  const std::int64_t most = config_.train.steps * config_.train.batch_size * config_.train.sequence_length;
  EXPECT_LT(whole.state.tokens, most);
  EXPECT_GE(whole.state.tokens, config_.train.steps * config_.train.batch_size * 5);
  train("cut", false, 5);
  train("cut", true);
  expect_same_end("whole", "cut");
}

TEST_F(Training, MadeUpPairsResumeExactlyAndReportHowMuchIsRight) {
  config_ = small_pairs_experiment();
  config_.data.format = DataFormat::copy;
  config_.train.sequence_length = 25;
  config_.train.steps = 12;
  config_.train.checkpoint_every = 3;
  config_.train.eval_every = 4;
  config_.train.eval_tokens = 70;
  train("whole", false);
  bool seen = false;
  for (const auto& line : metrics("whole")) {
    if (!line.contains("eval_accuracy")) continue;
    seen = true;
    EXPECT_GE(line.at("eval_accuracy").get<double>(), 0.0);
    EXPECT_LE(line.at("eval_accuracy").get<double>(), 1.0);
  }
  EXPECT_TRUE(seen);
  train("cut", false, 5);
  train("cut", true);
  expect_same_end("whole", "cut");
}

TEST_F(Training, AdafactorResumesExactlyAndIsNotMistakenForAdam) {
  config_.train.optimizer = OptimizerKind::adafactor;
  config_.train.schedule = ScheduleKind::rsqrt;
  config_.train.learning_rate = 0.05;
  config_.train.weight_decay = 1e-3;
  train("whole", false);
  for (const std::int64_t stop : {1, 4, 11}) {
    const std::string run = "stopped-" + std::to_string(stop);
    train(run, false, stop);
    train(run, true);
    expect_same_end("whole", run);
  }
  config_.train.optimizer = OptimizerKind::adam;
  train("adam", false);
  EXPECT_NE(metrics("adam"), metrics("whole"));
  EXPECT_THROW(train("whole", true), Error);
}

// The step that wrecks the weights has a finite loss itself; the checkpoint before it must still be there.
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

}  // namespace
}  // namespace routing::trainer_test
