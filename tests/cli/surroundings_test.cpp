// What the program finds around itself: few files it may open, no home, variables of OpenMP, another locale, a mask for
// new files, folders that may not be written, numbers at their edges. A training has the same bytes everywhere, or is
// refused.
#include "cli/program_fixture.h"
#include "routing/core/files.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace routing::surroundings_test {
namespace {

const std::string kTrain =
    "train --preset tiny-enwik8 --data text --quiet --set attention.content_layers=all --set local.window=8 "
    "--set routing.window=8 --set train.sequence_length=32 --set train.batch_size=1 --set model.width=32 "
    "--set model.layers=1 --set train.eval_tokens=64 --set train.log_every=1 ";

class CliSurroundings : public Cli {
 protected:
  CliSurroundings() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 1000; ++i) text << "line " << i * i % 97 << " of a text\n";
  }

  // The weights after two steps under what the shell sets before; empty where the training failed.
  std::string weights(const std::string& name, const std::string& before, const std::string& options = "") const {
    const Outcome outcome = run(kTrain + options + "--steps 2 --out " + name, before);
    EXPECT_EQ(outcome.exit_code, 0) << before << ": " << outcome.err;
    EXPECT_EQ(outcome.err, "") << before;
    const fs::path model = folder_ / name / "checkpoints/step-00000002/model.safetensors";
    return fs::exists(model) ? read_file(model) : "";
  }
};

TEST_F(CliSurroundings, GiveATrainingNoOtherBytes) {
  const std::string expected = weights("plain", "");
  ASSERT_NE(expected, "");
  const std::vector<std::string> surroundings{
      "export OMP_NUM_THREADS=1 OMP_DYNAMIC=true OMP_SCHEDULE=dynamic &&",
      "export OMP_NUM_THREADS=64 OMP_PROC_BIND=true OMP_WAIT_POLICY=active &&",
      "export OMP_THREAD_LIMIT=2 OMP_MAX_ACTIVE_LEVELS=3 MKL_NUM_THREADS=7 OPENBLAS_NUM_THREADS=7 &&",
      "unset HOME XDG_CACHE_HOME USER LANG && export LC_ALL=C &&",
      "export LC_ALL=de_DE.UTF-8 LC_NUMERIC=tr_TR.UTF-8 TZ=Pacific/Chatham &&",
      "ulimit -n 20 &&",
      "umask 077 &&",
  };
  for (std::size_t number = 0; number < surroundings.size(); ++number) {
    EXPECT_EQ(weights("run" + std::to_string(number), surroundings[number]), expected) << surroundings[number];
  }
}

TEST_F(CliSurroundings, FewerOrManyMoreThreadsThanCoresGiveATrainingNoOtherBytes) {
  const std::string expected = weights("one", "", "--threads 1 ");
  ASSERT_NE(expected, "");
  EXPECT_EQ(weights("many", "", "--threads 64 "), expected);
}

// Libraries that are loaded with too little memory wait for it without end or end the process (engine.cpp).
TEST_F(CliSurroundings, ALimitOfMemoryEndsInAnAnswer) {
  const std::string expected = weights("plain", "", "--threads 2 ");
  ASSERT_NE(expected, "");
  for (const int mebibytes : {64, 300, 600, 800, 880}) {
    const Outcome outcome = run(kTrain + "--steps 2 --threads 2 --out little" + std::to_string(mebibytes),
                                "ulimit -v " + std::to_string(mebibytes * 1024) + " && timeout 60 ");
    EXPECT_EQ(outcome.exit_code, 1) << mebibytes << ": " << outcome.err;
    EXPECT_EQ(outcome.err.rfind("routing: error: ", 0), 0U) << mebibytes << ": " << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "ulimit -v")) << mebibytes << ": " << outcome.err;
  }
  const Outcome many = run(kTrain + "--steps 2 --threads 64 --out many", "ulimit -v 1126400 && timeout 60 ");
  EXPECT_EQ(many.exit_code, 1) << many.err;
  EXPECT_TRUE(contains(many.err, "for 64 threads")) << many.err;
  EXPECT_EQ(weights("enough", "ulimit -v 67108864 &&", "--threads 2 "), expected);
}

// A wall clock that jumps by years, and a steady one that leaps ahead by hours as in a machine that was put to sleep.
TEST_F(CliSurroundings, AClockThatJumpsGivesNoOtherBytesAndNoNonsense) {
  const std::string expected = weights("plain", "");
  ASSERT_NE(expected, "");
  const std::string clock = std::string("export LD_PRELOAD='") + ROUTING_JUMPING_CLOCK + "' &&";
  EXPECT_EQ(weights("jumps", clock), expected);
  double seconds = 0.0;
  std::ifstream metrics(folder_ / "jumps/metrics.jsonl");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) {
    const auto object = nlohmann::json::parse(line);
    EXPECT_GE(object.at("seconds").get<double>(), seconds) << line;
    seconds = object.at("seconds").get<double>();
    if (!object.contains("tokens_per_second")) continue;
    EXPECT_GT(object.at("tokens_per_second").get<double>(), 0.0) << line;
    // 32 tokens a step; a clock that stood still would make it infinite, which JSON has as null.
    EXPECT_LT(object.at("tokens_per_second").get<double>(), 1e9) << line;
  }
  EXPECT_GE(lines, 2);
  EXPECT_GE(seconds, 3600.0) << "the clock did not jump";
  std::string talking = kTrain;
  talking.erase(talking.find("--quiet "), 8);
  const Outcome shown = run(talking + "--steps 3 --out shown", clock);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* const nonsense : {"nan", "inf", "-1", " -"}) {
    EXPECT_FALSE(contains(shown.err, nonsense)) << nonsense << ": " << shown.err;
  }
}

TEST_F(CliSurroundings, TheMaskForNewFilesIsObeyed) {
  weights("run", "umask 077 &&");
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "run")) {
    EXPECT_EQ(entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all), fs::perms::none)
        << entry.path();
  }
}

// Nobody may write into /proc, not even who runs tests as root.
TEST_F(CliSurroundings, AFolderThatMayNotBeWrittenIsNamedWithTheReason) {
  const Outcome outcome = run(kTrain + "--steps 2 --out /proc/self/fdinfo/run");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("routing: error: /proc/self/fdinfo/run", 0), 0U) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

// With words a cache is wanted; where none can be, that is said.
TEST_F(CliSurroundings, ACacheThatCannotBeMadeIsNamedWithTheReason) {
  const Outcome outcome =
      run(kTrain + "--steps 2 --out run --set data.tokens=words --set data.format=text --set model.vocab_size=0",
          "export XDG_CACHE_HOME=/proc/self/fdinfo &&");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "/proc/self/fdinfo/routing")) << outcome.err;
}

TEST_F(CliSurroundings, NumbersAtTheirEdgesEndInAnAnswer) {
  // A step so large that nothing is left: the weights before it are those that stay.
  const Outcome diverged = run(kTrain + "--steps 5 --out diverged --set train.learning_rate=1e30");
  EXPECT_EQ(diverged.exit_code, 1);
  EXPECT_TRUE(contains(diverged.err, "the loss of batch 1 is ")) << diverged.err;
  EXPECT_TRUE(contains(diverged.err, "begin again with a lower train.learning_rate")) << diverged.err;
  // One so small that it is denormal.
  EXPECT_EQ(run(kTrain + "--steps 2 --out still --set train.learning_rate=1e-320").exit_code, 0);
  // A sequence of one token, which predicts the first from nothing.
  const std::string one =
      "--set train.sequence_length=1 --set local.window=1 --set routing.window=1 "
      "--set train.eval_tokens=1 --set train.batch_size=3 ";
  const Outcome single = run(kTrain + one + "--steps 2 --out single");
  EXPECT_EQ(single.exit_code, 0) << single.err;
  expect_refused(kTrain + "--steps 2 --out run --set train.batch_size=9223372036854775807", {"train.batch_size"});
  expect_refused(kTrain + "--steps 2 --out run --set model.layers=1000000000", {"model.layers", "at most 10000"});
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

}  // namespace
}  // namespace routing::surroundings_test
