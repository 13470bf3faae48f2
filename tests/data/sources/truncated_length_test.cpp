#include "routing/data/sources/truncated_length.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace routing::truncated_length_test {
namespace {

TrainConfig config_of(std::int64_t shortest, std::int64_t longest, std::uint64_t seed = 1) {
  TrainConfig config;
  config.shortest_length = shortest;
  config.sequence_length = longest;
  config.seed = seed;
  return config;
}

std::vector<std::int64_t> lengths(const TrainConfig& config, std::int64_t batches) {
  std::vector<std::int64_t> result;
  for (std::int64_t batch = 0; batch < batches; ++batch) result.push_back(truncated_length(config, batch));
  return result;
}

TEST(TruncatedLength, IsTheWholeSequenceUnlessAShortestIsGiven) {
  for (const std::int64_t length : lengths(config_of(0, 300), 50)) EXPECT_EQ(length, 300);
  for (const std::int64_t length : lengths(config_of(300, 300), 50)) EXPECT_EQ(length, 300);
  for (const std::int64_t length : lengths(config_of(1, 1), 50)) EXPECT_EQ(length, 1);
}

TEST(TruncatedLength, TakesEveryLengthOfTheRangeAboutEquallyOften) {
  constexpr std::int64_t kBatches = 16000;
  std::map<std::int64_t, int> counts;
  for (const std::int64_t length : lengths(config_of(5, 20), kBatches)) ++counts[length];
  ASSERT_EQ(counts.size(), 16U);
  EXPECT_EQ(counts.begin()->first, 5);
  EXPECT_EQ(counts.rbegin()->first, 20);
  // 1000 each; five standard deviations of a binomial count are 153.
  for (const auto& [length, count] : counts) EXPECT_NEAR(count, 1000, 153) << length;
}

TEST(TruncatedLength, IsAFunctionOfSeedAndBatchAlone) {
  const TrainConfig config = config_of(1, 4096);
  const std::vector<std::int64_t> forward = lengths(config, 40);
  for (std::int64_t batch = 39; batch >= 0; --batch) {
    EXPECT_EQ(truncated_length(config, batch), forward[static_cast<std::size_t>(batch)]) << batch;
  }
  EXPECT_NE(lengths(config_of(1, 4096, 2), 40), forward);
}

// Lengths are part of what a resumed run repeats: these values may never change.
TEST(TruncatedLength, KeepsItsValuesBetweenVersions) {
  EXPECT_EQ(lengths(config_of(1, 4096), 4), (std::vector<std::int64_t>{47, 3913, 1516, 651}));
}

TEST(TruncatedLength, RangesAndBatchesThatCannotBeAreRefused) {
  EXPECT_THROW(truncated_length(config_of(301, 300), 0), ConfigError);
  EXPECT_THROW(truncated_length(config_of(-1, 300), 0), ConfigError);
  EXPECT_THROW(truncated_length(config_of(1, 300), -1), InputError);
}

}  // namespace
}  // namespace routing::truncated_length_test
