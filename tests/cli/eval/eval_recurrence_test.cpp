// routing eval --by-recurrence as a user runs it: classes that add up, differences of two runs, and refusals.
#include "cli/program_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <string>

namespace routing::eval_recurrence_test {
namespace {

const std::string kSmall =
    " --preset tiny-enwik8 --quiet --set model.layers=2 --set model.width=32 --set model.feedforward_width=64"
    " --set attention.heads=4 --set attention.content_heads=2 --set local.window=16 --set routing.window=16"
    " --set routing.clusters=4 --set train.batch_size=2 --set train.eval_tokens=128 --steps 2"
    " --set data.split=90%/5%/5%";

class CliEvalRecurrence : public Cli {
 protected:
  CliEvalRecurrence() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 1000; ++i) text << "line " << i * i % 89 << " of a text\n";
    std::ofstream other(folder_ / "other");
    for (int i = 0; i < 1000; ++i) other << "row " << i * i % 87 << " of others\n";
  }

  void train(const std::string& run, const std::string& more) const {
    const Outcome trained = this->run("train" + kSmall + " --out " + run + " " + more);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
};

TEST_F(CliEvalRecurrence, ClassesAddUpToAllTargets) {
  train("run", "--data text --set train.sequence_length=256");
  const Outcome outcome = run("eval run --by-recurrence --json --quiet");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& found = json.at("recurrence");
  EXPECT_EQ(found.at("context"), 8);
  EXPECT_EQ(found.at("reach"), 32) << "two layers of 16";
  EXPECT_EQ(found.at("unit"), "bits/byte");
  const auto& classes = found.at("classes");
  EXPECT_EQ(classes.at("all").at("targets"), json.at("tokens"));
  EXPECT_NEAR(classes.at("all").at("bits").get<double>(), json.at("bits_per_byte").get<double>(), 1e-9);
  std::int64_t targets = 0;
  double bits = 0.0;
  for (const char* name : {"near", "far", "never"}) {
    const auto number = classes.at(name).at("targets").get<std::int64_t>();
    EXPECT_GT(number, 0) << name;
    targets += number;
    bits += static_cast<double>(number) * classes.at(name).at("bits").get<double>();
    EXPECT_LE(classes.at(name).at("low"), classes.at(name).at("bits")) << name;
    EXPECT_GE(classes.at(name).at("high"), classes.at(name).at("bits")) << name;
  }
  EXPECT_EQ(targets, classes.at("all").at("targets"));
  EXPECT_NEAR(bits / static_cast<double>(targets), json.at("bits_per_byte").get<double>(), 1e-9);
  std::int64_t at_distances = 0;
  for (const auto& octave : found.at("distances")) at_distances += octave.at("targets").get<std::int64_t>();
  EXPECT_EQ(at_distances, targets - classes.at("never").at("targets").get<std::int64_t>());
  const Outcome table = run("eval run --by-recurrence --context 3 --reach 20 --quiet");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  for (const char* part : {"the 3 bytes before", "\n20 (", "near ", "far ", "never ", "16-31 back", "Fieller"}) {
    EXPECT_TRUE(contains(table.out, part)) << part << " in " << table.out;
  }
}

TEST_F(CliEvalRecurrence, TwoRunsAreComparedWindowByWindow) {
  train("a", "--data text --set train.sequence_length=256");
  train("b", "--data text --set train.sequence_length=256 --set attention.content=local --seed 2");
  const auto json_of = [&](const std::string& arguments) {
    const Outcome outcome = run("eval " + arguments + " --by-recurrence --json --quiet");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto found = json_of("a --against b").at("recurrence");
  EXPECT_EQ(found.at("against").at("validity"), "causal") << "beside every likelihood";
  const auto& both = found.at("classes");
  const auto alone = json_of("b").at("recurrence").at("classes");
  for (const char* name : {"all", "near", "far", "never"}) {
    const auto& row = both.at(name);
    EXPECT_NEAR(row.at("against").at("bits").get<double>(), alone.at(name).at("bits").get<double>(), 1e-12);
    EXPECT_NEAR(row.at("difference").at("bits").get<double>(),
                row.at("bits").get<double>() - alone.at(name).at("bits").get<double>(), 1e-9);
  }
  const auto itself = json_of("a --against a").at("recurrence").at("classes").at("all").at("difference");
  EXPECT_EQ(itself.at("bits"), 0.0);
  EXPECT_EQ(itself.at("high"), 0.0);
  const Outcome table = run("eval a --by-recurrence --against b --quiet");
  EXPECT_TRUE(contains(table.out, "difference")) << table.out;
  EXPECT_TRUE(contains(table.out, "model.safetensors, causal; differences are paired")) << table.out;
}

TEST_F(CliEvalRecurrence, WhatCannotBeComparedIsRefused) {
  train("run", "--data text --set train.sequence_length=256");
  train("longer", "--data text --set train.sequence_length=512");
  train("elsewhere", "--data other --set train.sequence_length=256");
  train("cut", "--data text --set train.sequence_length=256 --set data.split=80%/10%/10%");
  expect_refused("eval run --by-recurrence --against longer --quiet", {"length of a window", "256", "512"});
  expect_refused("eval run --by-recurrence --against elsewhere --quiet", {"data", "text", "other", "--data"});
  expect_refused("eval run --by-recurrence --against cut --quiet", {"split", "data.split"});
  expect_refused("eval run --against longer --quiet", {"--by-recurrence"});
  expect_refused("eval run --context 4 --quiet", {"--by-recurrence"});
  const Outcome outcome = run("eval run --by-recurrence --against longer --sequence-length 128 --quiet");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

}  // namespace
}  // namespace routing::eval_recurrence_test
