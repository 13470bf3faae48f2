// What the benchmarks measure: names, sizes, pairs, operations. Never how fast it was.
#include "lab/bench/layers_bench.h"

#include "lab/bench/small_sizes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace routing::bench::layers_bench_test {
namespace {

TEST(LayersBench, NamesEveryOperationWithItsOperations) {
  const std::vector<Row> rows = bench_layers({.attention = kSmall,
                                              .feedforward_width = 24,
                                              .vocabulary = 32,
                                              .layers = 1,
                                              .precisions = {MatmulPrecision::fp32},
                                              .runner = {.repeats = 5}});
  std::set<std::string> names;
  for (const Row& row : rows) {
    names.insert(row.pattern + "/" + row.pass);
    EXPECT_GT(row.seconds(), 0.0) << row.pattern;
    EXPECT_EQ(row.n, 96);
  }
  EXPECT_EQ(names.size(), rows.size());
  for (const char* name : {"linear 16x16", "linear 16x24", "linear 24x16", "vocabulary_loss", "layer_norm", "dropout",
                           "residual", "embedding", "attend local", "attend threshold"}) {
    EXPECT_TRUE(names.contains(std::string(name) + "/forward")) << name;
    EXPECT_TRUE(names.contains(std::string(name) + "/backward")) << name;
  }
  for (const char* name : {"plan threshold/plan", "gradient_norm/step", "adam/step", "adafactor/step"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  const auto row_of = [&](const std::string& pattern, const std::string& pass) {
    return *find_row(rows, [&](const Row& row) { return row.pattern == pattern && row.pass == pass; });
  };
  EXPECT_DOUBLE_EQ(row_of("linear 16x24", "forward").flops, 2.0 * 192.0 * 16.0 * 24.0);
  EXPECT_DOUBLE_EQ(row_of("linear 16x24", "backward").flops, 4.0 * 192.0 * 16.0 * 24.0);
  EXPECT_DOUBLE_EQ(row_of("linear 16x24", "forward").bytes, 4.0 * (192.0 * 16.0 + 16.0 * 24.0 + 192.0 * 24.0));
  // Read: inputs and the result's gradient; written: gradients of the inputs.
  EXPECT_DOUBLE_EQ(row_of("linear 16x24", "backward").bytes, 4.0 * (2.0 * (192.0 * 16.0 + 16.0 * 24.0) + 192.0 * 24.0));
  EXPECT_DOUBLE_EQ(row_of("attend local", "backward").flops,
                   2.0 * 5.0 * 8.0 * static_cast<double>(sliding_pairs(kSmall)));
  EXPECT_DOUBLE_EQ(row_of("adam", "step").bytes, 28.0 * (4.0 * 16.0 * 16.0 + 2.0 * 16.0 * 24.0));
  EXPECT_DOUBLE_EQ(row_of("adafactor", "step").bytes, 24.0 * (4.0 * 16.0 * 16.0 + 2.0 * 16.0 * 24.0));
}

TEST(LayersBench, MeasuresBandsOfTheVocabularyWhereThereAre) {
  const std::vector<Row> rows = bench_layers({.attention = kSmall,
                                              .feedforward_width = 24,
                                              .vocabulary = 32,
                                              .bands = "4,12",
                                              .band_factor = 2.0,
                                              .layers = 1,
                                              .precisions = {MatmulPrecision::fp32},
                                              .runner = {.repeats = 5}});
  const auto row_of = [&](const std::string& pattern, const std::string& pass) {
    const Row* const row =
        find_row(rows, [&](const Row& each) { return each.pattern == pattern && each.pass == pass; });
    EXPECT_NE(row, nullptr) << pattern << " " << pass;
    return row == nullptr ? Row{} : *row;
  };
  const Row forward = row_of("adaptive_softmax", "forward");
  // Every row reads the 4 words and 2 symbols of the first band; those of further bands read less than all of a table.
  EXPECT_GT(forward.flops, 2.0 * 192.0 * 16.0 * 6.0);
  EXPECT_LT(forward.flops, row_of("vocabulary_loss", "forward").flops);
  EXPECT_DOUBLE_EQ(row_of("adaptive_softmax", "backward").flops, 2.0 * forward.flops);
  EXPECT_GT(row_of("adaptive_embedding", "backward").seconds(), 0.0);
}

}  // namespace
}  // namespace routing::bench::layers_bench_test
