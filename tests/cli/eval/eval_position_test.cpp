// routing eval --by-position as a user runs it: every file a sequence, ranges that add up, differences of two runs.
#include "cli/program_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

namespace routing::eval_position_test {
namespace {

class CliEvalPosition : public Cli {
 protected:
  CliEvalPosition() {
    for (const auto& [name, lines] :
         std::vector<std::pair<std::string, int>>{{"text", 200}, {"one", 150}, {"two", 60}}) {
      std::ofstream file(folder_ / name);
      for (int i = 0; i < lines; ++i) file << name << " has line " << i * i % 89 << "\n";
    }
    for (const std::string name : {"a", "b"}) {
      const Outcome trained = run(
          "train --quiet --preset tiny-enwik8 --data text --out " + name +
          " --set model.layers=1 --set model.width=32 --set attention.heads=2 --set attention.content_heads=1 --set "
          "model.feedforward_width=32 --set train.sequence_length=64 --set routing.window=16 --set "
          "attention.content_layers=all --set local.window=16 --set train.eval_tokens=64 --steps " +
          (name == "a" ? "1" : "3"));
      EXPECT_EQ(trained.exit_code, 0) << trained.err;
    }
  }
  nlohmann::json json_of(const std::string& arguments) const {
    const Outcome outcome = run("eval " + arguments + " --json --quiet");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(CliEvalPosition, EveryFileIsOneSequenceAndRangesAddUp) {
  const auto json = json_of("a --data one --data two --by-position --against b");
  const auto bytes = [&](const char* name) { return static_cast<std::int64_t>(text_of(folder_ / name).size()); };
  const std::int64_t one = bytes("one");
  const std::int64_t two = bytes("two");
  ASSERT_GT(one, 2048);
  ASSERT_LT(two, 1024);
  EXPECT_EQ(json.at("tokens"), one + two);
  EXPECT_EQ(json.at("windows"), 2);
  const auto& positions = json.at("positions");
  EXPECT_EQ(positions.at("unit"), "bits/byte");
  EXPECT_EQ(positions.at("sequences"), 2);
  const auto& ranges = positions.at("ranges");
  ASSERT_EQ(ranges.size(), 3U) << "0-1023, 1024-2047, 2048-4095";
  EXPECT_EQ(ranges[0].at("sequences"), 2);
  EXPECT_EQ(ranges[0].at("tokens"), 1024 + two);
  EXPECT_EQ(ranges[1].at("from"), 1024);
  EXPECT_EQ(ranges[1].at("to"), 2047);
  EXPECT_EQ(ranges[1].at("sequences"), 1);
  EXPECT_TRUE(ranges[1].at("low").is_null()) << "of one sequence there is no interval";
  EXPECT_EQ(ranges[2].at("tokens"), one - 2048);
  double bits = 0.0;
  for (const auto& range : ranges) bits += range.at("bits").get<double>() * range.at("tokens").get<double>();
  EXPECT_NEAR(bits / static_cast<double>(one + two), json.at("bits_per_byte").get<double>(), 1e-9);
  EXPECT_NEAR(positions.at("all").at("bits").get<double>(), json.at("bits_per_byte").get<double>(), 1e-9);

  // What each file costs when it is one window is what it costs here.
  const auto alone = json_of("a --data two --split all --sequence-length 100000");
  const double of_two = alone.at("eval_loss_nats").get<double>() * static_cast<double>(two);
  const auto first = json_of("a --data one --split all --sequence-length 100000");
  const double of_one = first.at("eval_loss_nats").get<double>() * static_cast<double>(one);
  EXPECT_NEAR((of_one + of_two) / static_cast<double>(one + two), json.at("eval_loss_nats").get<double>(), 1e-9);

  const auto other = json_of("b --data one --data two --by-position").at("positions");
  EXPECT_EQ(ranges[0].at("against").at("bits"), other.at("ranges")[0].at("bits"));
  EXPECT_NEAR(ranges[0].at("difference").at("bits").get<double>(),
              ranges[0].at("bits").get<double>() - other.at("ranges")[0].at("bits").get<double>(), 1e-9);
  EXPECT_FALSE(other.contains("against"));

  const Outcome split = run("eval a --data one --data two --by-position --split-sequence --ranks 2 --json --quiet");
  ASSERT_EQ(split.exit_code, 0) << split.err;
  EXPECT_EQ(nlohmann::json::parse(split.out).at("positions").at("ranges")[1].at("bits"), ranges[1].at("bits"))
      << "the bits of one process";
}

TEST_F(CliEvalPosition, IsATableForPeopleAndRefusesWhatContradictsIt) {
  const Outcome table = run("eval a --data one --data two --by-position --against b --quiet");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  for (const char* part : {"By position in the sequence: bits/byte", "\nall ", "\n1024-2047 ", "too few", "difference",
                           "2, each all of a path, the longest of"}) {
    EXPECT_NE(table.out.find(part), std::string::npos) << part << "\n" << table.out;
  }
  expect_refused("eval a --by-position --by-recurrence", {"--by-recurrence and --by-position are ways", "one of them"});
  expect_refused("eval a --by-position --stride 8", {"--by-position reads each path of --data as one sequence"});
  expect_refused("eval a --against b", {"--against is for --by-recurrence and --by-position"});
}

}  // namespace
}  // namespace routing::eval_position_test
