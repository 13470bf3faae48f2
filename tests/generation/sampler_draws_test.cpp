// The draws of the sampler: what is drawn how often, and which random numbers decide.
#include "generation/sampling_oracle.h"
#include "routing/core/random.h"
#include "routing/generation/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace routing::sampler_draws_test {
namespace {

using Ids = std::vector<std::int32_t>;
using Logits = std::vector<float>;

constexpr std::int64_t kDraws = 100'000;
// Seeds are fixed: a right sampler fails one of the tests below in about 1 of 500 choices of them, and with these
// none.
constexpr double kAlpha = 1e-4;

Logits random_logits(std::size_t count, double spread) {
  RandomStream stream(11, "logits", {count});
  Logits logits;
  for (std::size_t id = 0; id < count; ++id) logits.push_back(static_cast<float>(spread * stream.normal()));
  return logits;
}

std::vector<std::int64_t> counts_of_draws(const SamplingOptions& options, const Logits& logits, const Ids& seen) {
  Sampler sampler(options);
  std::vector<std::int64_t> counts(logits.size());
  for (std::int64_t draw = 0; draw < kDraws; ++draw) {
    // Over samples and positions, both of which must be independent.
    const DrawPlace place{.sample = static_cast<std::uint64_t>(draw % 100),
                          .position = static_cast<std::uint64_t>(draw / 100)};
    ++counts[static_cast<std::size_t>(sampler.draw(logits, seen, place).token)];
  }
  return counts;
}

// Values with tail 0.0001 in printed tables of the chi-square distribution.
TEST(ChiSquareTest, ChanceIsThatOfTheTables) {
  EXPECT_NEAR(chance_above(15.1367, 1), 1e-4, 1e-7);
  EXPECT_NEAR(chance_above(18.4207, 2), 1e-4, 1e-7);
  EXPECT_NEAR(chance_above(35.5640, 10), 1e-4, 1e-7);
  EXPECT_NEAR(chance_above(3.8415, 1), 0.05, 1e-5);
  EXPECT_NEAR(chance_above(11.0705, 5), 0.05, 1e-5);
}

TEST(SamplerDraws, CountsFitTheExactDistribution) {
  struct Case {
    std::string name;
    SamplingOptions options;
    Logits logits;
    Ids seen;
  };
  const Logits small = random_logits(12, 1.5);
  const Logits large = random_logits(200, 2.0);
  const std::vector<Case> cases{
      {"temperature 1", {.top_p = 1.0}, large, {}},
      {"temperature 0.5", {.temperature = 0.5, .top_p = 1.0}, large, {}},
      {"temperature 2", {.temperature = 2.0, .top_p = 1.0}, large, {}},
      {"top-k", {.top_k = 5, .top_p = 1.0}, small, {}},
      {"top-k of many", {.top_k = 100, .top_p = 1.0}, large, {}},
      {"k = 1", {.top_k = 1, .top_p = 1.0}, small, {}},
      {"top-p", {.top_p = 0.8}, small, {}},
      {"top-p of many", {.top_p = 0.8}, large, {}},
      {"top-p all but one", {.top_p = 0.999}, small, {}},
      {"p tiny", {.top_p = 1e-12}, small, {}},
      {"min-p", {.top_p = 1.0, .min_p = 0.1}, large, {}},
      {"repetition", {.top_p = 1.0, .repetition_penalty = 1.5}, small, {0, 3, 3, 5, 11}},
      {"ties", {.top_k = 7, .top_p = 1.0}, Logits(10, -3.0F), {}},
      {"ties in the nucleus", {.top_p = 0.65}, {2.0F, 1.0F, 1.0F, 1.0F, 1.0F}, {}},
      {"all steps",
       {.temperature = 1.3, .top_k = 60, .top_p = 0.9, .min_p = 0.05, .repetition_penalty = 1.2},
       large,
       {4}},
  };
  for (const Case& one : cases) {
    const auto expected = sorted_filtered_softmax(one.options, one.logits, one.seen);
    EXPECT_GT(chance_of_counts(expected, counts_of_draws(one.options, one.logits, one.seen)), kAlpha) << one.name;
  }
}

// A sampler that keeps the mass 1 - p instead of p (lucidrains/routing-transformer, issue 1) must not pass the test
// above; nor must one that is off by little.
TEST(SamplerDraws, CountsOfWrongSamplersDoNotFit) {
  const Logits logits = random_logits(12, 1.5);
  const SamplingOptions right{.top_p = 0.8};
  const auto expected = sorted_filtered_softmax(right, logits, {});
  const std::vector<SamplingOptions> wrong{
      {.top_p = 1.0 - right.top_p}, {.top_p = 1.0}, {.temperature = 1.05, .top_p = 0.8}, {.top_p = 0.8, .min_p = 0.3}};
  for (const SamplingOptions& options : wrong) {
    ASSERT_NE(sorted_filtered_softmax(options, logits, {})[0].probability, expected[0].probability);
    EXPECT_LT(chance_of_counts(expected, counts_of_draws(options, logits, {})), kAlpha);
  }
  // And the other way round, with few draws too many of one token.
  auto counts = counts_of_draws(right, logits, {});
  EXPECT_GT(chance_of_counts(expected, counts), kAlpha);
  counts[static_cast<std::size_t>(expected.back().token)] += kDraws / 100;
  EXPECT_LT(chance_of_counts(expected, counts), kAlpha);
}

// The token of u is the first one, most likely first, at which the running sum of probabilities exceeds u.
TEST(SamplerDraws, EachDrawIsTheInverseOfTheDistributionAtOneNumberOfItsStream) {
  for (const std::size_t vocabulary : {7UL, 1000UL}) {
    const Logits logits = random_logits(vocabulary, 1.0);
    for (const double top_p : {0.8, 1.0}) {
      Sampler sampler({.top_p = top_p, .seed = 5});
      const auto distribution = sampler.distribution(logits, {});
      for (std::uint64_t sample = 0; sample < 10; ++sample) {
        for (std::uint64_t position = 0; position < 100; ++position) {
          const double number = RandomStream(5, "token", {sample, position}).uniform();
          std::size_t place = 0;
          for (double sum = distribution[0].probability; sum <= number;) sum += distribution.at(++place).probability;
          EXPECT_EQ(sampler.draw(logits, {}, {.sample = sample, .position = position}).token,
                    distribution[place].token);
        }
      }
    }
  }
}

TEST(SamplerDraws, TokensOfASampleDoNotDependOnOtherSamplesOrTheirOrder) {
  const Logits logits = random_logits(50, 1.0);
  const auto tokens_of = [&](Sampler& sampler, std::uint64_t sample) {
    Ids tokens;
    for (std::uint64_t position = 0; position < 40; ++position) {
      tokens.push_back(sampler.draw(logits, tokens, {.sample = sample, .position = position}).token);
    }
    return tokens;
  };
  Sampler one({.repetition_penalty = 1.1});
  Sampler other({.repetition_penalty = 1.1});
  const Ids first = tokens_of(one, 0);
  const Ids second = tokens_of(one, 1);
  EXPECT_EQ(tokens_of(other, 1), second);
  EXPECT_EQ(tokens_of(other, 0), first);
  // Position by position, both at once.
  Ids first_again;
  Ids second_again;
  for (std::uint64_t position = 0; position < 40; ++position) {
    second_again.push_back(one.draw(logits, second_again, {.sample = 1, .position = position}).token);
    first_again.push_back(one.draw(logits, first_again, {.sample = 0, .position = position}).token);
  }
  EXPECT_EQ(first_again, first);
  EXPECT_EQ(second_again, second);
  EXPECT_NE(first, second);
  Sampler other_seed({.repetition_penalty = 1.1, .seed = 2});
  EXPECT_NE(tokens_of(other_seed, 0), first);
}

// Pairs of neighbouring positions, and of equal positions in neighbouring samples, are as frequent as the products say.
TEST(SamplerDraws, StreamsOfSamplesAndPositionsAreIndependent) {
  Sampler sampler({.top_p = 1.0});
  const Logits logits(6, 0.0F);
  const auto token = [&](std::uint64_t sample, std::uint64_t position) {
    return static_cast<std::size_t>(sampler.draw(logits, {}, {.sample = sample, .position = position}).token);
  };
  std::vector<TokenProbability> expected;
  for (std::int32_t pair = 0; pair < 36; ++pair) expected.push_back({pair, 1.0 / 36});
  std::vector<std::int64_t> by_position(36);
  std::vector<std::int64_t> by_sample(36);
  for (std::uint64_t pair = 0; pair < 36000; ++pair) {
    ++by_position[6 * token(3, 2 * pair) + token(3, 2 * pair + 1)];
    ++by_sample[6 * token(2 * pair, 8) + token(2 * pair + 1, 8)];
  }
  EXPECT_GT(chance_of_counts(expected, by_position), kAlpha);
  EXPECT_GT(chance_of_counts(expected, by_sample), kAlpha);
}

TEST(SamplerDraws, GreedyTakesTheLargestLogitOfLowestIdEveryTime) {
  Sampler greedy({.temperature = 0.0});
  Sampler nearly({.temperature = 1e-30, .top_p = 1.0});
  const Logits ties{1.0F, 5.0F, 5.0F};
  const Logits clear = random_logits(300, 1.0);
  const auto best = static_cast<std::int32_t>(std::max_element(clear.begin(), clear.end()) - clear.begin());
  for (std::uint64_t position = 0; position < 200; ++position) {
    EXPECT_EQ(greedy.draw(ties, {}, {.position = position}).token, 1);
    EXPECT_EQ(greedy.draw(clear, {}, {.position = position}).token, best);
    EXPECT_EQ(nearly.draw(clear, {}, {.position = position}).token, best);
  }
}

}  // namespace
}  // namespace routing::sampler_draws_test
