// The pages of the manual: what they say, and that man can set them.
#include "cli/program_fixture.h"

#include <algorithm>
#include <set>
#include <string>

namespace routing::man_test {
namespace {

TEST_F(Cli, ManSaysWhatTheHelpSays) {
  const std::string page = run("man routing-eval").out;
  EXPECT_TRUE(page.starts_with(".TH ROUTING\\-EVAL 1 ")) << page;
  EXPECT_TRUE(
      contains(page, ".SH NAME\nrouting\\-eval \\- Bits per byte, bits per dim or perplexity of a trained model\n"));
  EXPECT_TRUE(contains(page, ".SH SYNOPSIS\n\\fBrouting eval\\fR RUN [options]\n")) << page;
  EXPECT_TRUE(contains(
      page, ".TP\n\\fB\\-\\-limit\\-tokens\\fR, \\fB\\-\\-limit\\-bytes\\fR \\fIN\\fR\nonly the first N tokens"))
      << page;
  EXPECT_TRUE(contains(page, ".TP\n\\fIRUN\\fR\nwhat to evaluate (required)\n")) << page;
  EXPECT_TRUE(contains(page, "best, last, or a step (default: best)\n")) << page;
  EXPECT_TRUE(contains(page, "authors\\(aq rule")) << "an upright quote";
  EXPECT_TRUE(contains(page, ".TP\n\\fB130\\fR\ninterrupted, state saved\n")) << page;
  EXPECT_TRUE(contains(page, ".SH SEE ALSO\n\\fBrouting\\fR(1)\n")) << page;
  EXPECT_TRUE(contains(run("man routing-train").out, "\\fBrouting\\-configuration\\fR(5)\n"));
}

TEST_F(Cli, ManDoesNotDependOnTheMachine) {
  const std::string page = run("--threads 1 man").out;
  EXPECT_TRUE(contains(page, "threads of this process; default: its cores\n")) << page;
  EXPECT_EQ(page, run("man", "OMP_NUM_THREADS=7").out);
}

TEST_F(Cli, ManHasAPageForEveryCommandAndForTheKeys) {
  EXPECT_EQ(run("man --out pages").exit_code, 0);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "pages")) names.insert(entry.path().filename().string());
  EXPECT_GE(names.size(), 35U);
  for (const char* const name :
       {"routing.1", "routing-analyze.1", "routing-analyze-curves.1", "routing-configuration.5"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(text_of(folder_ / "pages/routing.1"), run("man").out);
  const std::string program = run("man routing").out;
  for (const std::string& name : names) {
    const bool is_command = std::count(name.begin(), name.end(), '-') == 1 && name.ends_with(".1");
    if (!is_command) continue;
    const std::string command = name.substr(name.find('-') + 1, name.rfind('.') - name.find('-') - 1);
    EXPECT_TRUE(contains(program, "\\fBrouting\\-" + command + "\\fR(1)\n")) << name;
  }
  const std::string keys = text_of(folder_ / "pages/routing-configuration.5");
  EXPECT_TRUE(contains(keys, ".SS [train]\n")) << keys;
  EXPECT_TRUE(contains(keys, "\\fBtrain.steps\\fR\noptimiser steps (default: ")) << keys;
}

TEST_F(Cli, ManSetsEveryPageWithoutAWarning) {
  if (std::system("command -v man > /dev/null") != 0) GTEST_SKIP() << "man is not installed";
  EXPECT_EQ(run("man --out pages").exit_code, 0);
  const std::string command = "cd '" + (folder_ / "pages").string() +
                              "' && for page in *; do MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "
                              "$page 2>> ../warnings > /dev/null; done";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(text_of(folder_ / "warnings"), "");
}

TEST_F(Cli, ManRefusesWhatIsNotThere) {
  expect_refused("man routing-trian", {"routing-trian", "did you mean 'routing-train'?"});
  expect_refused("man routing-train --out pages", {"--out writes all pages"});
  EXPECT_FALSE(fs::exists(folder_ / "pages"));
}

}  // namespace
}  // namespace routing::man_test
