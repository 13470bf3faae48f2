// What `bench decode` measures: rows, names, bytes. Never how fast it was.
#include "lab/bench/decode_bench.h"

#include "lab/bench/small_sizes.h"
#include "routing/core/error.h"
#include "routing/model/transformer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace routing::bench::decode_bench_test {
namespace {

ExperimentConfig decoded_model() {
  ExperimentConfig config = small_model();
  config.model.vocab_size = 40;
  return config;
}

TEST(DecodeBench, WeightsOfASmallModelByHand) {
  ExperimentConfig config = decoded_model();
  const auto bytes = [&](MatmulPrecision precision) {
    return weight_bytes(*Transformer(config, at::TensorOptions().device(at::kMeta)), precision);
  };
  // A layer: Q, V and output of 32 x 32, keys of the two local heads (16 x 32), two feed-forward matrices of 32 x 48,
  // and two relative tables of 2 * 16 + 1 rows of 8. Then the output of 40 x 32.
  const std::int64_t matrices = 2 * (3 * 32 * 32 + 16 * 32 + 2 * 32 * 48 + 2 * 33 * 8) + 40 * 32;
  // A layer: two norms of 2 x 32, biases of 48 and 32, scales of two routed heads. Then the last norm, the output's
  // bias, one row of the embedding.
  const std::int64_t vectors = 2 * (2 * 64 + 48 + 32 + 2) + 64 + 40 + 32;
  EXPECT_EQ(bytes(MatmulPrecision::fp32), 4 * matrices + 4 * vectors);
  EXPECT_EQ(bytes(MatmulPrecision::bf16), 2 * matrices + 4 * vectors);
  config.model.tied_output = true;
  // The table is the output matrix: read as a whole already, the row included.
  EXPECT_EQ(bytes(MatmulPrecision::bf16), 2 * matrices + 4 * (vectors - 32));
}

TEST(DecodeBench, RowsOfEachModelAreTheWeightsTheStepsAndThePrefix) {
  const std::vector<Row> rows = bench_decode({.config = decoded_model(),
                                              .contents = {"local", "routing"},
                                              .precisions = {"fp32"},
                                              .positions = {40, 10},
                                              .batches = {1, 3},
                                              .prefix = 50,
                                              .prefill_block = 16,
                                              .runner = {.repeats = 5}});
  ASSERT_EQ(rows.size(), 2U * 7);
  const std::vector<std::string> passes{"read weights", "step", "step", "step", "step", "prefill", "re-run prefix"};
  const std::vector<std::int64_t> positions{0, 40, 10, 40, 10, 50, 50};
  const std::vector<std::int64_t> batches{1, 1, 1, 3, 3, 1, 1};
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const Row& row = rows[index];
    const std::size_t first = index / 7 * 7;
    EXPECT_EQ(row.bench, "decode");
    EXPECT_EQ(row.pattern, index < 7 ? "local" : "routing");
    EXPECT_EQ(row.memberships.has_value(), index >= 7);
    EXPECT_EQ(row.clusters, index < 7 ? 0 : 4);
    EXPECT_EQ(row.dim, 8);
    EXPECT_EQ(row.pass, passes[index % 7]);
    EXPECT_EQ(row.n, positions[index % 7]);
    EXPECT_EQ(row.batch, batches[index % 7]);
    EXPECT_DOUBLE_EQ(row.tokens_per_second() * row.seconds(), index % 7 < 5 ? static_cast<double>(row.batch) : 50.0);
    EXPECT_EQ(row.bytes > 0.0, index % 7 < 5);
    EXPECT_EQ(row.timing.samples, index % 7 < 5 ? 5 : 3);
    if (row.pass == "step") {
      EXPECT_DOUBLE_EQ(row.ratio, row.seconds() / rows[first].seconds());
    }
    if (row.pass == "prefill") {
      EXPECT_DOUBLE_EQ(row.ratio, row.seconds() / rows[first + 6].seconds());
    }
    if (row.pass == "re-run prefix") {
      EXPECT_DOUBLE_EQ(row.ratio, row.seconds() / rows[first + 1].seconds());
    }
  }
  // Thresholds were set up: a token is in about as many clusters as in training, not in all four.
  EXPECT_GE(*rows[7].memberships, 0.9);
  EXPECT_LT(*rows[7].memberships, 3.0);
}

TEST(DecodeBench, ThePrefixMayBeLeftOut) {
  const std::vector<Row> rows = bench_decode(
      {.config = decoded_model(), .precisions = {"bf16"}, .positions = {12}, .prefix = 0, .runner = {.repeats = 5}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].precision, "bf16");
  EXPECT_EQ(rows[1].pass, "step");
}

Row timed(const std::string& pass, std::int64_t n, std::int64_t batch, double seconds) {
  Row row{.pattern = "routing", .n = n, .batch = batch, .precision = "fp32", .pass = pass};
  row.timing.median = seconds;
  return row;
}

TEST(DecodeBench, SummariesCompareTheOutermostPositions) {
  std::vector<Row> rows{timed("read weights", 0, 1, 0.5), timed("step", 8000, 1, 3.0),
                        timed("step", 500, 1, 2.0),       timed("step", 4000, 1, 9.0),
                        timed("step", 8000, 8, 6.0),      timed("re-run prefix", 8192, 1, 300.0)};
  rows[1].ratio = 6.0;
  rows[4].ratio = 12.0;
  const std::vector<DecodeSummary> summaries = summarise_decoding(rows);
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].first_position, 500);
  EXPECT_EQ(summaries[0].last_position, 8000);
  EXPECT_DOUBLE_EQ(summaries[0].last_over_first, 1.5);
  EXPECT_DOUBLE_EQ(summaries[0].step_over_read, 6.0);
  EXPECT_DOUBLE_EQ(summaries[0].rerun_over_step.value(), 100.0);
  EXPECT_EQ(summaries[1].batch, 8);
  EXPECT_DOUBLE_EQ(summaries[1].last_over_first, 1.0);
  EXPECT_DOUBLE_EQ(summaries[1].step_over_read, 12.0);
  EXPECT_DOUBLE_EQ(summaries[1].rerun_over_step.value(), 50.0);
  rows.pop_back();
  EXPECT_FALSE(summarise_decoding(rows)[0].rerun_over_step.has_value());
}

TEST(DecodeBench, WhatCannotBeDecodedIsRefusedByName) {
  const auto expect_refused = [](DecodeBench bench) {
    if (bench.config.model.width != 32) bench.config = decoded_model();
    EXPECT_THROW(bench_decode(bench), ConfigError);
  };
  expect_refused({.contents = {"rooting"}});
  expect_refused({.contents = {"random"}});
  expect_refused({.precisions = {"fp23"}});
  expect_refused({.positions = {0}});
  expect_refused({.positions = {}});
  expect_refused({.batches = {0}});
  expect_refused({.runner = {.repeats = 4}});
}

}  // namespace
}  // namespace routing::bench::decode_bench_test
