// Runs the real program and looks at what a user sees: exit code, standard output, standard error.
#include "cli/program_fixture.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace routing::cli_test {
namespace {

TEST_F(Cli, HelpNamesArgumentsAndValuesAsTheyAreTyped) {
  const std::string eval = run("eval --help").out;
  EXPECT_TRUE(contains(eval, "Usage: routing eval RUN [options]")) << eval;
  EXPECT_TRUE(contains(eval, "\n  --split PART ")) << eval;
  const std::string train = run("train --help").out;
  EXPECT_TRUE(contains(train, "\n  --resume [auto] ")) << train;
  EXPECT_TRUE(contains(train, "`routing presets` lists them")) << train;
}

TEST_F(Cli, VersionGoesToStandardOutput) {
  const Outcome outcome = run("--version");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out.rfind("routing ", 0), 0U) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, ".")) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Cli, HelpOfEveryCommandGoesToStandardOutputWithUsageExampleAndExitCodes) {
  for (const std::string command : {"",
                                    "quickstart",
                                    "train",
                                    "eval",
                                    "generate",
                                    "audit",
                                    "analyze",
                                    "analyze attention",
                                    "analyze distance",
                                    "analyze health",
                                    "analyze jsd",
                                    "analyze leak",
                                    "analyze patterns",
                                    "analyze recall",
                                    "table",
                                    "bench",
                                    "bench attention",
                                    "bench train",
                                    "bench scaling",
                                    "bench layers",
                                    "bench decode",
                                    "presets",
                                    "info",
                                    "doctor"}) {
    for (const std::string flag : {" --help", " -h"}) {
      const Outcome outcome = run(command + flag);
      EXPECT_EQ(outcome.exit_code, 0) << command;
      EXPECT_EQ(outcome.err, "") << command;
      EXPECT_EQ(outcome.out.rfind("Usage: routing", 0), 0U) << outcome.out;
      EXPECT_TRUE(contains(outcome.out, command)) << outcome.out;
      EXPECT_TRUE(contains(outcome.out, "--threads N")) << outcome.out;
      EXPECT_TRUE(contains(outcome.out, "\nHelp\n  -h, --help ")) << outcome.out;
      EXPECT_TRUE(contains(outcome.out, "\nExample  routing ")) << outcome.out;
      EXPECT_TRUE(contains(outcome.out, "\nExit     0 done   1 failed")) << outcome.out;
    }
  }
}

TEST_F(Cli, HelpShowsDefaultsAndWhatIsRequired) {
  const std::string help = run("analyze patterns --help").out;
  EXPECT_TRUE(contains(help, "Usage: routing analyze patterns --out FILE [options]")) << help;
  EXPECT_TRUE(contains(help, "(64)")) << help;
  EXPECT_TRUE(contains(help, "(required)")) << help;
}

TEST_F(Cli, ExampleOfPatternsHelpWorks) {
  const std::string help = run("analyze patterns --help").out;
  const std::string start = "Example  routing ";
  const std::size_t begin = help.find(start) + start.size();
  const Outcome outcome = run(help.substr(begin, help.find('\n', begin) - begin));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(Cli, NoCommandExitsWithTwoAndShowsShortHelpOnStandardError) {
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  for (const char* part : {"Usage: routing COMMAND", "analyze", "info", "doctor", "--help"}) {
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  }
}

TEST_F(Cli, UnknownOptionExitsWithTwoAndNamesTheNearest) {
  expect_refused("info --jsn", {"unknown option '--jsn'", "did you mean '--json'?"});
  expect_refused("analyze patterns --uot a.png", {"unknown option '--uot'", "did you mean '--out'?"});
  expect_refused("info --thread 2", {"unknown option '--thread'", "did you mean '--threads'?"});
  expect_refused("--thread=2 info", {"unknown option '--thread'", "did you mean '--threads'?"});
  expect_refused("info -x", {"unknown option '-x'"});
  expect_refused("train --device cuda", {"train: unknown option '--device'; everything runs on the processor"});
  expect_refused("train --epochs 3", {"unknown option '--epochs'; training is counted in steps"});
  expect_refused("train --seq-len 512", {"sequence"});
  expect_refused("train --set dropout=0.1",
                 {"unknown configuration key 'dropout'; did you mean", "'model.residual_dropout'"});
  expect_refused("train --set lr=0.1", {"unknown configuration key 'lr'; did you mean 'train.learning_rate'?"});
  expect_refused("train --dropout 0.1",
                 {"unknown option '--dropout'; of the configuration keys, did you mean", "_dropout'"});
  expect_refused("train --weight-decay 0.1", {"'train.weight_decay'"});
  const std::string far = run("train --zzzzzz 1").err;
  EXPECT_FALSE(contains(far, "did you mean")) << far;
}

TEST_F(Cli, UnknownCommandExitsWithTwoAndNamesTheNearest) {
  EXPECT_EQ(run("help train").out, run("train --help").out);
  EXPECT_EQ(run("help analyze curves").out, run("analyze curves --help").out);
  EXPECT_EQ(run("help").out, run("--help").out);
  expect_refused("inof", {"unknown command 'inof'", "did you mean 'info'?"});
  expect_refused("docter --json", {"unknown command 'docter'", "did you mean 'doctor'?"});
  expect_refused("analyze patern --out a.png", {"unknown command 'patern'", "did you mean 'patterns'?"});
  expect_refused("doctor more", {"unexpected argument 'more'"});
}

TEST_F(Cli, MissingAndWrongValuesExitWithTwoAndOneLine) {
  expect_refused("analyze", {"a command is missing after 'routing analyze'"});
  expect_refused("--quiet", {"a command is missing"});
  expect_refused("analyze patterns", {"--out is missing"});
  expect_refused("analyze patterns --out", {"--out needs a value"});
  expect_refused("analyze patterns --out a.png --n many", {"--n", "'many' is not a whole number"});
  expect_refused("analyze patterns --out a.png --n 6.5", {"--n", "'6.5' is not a whole number"});
  expect_refused("analyze patterns --out a.png --n 0", {"--n", "0 is out of range"});
  expect_refused("analyze patterns --out a.png --n -3", {"--n", "-3 is out of range"});
  expect_refused("analyze patterns --out a.png --n 99999999999999999999", {"--n", "out of range"});
  expect_refused("analyze patterns --out a.png --n 1000000000", {"1000000000"});
  expect_refused("analyze patterns --out a.png --n 8 --n 9", {"--n was given 2 times"});
  expect_refused("analyze patterns --out a.png b.png", {"unexpected argument 'b.png'"});
  expect_refused("info --json=yes", {"--json takes no value"});
  expect_refused("info --threads 0", {"--threads", "0 is out of range"});
  expect_refused("info --threads 1000000", {"--threads", "1000000 is out of range"});
  EXPECT_FALSE(fs::exists(folder_ / "a.png"));
}

TEST_F(Cli, PatternsWritesPngAndSvgAndPrintsTheirPaths) {
  const Outcome outcome = run("analyze patterns --n 16 --out patterns.png --out patterns.svg");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "patterns.png\npatterns.svg\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(text_of(folder_ / "patterns.png").substr(0, 8), "\x89PNG\r\n\x1a\n");
  const std::string svg = text_of(folder_ / "patterns.svg");
  EXPECT_TRUE(contains(svg, "<svg") && contains(svg, "<title>") && contains(svg, "</svg>"));
}

TEST_F(Cli, PatternsAnswersInJson) {
  const Outcome outcome = run("analyze patterns --n 16 --seed 3 --out patterns.png --json");
  const auto answer = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(answer["written"], nlohmann::json({"patterns.png"}));
  EXPECT_EQ(answer["n"], 16);
  EXPECT_EQ(answer["seed"], 3);
}

TEST_F(Cli, PatternsOfTheSameSeedAreTheSameAndAnotherSeedChangesThem) {
  EXPECT_EQ(run("analyze patterns --n 32 --seed 1 --out first.png --threads 1").exit_code, 0);
  EXPECT_EQ(run("analyze patterns --n 32 --seed 1 --out again.png --threads 2").exit_code, 0);
  EXPECT_EQ(run("analyze patterns --n 32 --seed 2 --out other.png").exit_code, 0);
  EXPECT_TRUE(text_of(folder_ / "first.png") == text_of(folder_ / "again.png"));
  EXPECT_FALSE(text_of(folder_ / "first.png") == text_of(folder_ / "other.png"));
}

TEST_F(Cli, WrongExtensionExitsWithTwoBeforeAnythingIsWritten) {
  expect_refused("analyze patterns --out good.png --out bad.jpg", {"bad.jpg", ".png or .svg"});
  expect_refused("analyze patterns --out ''", {"empty name", ".png or .svg"});
  EXPECT_FALSE(fs::exists(folder_ / "good.png"));
}

TEST_F(Cli, FolderThatDoesNotExistExitsWithOneAndSaysWhy) {
  const Outcome outcome = run("analyze patterns --n 8 --out nowhere/patterns.png");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("routing: error: nowhere/patterns.png: cannot be written: No such file", 0), 0U)
      << outcome.err;
}

TEST_F(Cli, InfoNamesTheParts) {
  const Outcome outcome = run("info");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* part :
       {"routing ", "libtorch ", "oneDNN ", "BLAS ", "CPU ", "features ", "AMX ", "cores ", "memory "}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " is missing in\n" << outcome.out;
  }
}

TEST_F(Cli, InfoInJsonHasEveryKeyAndTheThreadsAskedFor) {
  const auto info = nlohmann::json::parse(run("info --json --threads 1").out);
  for (const char* key :
       {"version", "compiler", "build_type", "libtorch", "onednn", "blas", "cores", "cpu", "memory"}) {
    EXPECT_TRUE(info.contains(key)) << key;
  }
  EXPECT_EQ(run("--version").out, "routing " + info["version"].get<std::string>() + "\n");
  EXPECT_EQ(info["threads"], 1);
  EXPECT_GE(info["cores"].get<int>(), 1);
  EXPECT_GT(info["memory"]["total_bytes"].get<std::int64_t>(), 0);
  EXPECT_TRUE(info["cpu"]["features"].contains("avx2"));
  EXPECT_EQ(info["libtorch"]["version"].get<std::string>().find_first_not_of("0123456789."), std::string::npos);
}

TEST_F(Cli, DefaultThreadsAreTheCoresOfTheProcess) {
  const auto info = nlohmann::json::parse(run("info --json").out);
  EXPECT_EQ(info["threads"], info["cores"]);
  const auto pinned = nlohmann::json::parse(run("info --json", "taskset -c 0").out);
  EXPECT_EQ(pinned["threads"], 1);
}

TEST_F(Cli, DoctorInJsonCountsWhatItLists) {
  const Outcome outcome = run("doctor --json --quiet");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto report = nlohmann::json::parse(outcome.out);
  int problems = 0;
  for (const auto& check : report["checks"]) {
    for (const char* key : {"check", "status", "found", "action"}) EXPECT_TRUE(check.contains(key)) << check;
    EXPECT_FALSE(check["found"].get<std::string>().empty()) << check;
    if (check["status"] == "problem") ++problems;
    // Whatever is not in order comes with what to do or what was done.
    EXPECT_TRUE(check["status"] == "ok" || !check["action"].get<std::string>().empty()) << check;
  }
  EXPECT_EQ(report["checks"].size(), 7U);
  EXPECT_EQ(report["problems"], problems);
  EXPECT_GT(report["blas_gflops"].get<double>(), 0.0);
  EXPECT_GT(report["onednn_gflops"].get<double>(), 0.0);
}

TEST_F(Cli, DoctorFindsOldBlasKernelsForcedByTheEnvironmentWhereOpenBlasTakesThem) {
  const auto info = nlohmann::json::parse(run("info --json", "OPENBLAS_CORETYPE=Prescott").out);
  if (info["blas"]["core"] != "Prescott") GTEST_SKIP() << "the BLAS here cannot be forced to old kernels";
  if (!info["cpu"]["features"]["avx2"].get<bool>()) GTEST_SKIP() << "old kernels are right for this CPU";
  const auto report = nlohmann::json::parse(run("doctor --json --quiet", "OPENBLAS_CORETYPE=Prescott").out);
  EXPECT_EQ(report["checks"][0]["status"], "problem");
  EXPECT_TRUE(contains(report["checks"][0]["action"], "OPENBLAS_CORETYPE")) << report["checks"][0];
  EXPECT_GE(report["problems"].get<int>(), 1);
}

TEST_F(Cli, DoctorListEndsWithTheCountsAndTellsProgressOnStandardError) {
  const Outcome outcome = run("doctor");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(contains(outcome.out, "\nproblems ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "timing matrix products")) << outcome.err;
}

TEST_F(Cli, MessagesMakeTerminalsObeyNothing) {
  const Outcome outcome = run(R"sh(runs "$(printf 'a\033[2J\302\233m\303\251')")sh");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.err, "a?[2J?m\303\251")) << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "\033")) << outcome.err;
}

TEST_F(Cli, FullDiskBehindStandardOutputExitsWithOne) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const std::string command = std::string("'") + ROUTING_PROGRAM + "' info > /dev/full 2> /dev/null";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace routing::cli_test
