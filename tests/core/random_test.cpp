#include "routing/core/random.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace routing::random_test {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The published known answers of the algorithm.
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (Words{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  EXPECT_EQ(philox(0xffffffffffffffffULL, {0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU}),
            (Words{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(philox(0x299f31d0a4093822ULL, {0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}),
            (Words{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

TEST(StreamKey, DiffersInSeedNameNumbersAndTheirOrder) {
  const std::set<std::uint64_t> keys{stream_key(1, "a"),         stream_key(2, "a"),      stream_key(1, "b"),
                                     stream_key(1, "a", {0}),    stream_key(1, "a", {1}), stream_key(1, "a", {1, 2}),
                                     stream_key(1, "a", {2, 1}), stream_key(1, "ab"),     stream_key(1, "a", {0, 0}),
                                     stream_key(1, "")};
  EXPECT_EQ(keys.size(), 10U);
}

// Checkpoints depend on these never changing.
TEST(StreamKey, IsTheSameForever) {
  EXPECT_EQ(stream_key(1, "dropout", {3, 4}), stream_key(1, "dropout", {3, 4}));
  EXPECT_EQ(stream_key(0, ""), 0xa706dd2f4d197e6fULL);
  EXPECT_EQ(stream_key(1, "dropout", {3, 4}), 0x7699734219a9b61bULL);
}

TEST(RandomStream, StartsWithTheWordsOfItsFirstBlock) {
  RandomStream stream(17);
  const Words first = philox(17, {0, 0, 0, 0});
  const Words second = philox(17, {1, 0, 0, 0});
  for (const std::uint32_t word : first) EXPECT_EQ(stream.next_u32(), word);
  EXPECT_EQ(stream.next_u32(), second[0]);
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream stream(1, "below");
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (int draw = 0; draw < kDraws; ++draw) ++counts.at(stream.below(7));
  // Chi-square with 6 degrees of freedom: above 22.5 in one run of a thousand.
  double chi_square = 0.0;
  for (const int count : counts) chi_square += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_square, 22.5);
  EXPECT_EQ(stream.below(1), 0U);
  EXPECT_THROW(stream.below(0), InputError);
}

TEST(RandomStream, UniformAndNormalHaveTheirMoments) {
  RandomStream stream(1, "moments");
  constexpr int kDraws = 200000;
  double uniform_sum = 0.0;
  double normal_sum = 0.0;
  double normal_squares = 0.0;
  double normal_fourth = 0.0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double u = stream.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform_sum += u;
    const double z = stream.normal();
    normal_sum += z;
    normal_squares += z * z;
    normal_fourth += z * z * z * z;
  }
  EXPECT_NEAR(uniform_sum / kDraws, 0.5, 0.003);
  EXPECT_NEAR(normal_sum / kDraws, 0.0, 0.01);
  EXPECT_NEAR(normal_squares / kDraws, 1.0, 0.015);
  EXPECT_NEAR(normal_fourth / kDraws, 3.0, 0.12);
}

TEST(SortedSample, IsDistinctAscendingAndEachMemberEquallyLikely) {
  std::array<int, 6> counts{};
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    RandomStream stream(seed, "sample");
    const auto sample = sorted_sample(stream, 6, 3);
    ASSERT_EQ(sample.size(), 3U);
    ASSERT_LT(sample[0], sample[1]);
    ASSERT_LT(sample[1], sample[2]);
    for (const std::int32_t member : sample) ++counts.at(static_cast<std::size_t>(member));
  }
  for (const int count : counts) EXPECT_NEAR(count, 3000, 200);
}

TEST(SortedSample, TakesAllOrNoneAndRefusesMore) {
  RandomStream stream(1, "sample");
  EXPECT_EQ(sorted_sample(stream, 3, 3), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_TRUE(sorted_sample(stream, 3, 0).empty());
  EXPECT_TRUE(sorted_sample(stream, 0, 0).empty());
  EXPECT_THROW(sorted_sample(stream, 3, 4), InputError);
}

TEST(StreamKeys, AreTheKeysWithOneMoreNumber) {
  EXPECT_EQ(StreamKeys(7, "use")(3), stream_key(7, "use", {3}));
  EXPECT_EQ(StreamKeys(7, "", {1, 2})(0), stream_key(7, "", {1, 2, 0}));
  EXPECT_NE(StreamKeys(7, "", {1, 2})(0), stream_key(7, "", {1, 2}));
}

}  // namespace
}  // namespace routing::random_test
