// routing train and eval as a user runs them: results, interruption, kills, and every mistake with its answer.
#include "cli/program_fixture.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace routing::train_test {
namespace {

// A model that takes a few milliseconds per step.
const std::string kSmall =
    " --preset tiny-enwik8 --quiet --set model.layers=2 --set model.width=32 --set model.feedforward_width=64"
    " --set attention.heads=4 --set attention.content_heads=2 --set local.window=16 --set routing.window=16"
    " --set routing.clusters=4 --set train.sequence_length=64 --set train.batch_size=2 --set train.log_every=2"
    " --set train.eval_every=4 --set train.eval_tokens=128 --set train.checkpoint_every=3 --set train.warmup_steps=2"
    " --set data.split=90%/5%/5%";

// With an end of its own the schedule does not depend on the number of steps.
const std::string kSchedule = "--set train.decay_steps=1000";

class CliTraining : public Cli {
 protected:
  CliTraining() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 1000; ++i) text << "line " << i * i % 89 << " of a text\n";
  }

  std::string train(const std::string& run) const { return "train" + kSmall + " --data text --out " + run + " "; }

  // metrics.jsonl without what the clock says.
  std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(folder_ / run / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      lines.push_back(nlohmann::json::parse(line));
      lines.back().erase("seconds");
      lines.back().erase("tokens_per_second");
    }
    return lines;
  }

  std::string model_bytes(const std::string& run, const std::string& step) const {
    return text_of(folder_ / run / "checkpoints" / ("step-000000" + step) / "model.safetensors");
  }

  // Trains on, far longer than the test waits, and sends the signal as soon as the log has reached the step; the exit
  // code.
  int train_until(const std::string& run, int step, const std::string& signal) const {
    const std::string reached = "[ \"$(sed -nE '$s/.*\"step\":([0-9]+).*/\\1/p' " + run +
                                "/metrics.jsonl 2> /dev/null)\" -ge " + std::to_string(step) + " ] 2> /dev/null";
    const std::string command =
        "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + train(run) + kSchedule +
        " --steps 1000000 --resume auto > .out 2> .err & p=$!; while kill -0 $p 2> /dev/null && ! " + reached +
        "; do sleep 0.002; done; kill -" + signal + " $p 2> /dev/null; wait $p; } 2> /dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // The step of the newest whole checkpoint; 0 if there is none.
  int newest_checkpoint(const std::string& run) const {
    int newest = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / run / "checkpoints")) {
      const std::string name = entry.path().filename().string();
      if (fs::exists(entry.path() / "DONE")) newest = std::max(newest, std::stoi(name.substr(name.find('-') + 1)));
    }
    return newest;
  }

  // Resumes the run for some steps more, and compares it with one that was left alone for as many.
  void expect_same_as_undisturbed(const std::string& cut) const {
    const std::string steps = " --steps " + std::to_string(newest_checkpoint(cut) + 11);
    const std::string whole = cut + "-whole";
    const Outcome resumed = run("train --quiet --json --out " + cut + " --resume auto" + steps);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    ASSERT_EQ(run(train(whole) + kSchedule + steps).exit_code, 0);
    const std::string last = "checkpoints/" + last_folder(cut);
    for (const char* file : {"model.safetensors", "state.safetensors"}) {
      const std::string bytes = text_of(folder_ / cut / last / file);
      EXPECT_GT(bytes.size(), 1000U) << file;
      EXPECT_TRUE(bytes == text_of(folder_ / whole / last / file)) << file;
    }
    EXPECT_EQ(metrics(cut), metrics(whole));
  }

  std::string last_folder(const std::string& run) const {
    const std::string digits = std::to_string(newest_checkpoint(run));
    return "step-" + std::string(8 - digits.size(), '0') + digits;
  }

  // Exit code 1, and one line that holds all the parts.
  void expect_failed(const Outcome& outcome, const std::vector<std::string>& parts) const {
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("routing: error: ", 0), 0U) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << " in " << outcome.err;
  }
};

TEST_F(CliTraining, TrainsAndEvaluates) {
  const Outcome trained = run(train("run") + "--steps 6 --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err, "");
  const auto result = nlohmann::json::parse(trained.out);
  EXPECT_EQ(result.at("step"), 6);
  EXPECT_EQ(result.at("end"), "finished");
  EXPECT_EQ(result.at("validity"), "causal");
  for (const std::string options : {"", " --stride 16", " --split all --batch-size 1", " --checkpoint last"}) {
    const Outcome evaluated = run("eval run --json --quiet" + options);
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    const auto likelihood = nlohmann::json::parse(evaluated.out);
    EXPECT_GT(likelihood.at("bits_per_byte"), 0.0);
    EXPECT_LT(likelihood.at("bits_per_byte"), 8.5);
    EXPECT_EQ(likelihood.at("validity"), "causal");
    const auto bytes = static_cast<std::int64_t>(fs::file_size(folder_ / "text"));
    EXPECT_EQ(likelihood.at("tokens"), contains(options, "all") ? bytes : bytes - bytes * 95 / 100);
  }
  const Outcome table = run("eval run --quiet");
  EXPECT_TRUE(contains(table.out, "bits/byte")) << table.out;
  EXPECT_TRUE(contains(table.out, "causal")) << table.out;
}

TEST_F(CliTraining, TheLabelOfBalancedSelectionStandsBesideEveryNumber) {
  const Outcome trained = run(train("run") + "--steps 2 --set routing.selection=balanced --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(trained.out).at("validity"), "selection reads the future");
  for (const auto& line : metrics("run")) EXPECT_EQ(line.at("validity"), "selection reads the future");
  EXPECT_TRUE(contains(run("eval run --quiet").out, "selection reads the future"));
  EXPECT_TRUE(contains(model_bytes("run", "02"), "selection reads the future"));
}

TEST_F(CliTraining, DryRunPrintsAConfigurationThatRunsTheSame) {
  const Outcome dry = run(train("run") + "--steps 4 --seed 7 --dry-run", "ROUTING_TRAIN_CLIP=0.5");
  ASSERT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_TRUE(contains(dry.out, "seed = 7")) << dry.out;
  EXPECT_TRUE(contains(dry.out, "clip = 0.5")) << dry.out;
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  std::ofstream(folder_ / "resolved.toml") << dry.out;
  const Outcome again = run("train --config resolved.toml --out other --dry-run");
  EXPECT_EQ(again.out, dry.out);
}

TEST_F(CliTraining, SignalsSaveAndExitWith130AndResumeGoesOn) {
  for (const std::string signal : {"TERM", "INT"}) {
    EXPECT_EQ(train_until("cut-" + signal, 4, signal), 130) << text_of(folder_ / ".err");
    EXPECT_TRUE(contains(text_of(folder_ / ".out"), "--resume")) << text_of(folder_ / ".out");
    expect_same_as_undisturbed("cut-" + signal);
  }
}

// scripts/kill-and-resume does it 25 times at random moments with a larger model.
TEST_F(CliTraining, KilledAtAnyMomentAndResumedEndsWithTheSameBits) {
  for (const int step : {2, 10, 24, 25, 40}) EXPECT_EQ(train_until("cut", step, "KILL"), 137);
  EXPECT_GT(newest_checkpoint("cut"), 0) << "kills before the first checkpoint alone would show nothing";
  expect_same_as_undisturbed("cut");
}

TEST_F(CliTraining, WrongConfigurationExitsWithTwoAndNamesTheRemedy) {
  expect_refused("train --preset tiny-enwik9 --data text --out run", {"tiny-enwik9", "tiny-enwik8"});
  expect_refused(train("run") + "--set train.step=4", {"train.step", "train.steps"});
  expect_refused(train("run") + "--set routing.window=4096", {"routing.window", "4096", "64"});
  expect_refused(train("run") + "--steps ten", {"train.steps", "ten"});
  expect_refused(train("run") + "--precision fp8", {"train.precision", "fp8", "bf16"});
  expect_refused(train("run") + "--set train.steps", {"train.steps", "="});
  expect_refused("train --preset tiny-enwik8 --data text", {"--out"});
  expect_refused("train --preset tiny-enwik8 --out run", {"data"});
  expect_refused(train("run") + "--set train.sequence_length=100000 --set data.split=50%/25%/25%",
                 {"train.sequence_length", "100000"});
  expect_refused(train("run") + "--resume always", {"--resume"});
  expect_refused("train --out typo --resume auto", {"typo", "no run"});
  EXPECT_FALSE(fs::exists(folder_ / "run")) << "nothing is left behind";
}

TEST_F(CliTraining, ARunThatIsThereOrDiffersIsRefused) {
  ASSERT_EQ(run(train("run") + "--steps 3").exit_code, 0);
  const std::string before = model_bytes("run", "03");
  expect_refused(train("run") + "--steps 3", {"run", "--resume"});
  expect_refused(train("run") + "--steps 3 --resume auto --set model.width=64", {"model.width", "32", "64"});
  EXPECT_EQ(model_bytes("run", "03"), before);
  EXPECT_EQ(run("train --quiet --out run --resume auto --steps 5").exit_code, 0);
}

TEST_F(CliTraining, MissingAndEmptyFilesExitWithOne) {
  expect_failed(run("train" + kSmall + " --data nowhere --out run"), {"nowhere", "is not there"});
  std::ofstream(folder_ / "empty").close();
  expect_failed(run("train" + kSmall + " --data empty --out run"), {"empty"});
  expect_failed(run("train --config nowhere.toml --data text --out run"), {"nowhere.toml"});
  expect_failed(run("eval nowhere"), {"nowhere"});
  fs::create_directories(folder_ / "folder");
  expect_failed(run("eval folder"), {"folder", "config.toml"});
  expect_failed(run("train" + kSmall + " --data folder --out run"), {"folder"});
}

TEST_F(CliTraining, ACorruptCheckpointIsNamedAndNothingElseHappens) {
  ASSERT_EQ(run(train("run") + "--steps 3").exit_code, 0);
  const fs::path model = folder_ / "run/checkpoints/step-00000003/model.safetensors";
  const std::string whole = text_of(model);
  std::ofstream(model, std::ios::binary) << whole.substr(0, whole.size() / 2);
  expect_failed(run("eval run"), {"model.safetensors"});
  expect_failed(run("train --quiet --out run --resume auto --steps 5"), {"model.safetensors"});
  std::ofstream(model, std::ios::binary) << "not a model at all";
  expect_failed(run("eval run/checkpoints/step-00000003"), {"model.safetensors"});
}

TEST_F(CliTraining, AnUnwritableFolderIsReported) {
  std::ofstream(folder_ / "file") << "x";
  expect_failed(run("train" + kSmall + " --data text --out file/run"), {"file/run", "--out"});
  expect_failed(run("train" + kSmall + " --data text --out /proc/run"), {"/proc/run", "--out"});
}

TEST_F(CliTraining, AFullDiskIsReportedAndTheOlderCheckpointStays) {
  const fs::path disk = folder_ / "disk";
  fs::create_directories(disk);
  if (std::system(("mount -t tmpfs -o size=2000k tmpfs '" + disk.string() + "' 2> /dev/null").c_str()) != 0) {
    GTEST_SKIP() << "mounting a small tmpfs needs root";
  }
  const Outcome started = run(train("disk/run") + "--steps 3");
  const std::string before = model_bytes("disk/run", "03");
  // What is left is enough for logs, not for a checkpoint.
  const auto space = fs::space(disk).available;
  std::ofstream(disk / "ballast") << std::string(space - std::min<std::uintmax_t>(space, 100000), 'x');
  const Outcome outcome = run("train --quiet --out disk/run --resume auto --steps 9");
  const std::string after = model_bytes("disk/run", "03");
  const bool half = fs::exists(disk / "run/checkpoints/step-00000004.partial");
  fs::remove(disk / "ballast");
  const Outcome resumed = run("train --quiet --out disk/run --resume auto --steps 9");
  EXPECT_EQ(std::system(("umount '" + disk.string() + "'").c_str()), 0);
  ASSERT_EQ(started.exit_code, 0) << started.err;
  expect_failed(outcome, {"disk/run/checkpoints", "safetensors", "No space left on device"});
  EXPECT_EQ(before, after);
  EXPECT_FALSE(half);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

}  // namespace
}  // namespace routing::train_test
