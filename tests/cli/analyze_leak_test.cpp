// routing analyze leak as a user runs it, on trainings of a few steps.
#include "cli/program_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <string>

namespace routing::analyze_leak_test {
namespace {

const std::string kSmall =
    " --preset tiny-enwik8 --quiet --set model.layers=2 --set model.width=32 --set model.feedforward_width=64"
    " --set attention.heads=4 --set attention.content_heads=2 --set local.window=16 --set routing.window=16"
    " --set routing.clusters=4 --set random.groups=4 --set random.window=16 --set train.sequence_length=64"
    " --set train.batch_size=2 --set train.warmup_steps=2 --set train.learning_rate=0.01 --set data.split=80%/10%/10%";

class CliLeak : public Cli {
 protected:
  CliLeak() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 600; ++i) text << "line " << i * i % 89 << " of a text\n";
  }

  void train(const std::string& name, const std::string& settings, int steps = 20) const {
    const Outcome outcome =
        run("train" + kSmall + " --data text --out " + name + " --steps " + std::to_string(steps) + " " + settings);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
};

TEST_F(CliLeak, MeasuresRunsAndWritesEveryKindOfFile) {
  train("balanced", "--set routing.selection=balanced");
  train("nearest", "--set routing.selection=nearest");
  train("random", "--set attention.content=random");
  const std::string command = "analyze leak balanced nearest random --quiet --windows 6 --positions 4 --json";
  const Outcome outcome = run(command + " --out leak.png --out leak.svg --out leak.md --out leak.csv --out leak.json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result.at("samples"), 24);
  EXPECT_EQ(result.at("unit"), "bits/byte");
  const auto& selections = result.at("selections");
  ASSERT_EQ(selections.size(), 3U);
  EXPECT_EQ(selections[0].at("selection"), "balanced");
  EXPECT_EQ(selections[0].at("validity"), "selection reads the future");
  EXPECT_GT(selections[0].at("prefix_only_equal").at("different"), 0);
  EXPECT_EQ(selections[0].at("prefix_only_equal").at("measured"), 24);
  EXPECT_EQ(selections[1].at("selection"), "nearest");
  EXPECT_EQ(selections[1].at("prefix_only_equal").at("different"), 0);
  EXPECT_EQ(selections[1].at("prefix_only_equal").at("measured"), 8);
  EXPECT_EQ(selections[2].at("selection"), "random");
  EXPECT_EQ(selections[2].at("future_replaced_equal").at("different"), 0);
  EXPECT_GT(selections[2].at("prefix_only_equal").at("different"), 0);
  ASSERT_EQ(result.at("shares").size(), 2U);
  EXPECT_EQ(result.at("shares")[0].at("reference"), "nearest");
  // Every token of the windows: 6 of the 17 windows that `eval` reads, so near its figure.
  const auto evaluated = nlohmann::json::parse(run("eval nearest --checkpoint last --json --quiet").out);
  EXPECT_NEAR(selections[1].at("every_token").at("mean").get<double>(), evaluated.at("bits_per_byte").get<double>(),
              0.3);

  for (const char* file : {"leak.png", "leak.svg", "leak.md", "leak.csv", "leak.json"}) {
    EXPECT_GT(fs::file_size(folder_ / file), 300U) << file;
  }
  EXPECT_EQ(text_of(folder_ / "leak.json"), outcome.out);
  // The same numbers again, as a table.
  const Outcome table = run("analyze leak balanced nearest random --quiet --windows 6 --positions 4 --threads 1");
  EXPECT_EQ(table.out, text_of(folder_ / "leak.md"));
  EXPECT_TRUE(contains(table.out, "equal bit for bit (8 compared)")) << table.out;
  const Outcome written =
      run("analyze leak balanced nearest random --quiet --windows 6 --positions 4 --out again.png --out again.md");
  EXPECT_EQ(written.out, table.out + "again.png\nagain.md\n");
  const auto all = nlohmann::json::parse(run(command + " --check-all").out);
  EXPECT_EQ(all.at("selections")[1].at("prefix_only_equal").at("measured"), 24);
  EXPECT_EQ(all.at("selections")[1].at("prefix_only_equal").at("different"), 0);
}

TEST_F(CliLeak, RefusesWhatCannotBeCompared) {
  train("balanced", "--set routing.selection=balanced");
  train("longer", "--set routing.selection=nearest", 21);
  train("wider", "--set model.feedforward_width=96");
  expect_refused("analyze leak", {"RUN"});
  expect_refused("analyze leak balanced --out leak.gif", {"leak.gif"});
  expect_refused("analyze leak balanced longer", {"train.steps is 21, but 20"});
  expect_refused("analyze leak balanced wider", {"its [model] differs"});
  expect_refused("analyze leak balanced --windows 1", {"--windows"});
  EXPECT_FALSE(fs::exists(folder_ / "leak.gif"));
  const Outcome missing = run("analyze leak nowhere");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(contains(missing.err, "nowhere")) << missing.err;
  expect_refused("analyze leak balanced balanced --quiet --windows 2 --positions 1", {"balanced of seed 1"});
}

}  // namespace
}  // namespace routing::analyze_leak_test
