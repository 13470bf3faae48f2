// The two halves of the program: what needs no model answers without torch, and what does finds its engine.
#include "cli/program_fixture.h"
#include "test_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace routing::engine_test {
namespace {

const char* const kEngine = "routing_engine.so";

// A copy of the program in a folder usr/bin, with nothing beside it.
class CliEngine : public Cli {
 protected:
  CliEngine() {
    fs::create_directories(folder_ / "usr/bin");
    fs::create_directories(folder_ / "usr/lib/routing");
    fs::copy_file(ROUTING_PROGRAM, program_);
  }

  Outcome run_copy(const std::string& arguments) const {
    const std::string command = "cd '" + folder_.string() + "' && '" + program_.string() + "' " + arguments +
                                " > .stdout 2> .stderr < /dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder_ / ".stdout"), text_of(folder_ / ".stderr")};
  }

  fs::path program_ = folder_ / "usr/bin/routing";
  fs::path engine_ = fs::path(ROUTING_PROGRAM).parent_path() / kEngine;
};

TEST_F(CliEngine, TheProgramItselfNeedsNoLargeLibrary) {
  const Outcome outcome = run("--version", "LD_TRACE_LOADED_OBJECTS=1");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(contains(outcome.out, "libstdc++.so")) << outcome.out;
  // By whole names: what is printed has addresses too, such as 0x7f39c10e5000.
  for (const char* library : {"libtorch", "libc10", "libdnnl", "blas", "libglog"}) {
    EXPECT_FALSE(contains(outcome.out, library)) << library << "\n" << outcome.out;
  }
}

TEST_F(CliEngine, WhatNeedsNoModelAnswersWithoutIt) {
  std::ofstream(folder_ / "text") << std::string(100000, 'a');
  for (const char* arguments : {"--version", "--help", "train --help", "analyze health --help", "bench train --help",
                                "presets", "presets --json", "presets --show tiny-enwik8",
                                "train --preset tiny-enwik8 --dry-run", "data info text --tokens bytes"}) {
    const Outcome outcome = run_copy(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.out, "") << arguments;
  }
  for (const char* arguments :
       {"", "trian", "train --stepz 3", "train --set wrong=1", "train --preset tiny-enwik8 --out run", "eval",
        "eval run --against other", "generate run --beams 2 --seed 1", "quickstart --data text --set wrong=1",
        "audit --preset wrong", "info --preset wrong", "bench train --set wrong=1", "bench decode --precision half",
        "bench distributed --steps 1", "analyze attention run --text a --file text", "table"}) {
    const Outcome outcome = run_copy(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.err;
    EXPECT_FALSE(contains(outcome.err, kEngine)) << arguments << "\n" << outcome.err;
  }
}

TEST_F(CliEngine, AMissingOneIsNamedWithThePlacesWhereItMayBe) {
  const Outcome outcome = run_copy("info");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "routing: error: " + std::string(kEngine) + ": is neither in " +
                             (folder_ / "usr/bin").string() + " nor in " + (folder_ / "usr/lib/routing").string() +
                             "; models need it: put it beside the program, or build again\n");
}

TEST_F(CliEngine, WhatIsNoEngineIsRefused) {
  std::ofstream(folder_ / "usr/bin" / kEngine) << "no library";
  Outcome outcome = run_copy("info");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.err, (folder_ / "usr/bin" / kEngine).string() + ": cannot be loaded: ")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  fs::remove(folder_ / "usr/bin" / kEngine);
  fs::copy_file(ROUTING_SLOW_SYNC, folder_ / "usr/bin" / kEngine);
  outcome = run_copy("info");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.err, ": is of version unknown, but this program of ")) << outcome.err;
}

TEST_F(CliEngine, AnInstalledOneIsFoundInLib) {
  fs::create_symlink(engine_, folder_ / "usr/lib/routing" / kEngine);
  const Outcome outcome = run_copy("info");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "libtorch ")) << outcome.out;
}

// Errors keep their kind on their way out of the engine: 2 for a wrong configuration, 1 for a failure, one line each.
TEST_F(CliEngine, ItsErrorsAreThoseOfTheProgram) {
  expect_refused("table wrong --list", {"wrong"});
  std::ofstream(folder_ / "no-model") << "no model";
  Outcome outcome = run("eval no-model");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.err.starts_with("routing: error: no-model: ")) << outcome.err;
  // Libtorch's own, of which the first line is shown.
  outcome =
      run("bench attention --quiet -n 4 --window 2 --clusters 1 --heads 1 --dim 4000000000000000000 --pattern local");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "routing: error: Storage size calculation overflowed with sizes=[1, 4000000000000000000]\n");
}

}  // namespace
}  // namespace routing::engine_test
