// `routing bench` as a script sees it: one JSON object per line, every key there, numbers that agree with each other.
#include "cli/program_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace routing::bench_test {
namespace {

using Json = nlohmann::json;

std::vector<Json> objects_in(const std::string& text) {
  std::vector<Json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) objects.push_back(Json::parse(line));
  return objects;
}

void expect_row(const Json& row) {
  for (const char* key : {"bench",       "pattern",
                          "n",           "heads",
                          "dim",         "window",
                          "clusters",    "precision",
                          "pass",        "pairs",
                          "seconds",     "gflops",
                          "peak_bytes",  "tokens_per_second",
                          "ratio",       "spread",
                          "repeats",     "batch",
                          "threads",     "isa",
                          "cpu",         "build",
                          "gemm_gflops", "share_of_gemm",
                          "flops",       "version"}) {
    ASSERT_TRUE(row.contains(key)) << key << " in " << row;
  }
  const double seconds = row["seconds"];
  EXPECT_GT(seconds, 0.0) << row;
  EXPECT_LT(seconds, 60.0) << row;
  const double gflops = row["gflops"];
  EXPECT_NEAR(gflops, row["flops"].get<double>() * 1e-9 / seconds, 1e-9 * gflops) << row;
  const double tokens = row["n"].get<double>() * row["batch"].get<double>();
  EXPECT_NEAR(row["tokens_per_second"].get<double>() * seconds, tokens, 1e-6 * tokens) << row;
  EXPECT_NEAR(row["share_of_gemm"].get<double>() * row["gemm_gflops"].get<double>(), gflops, 1e-9 * gflops) << row;
  EXPECT_GT(row["ratio"].get<double>(), 0.0) << row;
  EXPECT_GE(row["repeats"].get<int>(), 5) << row;
  EXPECT_LE(row["fastest"].get<double>(), seconds) << row;
  EXPECT_GE(row["slowest"].get<double>(), seconds) << row;
  if (!row["peak_bytes"].is_null()) {
    EXPECT_GE(row["peak_bytes"].get<std::int64_t>(), 0) << row;
    EXPECT_LT(row["peak_bytes"].get<double>(), 1e9) << row;
  }
}

class BenchCli : public Cli {
 protected:
  std::vector<Json> rows_of(const std::string& arguments) const {
    const Outcome outcome = run("bench " + arguments + " --json --repeats 5");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return objects_in(outcome.out);
  }
};

TEST_F(BenchCli, AttentionRowsHaveEveryKeyAndLocalPairsByFormula) {
  const std::vector<Json> rows = rows_of("attention -n 256 --heads 2 --dim 16 --window 32 --clusters 8 --threads 2");
  ASSERT_EQ(rows.size(), 3U * 5);
  std::set<std::string> cases;
  for (const Json& row : rows) {
    expect_row(row);
    EXPECT_EQ(row["bench"], "attention");
    EXPECT_EQ(row["threads"], 2);
    cases.insert(row["pattern"].get<std::string>() + row["pass"].get<std::string>() +
                 row["precision"].get<std::string>());
    const auto pairs = row["pairs"].get<std::int64_t>();
    if (row["pattern"] == "local") {
      EXPECT_EQ(pairs, 2 * (32 * 33 / 2 + (256 - 32) * 32));
    }
    const double a_pair = row["pass"] == "plan" ? 0.0 : row["pass"] == "forward" ? 4.0 * 16 : 14.0 * 16;
    EXPECT_DOUBLE_EQ(row["flops"].get<double>(), a_pair * static_cast<double>(pairs)) << row;
    EXPECT_EQ(row.contains("memberships"), row["pattern"] != "local");
  }
  EXPECT_EQ(cases.size(), rows.size());
}

TEST_F(BenchCli, AttentionTakesListsOfPatternsPrecisionsAndPasses) {
  const std::vector<Json> rows = rows_of(
      "attention --tokens 128 --heads 1 --dim 8 --window 16 --clusters 4 --batch 2 --pattern full,lsh,random,strided "
      "--pattern balanced --precision fp32 --pass forward");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0]["pattern"], "full");
  EXPECT_EQ(rows[0]["pairs"], 2 * 128 * 129 / 2);
  EXPECT_EQ(rows[0]["ratio"], 1.0);
  EXPECT_EQ(rows[4]["pattern"], "balanced");
  EXPECT_EQ(rows[4]["batch"], 2);
}

TEST_F(BenchCli, TrainRowsCountDenseLayersAndAttendedPairs) {
  const std::vector<Json> rows =
      rows_of("train -n 128 --layers 2 --width 32 --heads 4 --window 16 --clusters 4 --content local,routing");
  ASSERT_EQ(rows.size(), 4U);
  for (const Json& row : rows) {
    expect_row(row);
    EXPECT_EQ(row["bench"], "train");
    EXPECT_EQ(row["pass"], "step");
    const bool local = row["pattern"] == "local";
    if (local) {
      EXPECT_EQ(row["pairs"], 2 * 4 * (16 * 17 / 2 + (128 - 16) * 16));
    }
    // Routed heads have no key weights: half of one matrix in each layer.
    const double weights = 2.0 * ((local ? 4.0 : 3.5) * 32 * 32 + 2.0 * 32 * 128) + 256.0 * 32;
    EXPECT_DOUBLE_EQ(row["flops"].get<double>(), 6.0 * 128 * weights + 14.0 * 8 * row["pairs"].get<double>());
    if (local) {
      EXPECT_EQ(row["ratio"], 1.0);
    }
  }
}

TEST_F(BenchCli, TrainTakesPresetsAndSettings) {
  const std::vector<Json> rows = rows_of(
      "train --preset quickstart --set model.layers=2 --set train.batch_size=1 -n 256 --content routing --precision "
      "fp32");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["n"], 256);
  EXPECT_EQ(rows[0]["batch"], 1);
}

TEST_F(BenchCli, ScalingEndsWithFittedExponents) {
  const std::vector<Json> rows = rows_of("scaling --from 128 --to 512 --fit-from 128 --heads 1 --dim 16");
  ASSERT_EQ(rows.size(), 3U * 2 + 2);
  for (std::size_t index = 0; index < 6; ++index) expect_row(rows[index]);
  EXPECT_EQ(rows[4]["n"], 512);
  EXPECT_EQ(rows[4]["clusters"], 23);
  EXPECT_EQ(rows[4]["window"], 22);
  for (std::size_t index = 6; index < 8; ++index) {
    EXPECT_EQ(rows[index]["bench"], "scaling-fit");
    EXPECT_EQ(rows[index]["points"], 3);
    // Of lengths as short as these only that it is a number.
    EXPECT_TRUE(rows[index]["exponent_seconds"].is_number()) << rows[index];
    EXPECT_TRUE(rows[index].contains("exponent_bytes")) << rows[index];
    EXPECT_TRUE(rows[index].contains("cpu")) << rows[index];
  }
}

TEST_F(BenchCli, DecodeRowsEndWithASummaryOfEachModel) {
  const std::vector<Json> rows = rows_of(
      "decode --layers 1 --width 32 --heads 4 --window 16 --clusters 4 --vocab 64 --positions 20,60 --batch 1,2 "
      "--prefix 80 --precision fp32,bf16 --set train.sequence_length=64");
  // Of each precision: the weights, two positions for each batch, prefill, re-run; then a summary for each batch.
  ASSERT_EQ(rows.size(), 2U * 7 + 2U * 2);
  for (std::size_t index = 0; index < 14; ++index) {
    const Json& row = rows[index];
    EXPECT_EQ(row["bench"], "decode");
    EXPECT_EQ(row["pattern"], "routing");
    EXPECT_GT(row["seconds"].get<double>(), 0.0) << row;
    EXPECT_GT(row["memberships"].get<double>(), 0.0) << row;
    const bool whole = row["pass"] == "prefill" || row["pass"] == "re-run prefix";
    EXPECT_EQ(row.contains("bytes_per_second"), !whole) << row;
    EXPECT_EQ(row["repeats"], whole ? 3 : 5);
    // A step makes one token of every sequence.
    const double tokens = whole ? 80.0 : row["batch"].get<double>();
    EXPECT_NEAR(row["tokens_per_second"].get<double>() * row["seconds"].get<double>(), tokens, 1e-6 * tokens) << row;
  }
  EXPECT_EQ(rows[1]["pass"], "step");
  EXPECT_EQ(rows[1]["n"], 20);
  EXPECT_NEAR(rows[1]["ratio"].get<double>(), rows[1]["seconds"].get<double>() / rows[0]["seconds"].get<double>(),
              1e-9);
  const Json& summary = rows[14];
  EXPECT_EQ(summary["bench"], "decode-summary");
  EXPECT_EQ(summary["batch"], 1);
  EXPECT_EQ(summary["first_position"], 20);
  EXPECT_EQ(summary["last_position"], 60);
  EXPECT_NEAR(summary["last_over_first"].get<double>(),
              rows[2]["seconds"].get<double>() / rows[1]["seconds"].get<double>(), 1e-9);
  EXPECT_NEAR(summary["step_over_read"].get<double>(), rows[2]["ratio"].get<double>(), 1e-12);
  EXPECT_NEAR(summary["rerun_over_step"].get<double>(), rows[6]["ratio"].get<double>(), 1e-9);
  EXPECT_TRUE(summary.contains("cpu"));
}

TEST_F(BenchCli, DecodeEndsItsTableWithSentences) {
  const Outcome outcome =
      run("bench decode --layers 1 --width 16 --heads 2 --window 8 --clusters 2 --positions 8 --prefix 0 "
          "--precision fp32 --repeats 5 --content local --set train.sequence_length=32");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("read weights"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("local fp32, batch 1: a step at 8 takes 1.00 x one at 8, "), std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("re-run"), std::string::npos) << outcome.out;
}

TEST_F(BenchCli, ScalingSweepsClustersAtOneLength) {
  const std::vector<Json> rows = rows_of(
      "scaling --sweep-clusters --sweep-tokens 256 --clusters-from 8 --clusters-to 32 --heads 1 --dim 16 --pattern "
      "nearest");
  ASSERT_EQ(rows.size(), 3U);
  for (const Json& row : rows) {
    expect_row(row);
    EXPECT_EQ(row["bench"], "scaling-clusters");
    EXPECT_EQ(row["clusters"].get<int>() * row["window"].get<int>(), 256);
    EXPECT_TRUE(row.contains("plan_share")) << row;
  }
}

TEST_F(BenchCli, LayersListsOperations) {
  const std::vector<Json> rows =
      rows_of("layers -n 128 --heads 2 --dim 16 --window 32 --clusters 4 --feedforward-width 64 --layers 1");
  std::set<std::string> names;
  for (const Json& row : rows) {
    expect_row(row);
    names.insert(row["pattern"]);
  }
  for (const char* name : {"linear 32x32", "linear 32x64", "linear 64x32", "layer_norm", "adam", "attend threshold"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_F(BenchCli, ATableNamesItsColumnsAndTheMachine) {
  const Outcome outcome =
      run("bench attention -n 128 --heads 1 --dim 8 --window 16 --clusters 4 --repeats 5 --precision fp32");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"threads", "GEMM ", "pattern", "spread", "GFLOP/s", "of GEMM", "tokens/s", "peak MiB",
                           "plan", "ratio", "threshold"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
  EXPECT_FALSE(contains(outcome.out, "GB/s")) << outcome.out;
}

TEST_F(BenchCli, MistakesEndWithTwoBeforeAnythingIsMeasured) {
  expect_refused("bench attention --pattern local,treshold", {"'treshold' is not known", "did you mean 'threshold'?"});
  expect_refused("bench attention --precision fp23", {"'fp23'", "did you mean 'fp32'?"});
  expect_refused("bench attention --pass backwards", {"'backwards'", "forward+backward"});
  expect_refused("bench attention -n 128 --window 129", {"window 129", "128 tokens", "--window"});
  expect_refused("bench attention --repeats 4", {"repeats is 4", "at least 5", "--repeats"});
  expect_refused("bench attention --heads 0", {"--heads", "0 is out of range"});
  expect_refused("bench attention --patern local", {"unknown option '--patern'", "did you mean '--pattern'?"});
  expect_refused("bench train --content rooting", {"'rooting'", "did you mean 'routing'?"});
  expect_refused("bench train --width 100 --heads 3", {"100", "3"});
  expect_refused("bench train --preset tiny", {"tiny"});
  expect_refused("bench decode --content rooting", {"'rooting'", "did you mean 'routing'?"});
  expect_refused("bench decode --content random", {"random heads", "--content"});
  expect_refused("bench decode --precision fp23", {"'fp23'", "did you mean 'fp32'?"});
  expect_refused("bench decode --positions 0", {"--positions", "0 is out of range"});
  expect_refused("bench decode --repeats 4", {"repeats is 4", "--repeats"});
  expect_refused("bench scaling --from 2048 --to 1024", {"2048", "1024"});
  expect_refused("bench attenton", {"unknown command 'attenton'", "did you mean 'attention'?"});
  expect_refused("bench", {"a command is missing"});
}

TEST_F(BenchCli, DistributedRowsAgreeWithEachOther) {
  const Outcome outcome =
      run("bench distributed --steps 5 --repeats 1 --threads 2 --json --set model.width=64 --set model.layers=2"
          " --set train.sequence_length=64 --set routing.window=16 --set local.window=16 --set routing.clusters=4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Json> rows = objects_in(outcome.out);
  ASSERT_EQ(rows.size(), 9U) << outcome.out;
  EXPECT_EQ(rows[0].at("ranks"), 1);
  EXPECT_EQ(rows[0].at("threads_a_rank"), 2);
  EXPECT_EQ(rows[0].at("ratio"), 1.0);
  EXPECT_EQ(rows[0].at("bytes_sent_per_step"), 0.0);
  EXPECT_EQ(rows[1].at("ranks"), 2);
  EXPECT_EQ(rows[1].at("threads_a_rank"), 1);
  const double rate = rows[1].at("tokens_per_second");
  EXPECT_NEAR(rows[1].at("ratio").get<double>(), rate / rows[0].at("tokens_per_second").get<double>(), 1e-9);
  // A batch of 4 sequences of 64.
  EXPECT_NEAR(rate * rows[1].at("step_seconds").get<double>(), 256.0, 1e-6);
  // Two ranks send as many bytes as there are gradients, and a little for routing.
  EXPECT_GT(rows[1].at("bytes_sent_per_step").get<double>(), rows[2].at("gradient_bytes").get<double>());
  EXPECT_LT(rows[1].at("bytes_sent_per_step").get<double>(), 1.2 * rows[2].at("gradient_bytes").get<double>());
  for (std::size_t i = 3; i < 9; ++i) {
    EXPECT_EQ(rows[i].at("bench"), "distributed-paper");
    EXPECT_GT(rows[i].at("speedup").get<double>(), 0.0);
    EXPECT_LE(rows[i].at("speedup").get<double>(), rows[i].at("ranks").get<double>());
  }
  expect_refused("bench distributed --steps 2", {"--steps is 2"});
}

TEST_F(BenchCli, LongRowsAgreeWithEachOther) {
  const std::string small =
      " --set model.width=64 --set model.layers=2 --set routing.window=16 --set local.window=16"
      " --set routing.clusters=4 --set train.precision=fp32";
  const Outcome outcome = run(
      "bench long --from 512 --to 1024 --fit-from 512 --ranks 1,2 --contents local,full --threads 2 --json" + small);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Json> rows = objects_in(outcome.out);
  ASSERT_EQ(rows.size(), 4U + 2U + 2U + 7U) << outcome.out;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i].at("bench"), "long");
    EXPECT_EQ(rows[i].at("tokens"), i < 2 ? 512 : 1024);
    EXPECT_EQ(rows[i].at("ranks"), i % 2 == 0 ? 1 : 2);
    EXPECT_NEAR(rows[i].at("tokens_per_second").get<double>() * rows[i].at("step_seconds").get<double>(),
                rows[i].at("tokens").get<double>(), 1e-6);
    EXPECT_GT(rows[i].at("peak_bytes").get<double>(), 5e7);
    EXPECT_EQ(rows[i].at("row_bytes_a_token") > 0.0, i % 2 == 1);
  }
  EXPECT_EQ(rows[4].at("bench"), "long-growth");
  // Two full heads in each of the top two layers, of 8 dimensions in float32, beside the local ones.
  EXPECT_EQ(rows[6].at("content"), "local");
  const double more = rows[7].at("bytes_a_token").get<double>() - rows[6].at("bytes_a_token").get<double>();
  EXPECT_GT(more, 0.0);
  EXPECT_LE(more, 2.0 * 2.0 * 2.0 * 8.0 * 4.0);
  EXPECT_EQ(rows[8].at("bench"), "long-paper-input");
  for (std::size_t i = 9; i < 15; ++i) {
    EXPECT_LE(rows[i].at("speedup").get<double>(), rows[i].at("ranks").get<double>());
  }
  const Outcome alone = run("bench long --from 512 --to 512 --ranks 2 --contents none --threads 2 --json" + small);
  EXPECT_EQ(alone.out.find("long-bytes"), std::string::npos) << alone.out;
  EXPECT_NE(alone.out.find("long-paper"), std::string::npos) << alone.err;
  expect_refused("bench long --from 512 --to 256", {"--from is 512", "--to 256"});
}

}  // namespace
}  // namespace routing::bench_test
