// routing quickstart as a user runs it, on texts and models that take seconds.
#include "cli/program_fixture.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace routing::quickstart_test {
namespace {

using Json = nlohmann::json;

// A model that takes a few milliseconds per step.
const std::string kSmall =
    " --set model.layers=2 --set model.width=32 --set attention.heads=2 --set attention.content_heads=1"
    " --set local.window=16 --set routing.window=16 --set routing.clusters=8 --set train.eval_tokens=256"
    " --set train.batch_size=2";

class CliQuickstart : public Cli {
 protected:
  void write_text(int lines) const {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < lines; ++i) text << "line " << i * i % 89 << " of a text\n";
  }

  Json json_of(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --quiet --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }

  // The same figure and the same interval as another command gives of the same bytes.
  void expect_as_eval_says(const Json& result, const std::string& limit) const {
    const Json all = json_of("eval run --split test --by-recurrence" + limit).at("recurrence").at("classes").at("all");
    EXPECT_EQ(result.at("bytes"), all.at("targets"));
    EXPECT_NEAR(result.at("bits_per_byte"), all.at("bits"), 1e-9);
    EXPECT_NEAR(result.at("bits_per_byte_low"), all.at("low"), 1e-9);
    EXPECT_NEAR(result.at("bits_per_byte_high"), all.at("high"), 1e-9);
  }
};

TEST_F(CliQuickstart, TrainsEvaluatesAndDraws) {
  write_text(1000);
  const std::string small =
      "quickstart --data text --out run --set train.sequence_length=64 --set data.split=90%/5%/5%" + kSmall;
  const Json result = json_of(small + " --minutes 0.01");
  EXPECT_GT(result.at("gzip_bits_per_byte"), 0.0);
  EXPECT_GT(result.at("xz_bits_per_byte"), 0.0);
  EXPECT_GE(result.at("sample").get<std::string>().size(), 300U) << "bytes; those that are not UTF-8 take three";
  for (const char* name : {"curves.png", "patterns.png", "metrics.jsonl", "clusters.jsonl", "config.toml"}) {
    EXPECT_GT(fs::file_size(folder_ / "run" / name), 0U) << name;
  }
  const auto samples = fs::directory_iterator(folder_ / "run/samples");
  EXPECT_NEAR(static_cast<double>(std::distance(fs::begin(samples), fs::end(samples))), 10.0, 1.0);
  expect_as_eval_says(result, "");
  // Once more: nothing is trained again, and the same figures come out.
  EXPECT_EQ(json_of("quickstart --out run"), result);
  const std::string lines = run("quickstart --quiet --out run").out;
  EXPECT_TRUE(contains(lines, "   causal, 95 % interval ")) << lines;
  EXPECT_TRUE(contains(lines, "\nA sample (nucleus 0.8, temperature 1, seed 1), after 400 held-out bytes\n  "))
      << lines;
  EXPECT_TRUE(contains(lines, "routing generate run --prompt")) << lines;
  const std::string last = lines.substr(lines.rfind('\n', lines.size() - 2) + 1);
  EXPECT_TRUE(last.starts_with("  routing serve run ")) << last;
  // The sample is what the other command gives after the beginning of the test part.
  const std::string text = text_of(folder_ / "text");
  std::ofstream(folder_ / "prompt") << text.substr(text.size() * 95 / 100, 400);
  EXPECT_EQ(json_of("generate run --prompt-file prompt -n 300 --seed 1").at("text"), result.at("sample"));
  expect_refused(small, {"run", "--out"});
}

TEST_F(CliQuickstart, ScoresTheFirstQuarterOfAMillionBytesThatAreHeldOut) {
  write_text(25000);
  const Json result = json_of(
      "quickstart --data text --out run --set train.steps=2 --set train.sequence_length=512"
      " --set data.split=rest/2000/300000" +
      kSmall);
  EXPECT_EQ(result.at("bytes"), 250000);
  expect_as_eval_says(result, " --limit-bytes 250000");
  // gzip reads the very same bytes.
  const std::string text = text_of(folder_ / "text");
  std::ofstream(folder_ / "scored") << text.substr(text.size() - 300000, 250000);
  ASSERT_EQ(
      std::system(
          ("gzip -9 < '" + (folder_ / "scored").string() + "' > '" + (folder_ / "zipped").string() + "'").c_str()),
      0);
  const double zipped = 8.0 * static_cast<double>(fs::file_size(folder_ / "zipped")) / 250000.0;
  EXPECT_NEAR(result.at("gzip_bits_per_byte"), zipped, 0.02 * zipped);
}

// Where the number of steps is given nothing is timed, so these hold on every machine.
TEST_F(CliQuickstart, SaysWhichSizeItTakesAndWritesItIntoTheRun) {
  write_text(1000);
  const Outcome outcome =
      run("quickstart --data text --out run --set data.split=90%/5%/5% --set train.eval_tokens=64 --set train.steps=1"
          " --set train.sequence_length=256");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "routing: quickstart-small, because the smallest model reads 0.0 million bytes"))
      << outcome.err;
  const std::string config = text_of(folder_ / "run" / "config.toml");
  EXPECT_TRUE(contains(config, "name = \"quickstart-small\"\n")) << config;
  EXPECT_TRUE(contains(config, "sequence_length = 256\n")) << config;
}

TEST_F(CliQuickstart, TakesALargerModelWhereTheSmallestReadsEnough) {
  write_text(1000);
  // As soon as the run has its configuration it may stop.
  const std::string command =
      "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM +
      "' quickstart --data text --out run --set data.split=90%/5%/5% --set train.steps=1000000" + kSmall +
      " > .out 2> .err & p=$!; while kill -0 $p 2> /dev/null && ! [ -s run/config.toml ]; do sleep 0.01; done;"
      " kill -INT $p 2> /dev/null; wait $p; } 2> /dev/null";
  const int status = std::system(command.c_str());
  const std::string said = text_of(folder_ / ".err");
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 130) << said;
  EXPECT_TRUE(contains(said, "routing: quickstart-medium, because the smallest model reads 2048.0 million bytes here"))
      << said;
  const std::string config = text_of(folder_ / "run" / "config.toml");
  EXPECT_TRUE(contains(config, "name = \"quickstart-medium\"\n")) << config;
  EXPECT_TRUE(contains(config, "width = 32\n")) << "--set still counts: " << config;
}

TEST_F(CliQuickstart, NamesTheMissingCorpus) {
  const Outcome outcome = run("quickstart --quiet --data nowhere --out run");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.err, "nowhere")) << outcome.err;
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

}  // namespace
}  // namespace routing::quickstart_test
