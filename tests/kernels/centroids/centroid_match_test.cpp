#include "routing/kernels/centroids/centroid_match.h"

#include "routing/core/random.h"
#include "routing/kernels/dispatch/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace routing::kernels::centroid_match_test {
namespace {

// Tokens and centroids of one head. Every test runs at every level that this machine has.
struct Case {
  Case(std::int64_t num_tokens, std::int64_t num_clusters, std::int64_t num_dims, bool whole, std::uint64_t seed)
      : clusters(num_clusters), dim(num_dims), positions(static_cast<std::size_t>(num_tokens)) {
    RandomStream stream(seed, "centroid match");
    const auto fill = [&](std::vector<float>& values, std::int64_t count) {
      values.resize(static_cast<std::size_t>(count));
      // Whole numbers of -4 to 4 make every product and sum exact, so that no tolerance can hide a wrong tail.
      for (float& value : values) {
        value = whole ? static_cast<float>(stream.below(9)) - 4.0F : static_cast<float>(stream.normal());
      }
    };
    // Every third row belongs to no token.
    fill(rows, num_tokens * 3 * dim);
    fill(centroids, clusters * dim);
    fill(tau, clusters);
    for (std::size_t t = 0; t < positions.size(); ++t) positions[t] = static_cast<std::int32_t>(3 * t + 1);
  }
  CentroidRows view() const { return {centroids.data(), tau.data(), clusters, dim}; }
  TokenBlock block(std::int64_t first, std::int64_t count) const {
    return {.rows = rows.data(),
            .positions = positions.data() + first,
            .count = count,
            .following = static_cast<std::int64_t>(positions.size()) - first - count};
  }
  float score(std::int64_t c, std::int64_t t) const {
    double total = 0.0;
    for (std::int64_t d = 0; d < dim; ++d) {
      total += static_cast<double>(centroids[static_cast<std::size_t>(c * dim + d)]) * token(t, d);
    }
    return static_cast<float>(total);
  }
  float token(std::int64_t t, std::int64_t d) const {
    return rows[static_cast<std::size_t>(positions[static_cast<std::size_t>(t)] * dim + d)];
  }

  std::int64_t clusters, dim;
  std::vector<float> rows, centroids, tau;
  std::vector<std::int32_t> positions;
};

float score_of(const ScoreBlock& block, std::int64_t c, std::int64_t t) {
  return block.scores[static_cast<std::size_t>(c * kBlockTokens + t)];
}

class CentroidMatch : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_active_isa(GetParam()); }
  void TearDown() override { set_active_isa(before_); }

 private:
  Isa before_ = active_isa();
};
INSTANTIATE_TEST_SUITE_P(Levels, CentroidMatch, ::testing::ValuesIn(supported_isas()),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST_P(CentroidMatch, HandWorkedCase) {
  // Tokens (1, 2) and (-1, 3) against the centroids (5, 7), (0, 1), (2, -2).
  const std::vector<float> rows{1, 2, -1, 3};
  const std::vector<float> centroids{5, 7, 0, 1, 2, -2};
  const std::vector<float> tau{18, -1, -3};
  const std::vector<std::int32_t> positions{0, 1};
  const CentroidRows view{centroids.data(), tau.data(), 3, 2};
  const TokenBlock tokens{.rows = rows.data(), .positions = positions.data(), .count = 2};
  ScoreBlock block(3, 2);
  score_tokens(view, tokens, block);
  EXPECT_EQ(score_of(block, 0, 0), 19);
  EXPECT_EQ(score_of(block, 1, 0), 2);
  EXPECT_EQ(score_of(block, 2, 0), -2);
  EXPECT_EQ(score_of(block, 0, 1), 16);
  EXPECT_EQ(score_of(block, 1, 1), 3);
  EXPECT_EQ(score_of(block, 2, 1), -8);
  choose_centroids(view, block);
  EXPECT_EQ(block.argmax[0], 0);
  EXPECT_EQ(block.argmax[1], 0);
  EXPECT_EQ(block.nearest[0], 1);  // 1, 3, 1
  EXPECT_EQ(block.nearest[1], 1);  // -2, 4, -5
  EXPECT_EQ(block.passing[0], 0b111U);
  EXPECT_EQ(block.passing[1], 0b010U);
  EXPECT_EQ(squared_distance(view, tokens, block.argmax.data()), 16 + 25 + 36 + 16);
  std::vector<double> sums(6, 1.0);
  add_tokens(tokens, 2, block.nearest.data(), sums.data());
  EXPECT_EQ(sums, (std::vector<double>{1, 1, 1, 6, 1, 1}));
}

// Everything against plain loops, with whole numbers: scores, choices with ties, bits, sums and distances.
TEST_P(CentroidMatch, EqualsPlainLoopsAtEveryTail) {
  std::uint64_t seed = 0;
  for (const std::int64_t dim : {1, 2, 3, 4, 5, 8, 17, 31}) {
    for (const std::int64_t clusters : {1, 2, 5, 6, 7, 8, 9, 31, 32, 33, 64, 70}) {
      for (const std::int64_t count : {1, 2, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64}) {
        const Case data(count, clusters, dim, true, ++seed);
        const TokenBlock tokens = data.block(0, count);
        ScoreBlock block(clusters, dim);
        score_tokens(data.view(), tokens, block);
        choose_centroids(data.view(), block);
        std::vector<double> sum(static_cast<std::size_t>(clusters), 1.0);
        std::vector<double> square(static_cast<std::size_t>(clusters), 1.0);
        std::vector<std::int64_t> passing(static_cast<std::size_t>(clusters), 1);
        add_scores(data.view(), count, block, {sum.data(), square.data(), passing.data()});
        find_scores_above(data.view(), count, data.tau.data(), block);
        std::vector<double> moved(static_cast<std::size_t>(clusters * dim), 0.0);
        add_tokens(tokens, dim, block.argmax.data(), moved.data());
        double distance = 0.0;
        for (std::int64_t t = 0; t < count; ++t) {
          std::int64_t argmax = 0;
          std::int64_t nearest = 0;
          const auto margin = [&](std::int64_t c) { return data.score(c, t) - data.tau[static_cast<std::size_t>(c)]; };
          for (std::int64_t c = 0; c < clusters; ++c) {
            ASSERT_EQ(score_of(block, c, t), data.score(c, t)) << dim << " " << clusters << " " << count;
            if (data.score(c, t) > data.score(argmax, t)) argmax = c;
            if (margin(c) > margin(nearest)) nearest = c;
            const std::uint32_t word = block.passing[static_cast<std::size_t>(c / 32 * kBlockTokens + t)];
            ASSERT_EQ((word >> static_cast<unsigned>(c % 32)) & 1U, margin(c) >= 0 ? 1U : 0U);
            ASSERT_EQ((block.above[static_cast<std::size_t>(c)] >> static_cast<unsigned>(t)) & 1U,
                      margin(c) > 0 ? 1U : 0U);
            sum[static_cast<std::size_t>(c)] -= data.score(c, t);
            square[static_cast<std::size_t>(c)] -= static_cast<double>(data.score(c, t)) * data.score(c, t);
            passing[static_cast<std::size_t>(c)] -= margin(c) >= 0 ? 1 : 0;
          }
          ASSERT_EQ(block.argmax[static_cast<std::size_t>(t)], argmax);
          ASSERT_EQ(block.nearest[static_cast<std::size_t>(t)], nearest);
          for (std::int64_t d = 0; d < dim; ++d) {
            const double difference =
                static_cast<double>(data.token(t, d)) - data.centroids[static_cast<std::size_t>(argmax * dim + d)];
            distance += difference * difference;
            moved[static_cast<std::size_t>(argmax * dim + d)] -= data.token(t, d);
          }
        }
        ASSERT_EQ(squared_distance(data.view(), tokens, block.argmax.data()), distance);
        ASSERT_EQ(std::count(sum.begin(), sum.end(), 1.0), clusters);
        ASSERT_EQ(std::count(square.begin(), square.end(), 1.0), clusters);
        ASSERT_EQ(std::count(passing.begin(), passing.end(), 1), clusters);
        ASSERT_EQ(std::count(moved.begin(), moved.end(), 0.0), clusters * dim);
        for (const std::uint64_t bits : block.above)
          ASSERT_EQ(count == 64 ? 0 : bits >> static_cast<unsigned>(count), 0U);
      }
    }
  }
}

// What makes a token choose the same clusters in a batch, in a prefix and alone.
TEST_P(CentroidMatch, BitsOfAScoreDoNotDependOnTheBlockNorOnThePlaceInIt) {
  for (const std::int64_t clusters : {1, 3, 8, 13, 32, 37}) {
    for (const std::int64_t dim : {1, 7, 64, 129}) {
      const Case data(kBlockTokens, clusters, dim, false, 7);
      ScoreBlock whole(clusters, dim);
      score_tokens(data.view(), data.block(0, kBlockTokens), whole);
      choose_centroids(data.view(), whole);
      for (const std::int64_t part : {1, 2, 5, 16, 33}) {
        for (std::int64_t first = 0; first + part <= kBlockTokens; first += part) {
          ScoreBlock block(clusters, dim);
          score_tokens(data.view(), data.block(first, part), block);
          choose_centroids(data.view(), block);
          for (std::int64_t t = 0; t < part; ++t) {
            for (std::int64_t c = 0; c < clusters; ++c) {
              const float alone = score_of(block, c, t);
              const float together = score_of(whole, c, first + t);
              ASSERT_EQ(std::memcmp(&alone, &together, sizeof(float)), 0) << part << " tokens from " << first;
            }
            ASSERT_EQ(block.argmax[static_cast<std::size_t>(t)], whole.argmax[static_cast<std::size_t>(first + t)]);
            ASSERT_EQ(block.nearest[static_cast<std::size_t>(t)], whole.nearest[static_cast<std::size_t>(first + t)]);
          }
        }
      }
    }
  }
}

TEST_P(CentroidMatch, ScoresAreTheDotProducts) {
  const Case data(kBlockTokens, 19, 64, false, 3);
  ScoreBlock block(19, 64);
  score_tokens(data.view(), data.block(0, kBlockTokens), block);
  for (std::int64_t c = 0; c < 19; ++c) {
    for (std::int64_t t = 0; t < kBlockTokens; ++t) ASSERT_NEAR(score_of(block, c, t), data.score(c, t), 2e-5);
  }
}

TEST_P(CentroidMatch, AnEmptyBlockAddsNothing) {
  const Case data(1, 5, 3, false, 1);
  const TokenBlock none = data.block(0, 0);
  ScoreBlock block(5, 3);
  score_tokens(data.view(), none, block);
  choose_centroids(data.view(), block);
  std::vector<double> sums(15, 2.0);
  std::vector<std::int64_t> passing(5, 2);
  add_scores(data.view(), 0, block, {sums.data(), sums.data() + 5, passing.data()});
  add_tokens(none, 3, block.argmax.data(), sums.data());
  find_scores_above(data.view(), 0, std::vector<float>(5, -1.0F).data(), block);
  EXPECT_EQ(sums, std::vector<double>(15, 2.0));
  EXPECT_EQ(passing, std::vector<std::int64_t>(5, 2));
  EXPECT_EQ(block.above, std::vector<std::uint64_t>(5, 0));
  EXPECT_EQ(squared_distance(data.view(), none, block.argmax.data()), 0.0);
}

}  // namespace
}  // namespace routing::kernels::centroid_match_test
