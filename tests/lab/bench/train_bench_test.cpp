// What the benchmarks measure: names, sizes, pairs, operations. Never how fast it was.
#include "lab/bench/train_bench.h"

#include "lab/bench/small_sizes.h"
#include "routing/core/error.h"
#include "routing/model/transformer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace routing::bench::train_bench_test {
namespace {

ExperimentConfig trained_model() {
  ExperimentConfig config = small_model();
  config.patterns.local.relative = RelativePosition::none;
  config.train.batch_size = 2;
  return config;
}

TEST(TrainBench, DenseOperationsAreThoseOfTheMatrices) {
  ExperimentConfig config = trained_model();
  config.attention.content = PatternKind::local;
  const auto options = at::TensorOptions().dtype(at::kFloat);
  // Q, K, V and output of 32 x 32, two feed-forward matrices of 32 x 48 in each of two layers, 256 x 32 for the output;
  // the embedding is looked up.
  const double weights = 2.0 * (4.0 * 32.0 * 32.0 + 2.0 * 32.0 * 48.0) + 256.0 * 32.0;
  EXPECT_DOUBLE_EQ(dense_step_flops(*Transformer(config, options), 10), 3.0 * 2.0 * 10.0 * weights);
  config.model.tied_output = true;
  EXPECT_DOUBLE_EQ(dense_step_flops(*Transformer(config, options), 10), 3.0 * 2.0 * 10.0 * weights);
  config.patterns.local.relative = RelativePosition::true_offset;
  EXPECT_DOUBLE_EQ(dense_step_flops(*Transformer(config, options), 10), 3.0 * 2.0 * 10.0 * weights);
}

TEST(TrainBench, PairsOfAllLocalHeadsFollowFromTheWindow) {
  const std::vector<Row> rows =
      bench_train({.config = trained_model(), .precisions = {"fp32"}, .runner = {.repeats = 5}});
  ASSERT_EQ(rows.size(), 2U);
  const std::int64_t pairs = 2 * sliding_pairs({.batch = 2, .n = 64, .heads = 4, .window = 16});
  EXPECT_EQ(rows[0].pattern, "local");
  EXPECT_EQ(rows[0].pairs, pairs);
  const double dense = 3.0 * 2.0 * 128.0 * (2.0 * (4.0 * 32.0 * 32.0 + 2.0 * 32.0 * 48.0) + 256.0 * 32.0);
  EXPECT_DOUBLE_EQ(rows[0].flops, dense + attention_flops(Pass::forward_backward, pairs, 8));
  EXPECT_DOUBLE_EQ(rows[0].ratio, 1.0);
  EXPECT_EQ(rows[0].clusters, 0);
  EXPECT_EQ(rows[1].pattern, "routing");
  EXPECT_EQ(rows[1].clusters, 4);
  EXPECT_DOUBLE_EQ(rows[1].ratio, rows[1].seconds() / rows[0].seconds());
  EXPECT_EQ(rows[1].pass, "step");
  EXPECT_DOUBLE_EQ(rows[1].tokens_per_second(), 128.0 / rows[1].seconds());
}

TEST(TrainBench, WhatIsKeptForTheBackwardPassGrowsWithTheBatch) {
  ExperimentConfig config = trained_model();
  config.train.sequence_length = 512;
  const auto kept = [&](std::int64_t batch) {
    config.train.batch_size = batch;
    const std::vector<Row> rows =
        bench_train({.config = config, .contents = {"local"}, .precisions = {"fp32"}, .runner = {.repeats = 5}});
    return static_cast<double>(rows.at(0).kept_bytes.value());
  };
  const double one = kept(1);
  // Two layers keep at least their two inputs, queries, keys, values and the hidden layer: 5 x 32 + 48 numbers per
  // token.
  EXPECT_GT(one, 512.0 * 2.0 * (5.0 * 32.0 + 48.0) * 4.0);
  EXPECT_LT(one, 512.0 * 2.0 * 30.0 * 32.0 * 4.0);
  EXPECT_NEAR(kept(4), 4.0 * one, 0.2 * 4.0 * one);
}

TEST(TrainBench, ReadsTheFirstBytesOfAFileAndRefusesOneShorterThanABatch) {
  const auto path = std::filesystem::temp_directory_path() / ("routing_bench_" + std::to_string(::getpid()));
  TrainBench bench{
      .config = trained_model(), .contents = {"local"}, .precisions = {"fp32"}, .data = path, .runner = {.repeats = 5}};
  EXPECT_THROW(bench_train(bench), FileError);
  std::ofstream(path) << std::string(127, 'a');
  EXPECT_THROW(bench_train(bench), InputError);
  std::ofstream(path) << std::string(128, 'a');
  EXPECT_EQ(bench_train(bench).size(), 1U);
  std::filesystem::remove(path);
}

TEST(TrainBench, UnknownContentsAndTooFewRoundsAreRefusedBeforeAnyStep) {
  EXPECT_THROW(bench_train({.config = trained_model(), .contents = {"rooting"}}), ConfigError);
  EXPECT_THROW(bench_train({.config = trained_model(), .runner = {.repeats = 4}}), ConfigError);
  EXPECT_THROW(require_enough_repeats({.repeats = 4}), ConfigError);
  EXPECT_NO_THROW(require_enough_repeats({.repeats = 5}));
}

}  // namespace
}  // namespace routing::bench::train_bench_test
