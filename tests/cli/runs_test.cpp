// routing runs, routing analyze curves and spans: what the files of runs tell.
#include "cli/generate_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace routing::runs_test {
namespace {

const std::string kBytes =
    R"({"step":10,"train_loss_nats":4.0,"train_bits_per_byte":5.77,"tokens":1000,"seconds":60,"validity":"causal"}
{"step":10,"eval_loss_nats":3.0,"eval_bits_per_byte":4.5,"eval_split":"valid","eval_tokens":64,"best":true,"seconds":66,"validity":"causal"}
{"step":20,"train_loss_nats":2.0,"train_bits_per_byte":2.88,"tokens":2000,"seconds":120,"validity":"causal"}
)";
const std::string kWords =
    R"({"step":10,"train_loss_nats":4.0,"train_perplexity":54.6,"tokens":1000,"seconds":60,"validity":"causal"}
)";

class CliRuns : public CliGenerate {
 protected:
  nlohmann::json json_of(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(CliRuns, CurvesOfSeveralRunsAreOnePicture) {
  write("runs/a/metrics.jsonl", kBytes);
  write("runs/b/metrics.jsonl", kBytes);
  const Outcome outcome = run("analyze curves runs/a runs/b/");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"best bits/byte", "a ", "4.500", "2.880", "causal", "\ncurves.png\n"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in " << outcome.out;
  }
  EXPECT_EQ(text_of(folder_ / "curves.png").substr(1, 3), "PNG");
  const nlohmann::json all = json_of("analyze curves runs/a/metrics.jsonl runs/b --by minutes --smooth 0 --out c.svg");
  EXPECT_EQ(all["written"], nlohmann::json({"c.svg"}));
  ASSERT_EQ(all["runs"].size(), 2U);
  EXPECT_EQ(all["runs"][1]["run"], "runs/b");
  EXPECT_EQ(all["runs"][1]["best"], 4.5);
  EXPECT_EQ(all["runs"][1]["training"]["values"], nlohmann::json({5.77, 2.88}));
  EXPECT_EQ(all["runs"][1]["evaluation"]["tokens"], nlohmann::json({1000.0}));
  EXPECT_TRUE(contains(text_of(folder_ / "c.svg"), "<svg"));
}

TEST_F(CliRuns, CurvesThatCannotBeDrawnSayWhy) {
  write("a/metrics.jsonl", kBytes);
  write("b/metrics.jsonl", kWords);
  write("empty/metrics.jsonl", "");
  expect_refused("analyze curves a b", {"b: reports perplexity, but a reports bits/byte", "apart"});
  expect_refused("analyze curves a empty", {"empty: has logged nothing yet"});
  expect_refused("analyze curves a --by epochs", {"--by", "epochs"});
  expect_refused("analyze curves a --smooth 1", {"--smooth", "1"});
  expect_refused("analyze curves a --out a.pdf", {"a.pdf"});
  const Outcome missing = run("analyze curves nowhere");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(contains(missing.err, "nowhere: holds no metrics.jsonl")) << missing.err;
  write("a.log", "step 1\n");
  const Outcome foreign = run("analyze curves a a.log");
  EXPECT_EQ(foreign.exit_code, 1);
  EXPECT_TRUE(contains(foreign.err, "a.log: is neither the folder of a run nor its metrics.jsonl")) << foreign.err;
  EXPECT_FALSE(fs::exists(folder_ / "curves.png"));
}

TEST_F(CliRuns, SpansAreATableAndAPicture) {
  write("a/config.toml", "name = \"a\"\n[attention]\ncontent = \"span\"\n[span]\nlimit = 64\n");
  write("a/metrics.jsonl", R"({"step":10,"spans":{"layer 0":{"2":1.5,"3":0.5},"layer 1":{"2":7.25,"3":40}}}
)");
  const Outcome outcome = run("analyze spans a");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part :
       {"mean span", "layer 0", "1.0", "2: 1.5  3: 0.5", "layer 1", "23.6", "40.0", "\nspans.png\n"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in " << outcome.out;
  }
  EXPECT_EQ(text_of(folder_ / "spans.png").substr(1, 3), "PNG");
  const nlohmann::json all = json_of("analyze spans a --out s.svg");
  EXPECT_EQ(all["written"], nlohmann::json({"s.svg"}));
  ASSERT_EQ(all["heads"].size(), 4U);
  EXPECT_EQ(all["heads"][3]["attention"], "layer 1");
  EXPECT_EQ(all["heads"][3]["head"], 3);
  EXPECT_EQ(all["heads"][3]["span"], 40.0);
  write("a/metrics.jsonl", kBytes);
  expect_refused("analyze spans a", {"a: its log has no spans", "attention.content = span"});
}

TEST_F(CliRuns, TheTableHasEveryRunAndALineForABrokenOne) {
  train_on_bytes(4, "--set train.log_every=2");
  fs::create_directories(folder_ / "runs");
  fs::rename(folder_ / "run", folder_ / "runs/first");
  write("runs/site/config.toml", "baseURL = 'https://example.org'\n");
  write("runs/notes/readme.txt", "no run");
  const Outcome outcome = run("runs");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 3U) << outcome.out;
  for (const char* part : {"run", "state", "step", "best", "label", "when", "data", "weights"}) {
    EXPECT_TRUE(contains(all[0], part)) << part;
  }
  for (const char* part : {"first", "finished", "4/4", " bits/byte", "causal", "text"}) {
    EXPECT_TRUE(contains(all[1], part)) << part << " in " << all[1];
  }
  EXPECT_TRUE(contains(all[2], "site") && contains(all[2], "baseURL")) << all[2];
  const nlohmann::json objects = json_of("runs runs --sort best");
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[0]["state"], "finished");
  EXPECT_EQ(objects[0]["step"], 4);
  EXPECT_EQ(objects[0]["unit"], "bits_per_byte");
  EXPECT_GT(objects[0]["parameters"].get<std::int64_t>(), 1000);
  EXPECT_EQ(objects[0]["audit"], "not audited");
  EXPECT_TRUE(objects[1].contains("problem"));
}

TEST_F(CliRuns, OrdersAndMistakes) {
  for (const std::string name : {"a", "b", "c"}) {
    write("runs/" + name + "/config.toml", "name = \"" + name + "\"\n");
    write("runs/" + name + "/metrics.jsonl", name == "b" ? kBytes : "");
  }
  fs::last_write_time(folder_ / "runs/a/metrics.jsonl", fs::file_time_type::clock::now() + std::chrono::hours(1));
  fs::last_write_time(folder_ / "runs/c/metrics.jsonl", fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto order = [&](const std::string& options) {
    std::string names;
    for (const nlohmann::json& object : json_of("runs runs " + options)) names += object["name"].get<std::string>();
    return names;
  };
  EXPECT_EQ(order(""), "abc") << "newest first";
  EXPECT_EQ(order("--sort best"), "bac") << "what has none comes last";
  EXPECT_EQ(order("--sort steps"), "bac");
  EXPECT_EQ(order("--sort run"), "abc");
  expect_refused("runs runs --sort colour", {"--sort", "colour"});
  const Outcome missing = run("runs nowhere");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(contains(missing.err, "nowhere: is not a folder")) << missing.err;
  fs::create_directories(folder_ / "empty");
  const Outcome none = run("runs empty");
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_TRUE(contains(none.err, "no runs below empty")) << none.err;
}

}  // namespace
}  // namespace routing::runs_test
