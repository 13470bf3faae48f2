#include "routing/attention/routing/token_sample.h"

#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace routing::token_sample_test {
namespace {

using Vectors = std::vector<std::vector<float>>;

// A token's vector names it: (number, -number).
std::vector<float> vector_of(std::size_t token) {
  return {static_cast<float>(token), -static_cast<float>(token)};
}

std::uint64_t priority_of(std::size_t token, std::uint64_t seed = 1) {
  return stream_key(seed, "token sample test", {token});
}

void offer_token(TokenSample& sample, std::size_t token, std::uint64_t seed = 1) {
  sample.offer(priority_of(token, seed), vector_of(token));
}

std::vector<std::size_t> numbers_up_to(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = i;
  return numbers;
}

// By sorting everything.
Vectors lowest(std::size_t tokens, std::size_t capacity, std::uint64_t seed = 1) {
  std::vector<std::size_t> order = numbers_up_to(tokens);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return priority_of(a, seed) < priority_of(b, seed); });
  order.resize(std::min(capacity, tokens));
  Vectors vectors;
  for (const std::size_t token : order) vectors.push_back(vector_of(token));
  return vectors;
}

TEST(TokenSample, HandWorkedCase) {
  TokenSample sample(2, 1);
  for (const std::uint64_t priority : {30U, 10U, 40U, 20U}) {
    sample.offer(priority, std::vector<float>{static_cast<float>(priority)});
  }
  EXPECT_EQ(sample.vectors(), (Vectors{{10.0F}, {20.0F}}));
}

TEST(TokenSample, IsTheTokensWithTheLowestPriorities) {
  for (const std::size_t capacity : {1, 2, 7, 64}) {
    TokenSample sample(capacity, 2);
    for (std::size_t token = 0; token < 300; ++token) offer_token(sample, token);
    EXPECT_EQ(sample.vectors(), lowest(300, capacity)) << capacity;
    EXPECT_EQ(sample.capacity(), capacity);
  }
}

TEST(TokenSample, DoesNotDependOnTheOrderOfOffers) {
  std::vector<std::size_t> order = numbers_up_to(100);
  RandomStream stream(3, "token sample order");
  for (int trial = 0; trial < 20; ++trial) {
    for (std::size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i], order[stream.below(static_cast<std::uint32_t>(i) + 1)]);
    }
    TokenSample sample(9, 2);
    for (const std::size_t token : order) offer_token(sample, token);
    EXPECT_EQ(sample.vectors(), lowest(100, 9));
  }
}

TEST(TokenSample, MergedPartsAreTheSampleOfTheWhole) {
  constexpr std::size_t kTokens = 100;
  for (const std::size_t parts : {2, 3, 7, 100}) {
    std::vector<TokenSample> samples(parts, TokenSample(9, 2));
    for (std::size_t token = 0; token < kTokens; ++token) offer_token(samples[token % parts], token);
    TokenSample forwards(9, 2);
    for (const TokenSample& sample : samples) forwards.merge(sample);
    EXPECT_EQ(forwards.vectors(), lowest(kTokens, 9)) << parts;
    TokenSample backwards = samples.back();
    for (std::size_t part = parts - 1; part > 0; --part) backwards.merge(samples[part - 1]);
    EXPECT_EQ(backwards.vectors(), lowest(kTokens, 9)) << parts;
  }
}

TEST(TokenSample, AFreshOneBecomesWhatIsMergedIntoIt) {
  TokenSample other(3, 2);
  for (std::size_t token = 0; token < 10; ++token) offer_token(other, token);
  TokenSample fresh;
  fresh.merge(other);
  EXPECT_EQ(fresh.vectors(), other.vectors());
  EXPECT_EQ(fresh.capacity(), 3U);
  // It goes on as the other would have.
  for (std::size_t token = 10; token < 50; ++token) offer_token(fresh, token);
  EXPECT_EQ(fresh.vectors(), lowest(50, 3));
}

TEST(TokenSample, MergingNothingChangesNothing) {
  TokenSample sample(3, 2);
  for (std::size_t token = 0; token < 10; ++token) offer_token(sample, token);
  const Vectors before = sample.vectors();
  sample.merge(TokenSample());
  sample.merge(TokenSample(5, 2));
  EXPECT_EQ(sample.vectors(), before);
  EXPECT_EQ(sample.capacity(), 3U);
}

TEST(TokenSample, WithoutCapacityKeepsNothing) {
  TokenSample sample(0, 2);
  for (std::size_t token = 0; token < 10; ++token) offer_token(sample, token);
  EXPECT_TRUE(sample.vectors().empty());
  EXPECT_TRUE(TokenSample().vectors().empty());
}

TEST(TokenSample, FewerTokensThanCapacityAreAllKept) {
  TokenSample sample(16, 2);
  EXPECT_TRUE(sample.vectors().empty());
  for (std::size_t token = 0; token < 5; ++token) offer_token(sample, token);
  EXPECT_EQ(sample.vectors(), lowest(5, 16));
  EXPECT_EQ(sample.vectors().size(), 5U);
}

// Over many keys every token is sampled equally often. For equal chances the statistic has mean about `tokens` and
// standard deviation about sqrt(2 tokens) (draws without replacement make it a little smaller); the limits are five
// deviations away, and the draws are fixed.
TEST(TokenSample, IsUniformOverManyKeys) {
  constexpr std::size_t kTokens = 50;
  constexpr std::size_t kCapacity = 10;
  constexpr std::size_t kKeys = 4000;
  std::vector<double> taken(kTokens, 0.0);
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    TokenSample sample(kCapacity, 2);
    for (std::size_t token = 0; token < kTokens; ++token) offer_token(sample, token, key);
    for (const std::vector<float>& vector : sample.vectors()) taken[static_cast<std::size_t>(vector[0])] += 1.0;
  }
  const double share = static_cast<double>(kCapacity) / kTokens;
  const double expected = kKeys * share;
  double statistic = 0.0;
  for (const double count : taken) statistic += (count - expected) * (count - expected) / (expected * (1.0 - share));
  EXPECT_GT(statistic, kTokens - 5.0 * 10.0);
  EXPECT_LT(statistic, kTokens + 5.0 * 10.0);
}

}  // namespace
}  // namespace routing::token_sample_test
