// routing table as a user runs it: lists, runs, reports, and every mistake with its answer.
#include "cli/program_fixture.h"
#include "test_paths.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace routing::table_test {
namespace {

using Json = nlohmann::json;

// shared-qk reads bytes, so any file will do.
const std::string kSmall =
    " --set model.layers=2 --set model.width=16 --set model.feedforward_width=32 --set attention.heads=2"
    " --set attention.content_heads=1 --set local.window=8 --set routing.clusters=4 --set routing.window=8"
    " --set train.sequence_length=32 --set train.batch_size=1 --set train.eval_tokens=64 --set train.log_every=1"
    " --set train.checkpoint_every=50 --quiet --threads 1";

class CliTable : public Cli {
 protected:
  CliTable() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 400; ++i) text << "line " << i * i % 89 << " of a text\n";
  }
};

TEST_F(CliTable, ListsTablesAndRows) {
  const Outcome tables = run("table --list");
  EXPECT_EQ(tables.exit_code, 0);
  EXPECT_TRUE(contains(tables.out, "cifar10-ablation   27 rows to run")) << tables.out;
  const Outcome rows = run("table cifar10-ablation --list");
  EXPECT_TRUE(contains(rows.out, "  11  routing-h4-l8-w512")) << rows.out;
  const Json all = Json::parse(run("table --list --json").out);
  EXPECT_EQ(all.size(), 11U);
  EXPECT_EQ(all[0]["rows"].size(), 27U);
}

TEST_F(CliTable, RunsPartsAndReports) {
  const std::string base = "table shared-qk --data text --out t --steps 2 --seeds 1,2" + kSmall;
  const Outcome first = run(base + " --part 1/2 --json");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  const Outcome second = run(base + " --part 2/2 --json");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const Json table = Json::parse(second.out);
  for (const Json& row : table["rows"]) {
    EXPECT_EQ(row["seeds"], Json::parse("[1,2]")) << row;
    const double mean = (row["values"][0].get<double>() + row["values"][1].get<double>()) / 2.0;
    EXPECT_NEAR(row["mean"].get<double>(), mean, 1e-12);
  }
  EXPECT_EQ(table["rows"][1]["labels"], "selection reads the future") << table["rows"][1];
  // Results alone make the table again.
  fs::create_directories(folder_ / "u");
  fs::copy(folder_ / "t/results", folder_ / "u/results");
  const Outcome report = run("table shared-qk --out u --report --json");
  EXPECT_EQ(Json::parse(report.out)["rows"], table["rows"]);
  for (const char* file : {"table.md", "table.csv", "table.png", "table.svg"}) {
    EXPECT_GT(fs::file_size(folder_ / "u" / file), 100U) << file;
  }
  const Outcome markdown = run("table shared-qk --out u --report --quiet");
  EXPECT_EQ(markdown.out, text_of(folder_ / "u/table.md"));
}

TEST_F(CliTable, InterruptedItSavesAndTheSameCommandGoesOn) {
  const std::string arguments = "table shared-qk --data text --out t --rows local --steps 200" + kSmall;
  const std::string command = "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + arguments +
                              " > .out 2> .err & p=$!; while kill -0 $p 2> /dev/null && ! [ -s "
                              "t/runs/local-seed1/metrics.jsonl ]; do sleep 0.01; done; kill -INT $p; wait $p; }";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130) << text_of(folder_ / ".err");
  EXPECT_TRUE(contains(text_of(folder_ / ".err"), "the same command goes on"));
  EXPECT_FALSE(fs::exists(folder_ / "t/results/local-seed1.json"));
  EXPECT_EQ(run(arguments).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "t/results/local-seed1.json"));
}

TEST_F(CliTable, MistakesAreAnsweredWithWhatToDo) {
  expect_refused("table", {"which one"});
  expect_refused("table enwik9 --out t", {"no table 'enwik9'", "'enwik8'"});
  expect_refused("table shared-qk", {"--out is required"});
  expect_refused("table shared-qk --out t", {"no data to train on", "--data PATH"});
  expect_refused("table shared-qk --out t --data text --rows shard", {"no row 'shard'", "'shared'"});
  expect_refused("table shared-qk --out t --data text --part 3/2", {"--part 3/2", "1 <= I <= N"});
  expect_refused("table shared-qk --out t --data text --scale huge", {"huge"});
  expect_refused("table shared-qk --out t --data text --selection best", {"best"});
  expect_refused("table shared-qk --out t --data text --seeds 1,x", {"'x' is not a seed"});
  expect_refused("table shared-qk --out t --report", {"is not a folder of a table"});
}

}  // namespace
}  // namespace routing::table_test
