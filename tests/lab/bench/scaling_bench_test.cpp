// What the benchmarks measure: names, sizes, pairs, operations. Never how fast it was.
#include "lab/bench/scaling_bench.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace routing::bench::scaling_bench_test {
namespace {

TEST(ScalingBench, ClustersAreTheRootOfTheLengthAndFillItWithTheirWindows) {
  const AttentionSizes sizes = scaling_sizes({}, 16384);
  EXPECT_EQ(sizes.clusters, 128);
  EXPECT_EQ(sizes.window, 128);
  const AttentionSizes odd = scaling_sizes({}, 2048);
  EXPECT_EQ(odd.clusters, 45);  // 45.25
  EXPECT_EQ(odd.window, 46);    // 45.51
  EXPECT_EQ(sweep_sizes({}, 16384, 1024).window, 16);
}

TEST(ScalingBench, LengthsDoubleAndFullAttentionStopsEarly) {
  std::vector<std::size_t> batches;
  const std::vector<Row> rows = bench_scaling({.patterns = {"threshold", "full"},
                                               .from = 64,
                                               .to = 256,
                                               .full_to = 128,
                                               .heads = 1,
                                               .dim = 8,
                                               .runner = {.repeats = 5}},
                                              [&](const std::vector<Row>& done) { batches.push_back(done.size()); });
  EXPECT_EQ(batches, (std::vector<std::size_t>{2, 2, 1}));
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[1].pairs, 64 * 65 / 2);
  EXPECT_EQ(rows[4].n, 256);
  EXPECT_EQ(rows[4].pattern, "threshold");
  const double first = rows[0].seconds() / static_cast<double>(rows[0].pairs);
  EXPECT_NEAR(rows[4].ratio, rows[4].seconds() / static_cast<double>(rows[4].pairs) / first, 1e-9);
  EXPECT_THROW(bench_scaling({.from = 128, .to = 64}, {}), ConfigError);
}

TEST(ScalingBench, FitsEveryPatternOverTheLongSequencesOnly) {
  std::vector<Row> rows;
  const auto add = [&](const char* pattern, std::int64_t n, double seconds, std::int64_t bytes) {
    Row row{.pattern = pattern, .n = n, .peak_bytes = bytes};
    row.timing.median = seconds;
    rows.push_back(row);
  };
  add("a", 16, 99.0, 1);  // left out
  add("a", 64, 1.0, 100);
  add("b", 64, 1.0, 100);
  add("a", 256, 8.0, 400);
  const std::vector<GrowthFit> fits = fit_growth(rows, 64);
  ASSERT_EQ(fits.size(), 2U);
  EXPECT_EQ(fits[0].pattern, "a");
  EXPECT_EQ(fits[0].from, 64);
  EXPECT_EQ(fits[0].to, 256);
  EXPECT_EQ(fits[0].points, 2);
  EXPECT_NEAR(fits[0].seconds.value(), 1.5, 1e-12);
  EXPECT_NEAR(fits[0].bytes.value(), 1.0, 1e-12);
  EXPECT_EQ(fits[1].points, 1);
  EXPECT_FALSE(fits[1].seconds.has_value());
}

TEST(ScalingBench, ASweepDoublesClustersAndComparesWithTheFastest) {
  const ScalingBench bench{.patterns = {"threshold"}, .heads = 1, .dim = 8, .runner = {.repeats = 5}};
  const std::vector<Row> rows = bench_cluster_sweep(bench, {.n = 256, .from = 4, .to = 16});
  ASSERT_EQ(rows.size(), 3U);
  double smallest = 1e9;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    EXPECT_EQ(rows[index].clusters, 4 << index);
    EXPECT_EQ(rows[index].window, 64 >> index);
    EXPECT_EQ(rows[index].pass, "forward+backward");
    EXPECT_TRUE(rows[index].plan_share.has_value());
    smallest = std::min(smallest, rows[index].ratio);
  }
  EXPECT_DOUBLE_EQ(smallest, 1.0);
  EXPECT_THROW(bench_cluster_sweep(bench, {.n = 256, .from = 4, .to = 512}), ConfigError);
}

}  // namespace
}  // namespace routing::bench::scaling_bench_test
