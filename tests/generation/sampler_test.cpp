#include "routing/generation/sampler.h"

#include "generation/sampling_oracle.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace routing::sampler_test {
namespace {

using Ids = std::vector<std::int32_t>;
using Logits = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Logarithms of these, shifted: softmax does not mind.
Logits logits_of(const std::vector<double>& probabilities) {
  Logits logits;
  for (const double probability : probabilities) logits.push_back(static_cast<float>(std::log(probability) + 1.5));
  return logits;
}

Logits random_logits(std::size_t count, std::uint64_t seed, double spread) {
  RandomStream stream(seed, "logits");
  Logits logits;
  for (std::size_t id = 0; id < count; ++id) logits.push_back(static_cast<float>(spread * stream.normal()));
  return logits;
}

void expect_distribution(const SamplingOptions& options, const Logits& logits,
                         const std::vector<TokenProbability>& expected, const Ids& seen = {}) {
  Sampler sampler(options);
  const auto found = sampler.distribution(logits, seen);
  ASSERT_EQ(found.size(), expected.size());
  double sum = 0.0;
  for (std::size_t place = 0; place < found.size(); ++place) {
    EXPECT_EQ(found[place].token, expected[place].token) << "place " << place;
    EXPECT_NEAR(found[place].probability, expected[place].probability, 1e-6) << "place " << place;
    sum += found[place].probability;
  }
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(Sampler, HandWorkedFilters) {
  const Logits logits = logits_of({0.1, 0.4, 0.05, 0.3, 0.15});
  expect_distribution({.top_p = 1.0}, logits, {{1, 0.4}, {3, 0.3}, {4, 0.15}, {0, 0.1}, {2, 0.05}});
  expect_distribution({.top_k = 2, .top_p = 1.0}, logits, {{1, 4.0 / 7}, {3, 3.0 / 7}});
  expect_distribution({.top_k = 1, .top_p = 1.0}, logits, {{1, 1.0}});
  expect_distribution({.top_k = 99, .top_p = 1.0}, logits, {{1, 0.4}, {3, 0.3}, {4, 0.15}, {0, 0.1}, {2, 0.05}});
  expect_distribution({.top_p = 0.8}, logits, {{1, 8.0 / 17}, {3, 6.0 / 17}, {4, 3.0 / 17}});  // 0.7 is too little
  expect_distribution({.top_p = 0.69}, logits, {{1, 4.0 / 7}, {3, 3.0 / 7}});
  expect_distribution({.top_p = 0.39}, logits, {{1, 1.0}});
  expect_distribution({.top_p = 1e-300}, logits, {{1, 1.0}});
  expect_distribution({.top_p = 1.0, .min_p = 0.3}, logits, {{1, 8.0 / 17}, {3, 6.0 / 17}, {4, 3.0 / 17}});  // >= 0.12
  expect_distribution({.top_p = 1.0, .min_p = 1.0}, logits, {{1, 1.0}});
  expect_distribution({}, logits, {{1, 8.0 / 17}, {3, 6.0 / 17}, {4, 3.0 / 17}});  // top_p = 0.8
}

// 16 : 9 are the squares of 4 : 3, and 2 : sqrt(3) their roots.
TEST(Sampler, HandWorkedTemperatures) {
  const Logits logits = logits_of({4.0, 3.0});
  expect_distribution({.temperature = 0.5, .top_p = 1.0}, logits, {{0, 16.0 / 25}, {1, 9.0 / 25}});
  expect_distribution({.temperature = 2.0, .top_p = 1.0}, logits,
                      {{0, 2.0 / (2.0 + std::sqrt(3.0))}, {1, std::sqrt(3.0) / (2.0 + std::sqrt(3.0))}});
  expect_distribution({.temperature = 1e300, .top_p = 1.0}, logits, {{0, 0.5}, {1, 0.5}});
}

// Shares are taken of what the step before has left: of the two best, 4/7 is enough for p = 0.57; of all it is 0.4.
TEST(Sampler, TopPComesAfterTopKAndAfterTemperature) {
  const Logits logits = logits_of({0.1, 0.4, 0.05, 0.3, 0.15});
  expect_distribution({.top_k = 2, .top_p = 0.57}, logits, {{1, 1.0}});
  expect_distribution({.top_p = 0.57}, logits, {{1, 4.0 / 7}, {3, 3.0 / 7}});
  // Squares: 16, 9, 2.25, 1 and 0.25 of 28.5; the best has 0.56.
  expect_distribution({.temperature = 0.5, .top_p = 0.56}, logits, {{1, 1.0}});
  // And top-p before min-p: of the share 0.8 of all, those with at least half of the largest.
  expect_distribution({.top_p = 0.8, .min_p = 0.5}, logits, {{1, 4.0 / 7}, {3, 3.0 / 7}});
}

TEST(Sampler, EqualTokensGoByIdAndTopKKeepsExactlyK) {
  const Logits flat(6, 2.5F);
  expect_distribution({.top_k = 4, .top_p = 1.0}, flat, {{0, 0.25}, {1, 0.25}, {2, 0.25}, {3, 0.25}});
  expect_distribution({.top_p = 0.5}, flat, {{0, 1.0 / 3}, {1, 1.0 / 3}, {2, 1.0 / 3}});
  expect_distribution({.top_p = 0.51}, flat, {{0, 0.25}, {1, 0.25}, {2, 0.25}, {3, 0.25}});
  expect_distribution({.top_p = 1.0, .min_p = 1.0}, Logits{1.0F, 3.0F, 3.0F}, {{1, 0.5}, {2, 0.5}});
  expect_distribution({.temperature = 0.0}, Logits{1.0F, 3.0F, 3.0F}, {{1, 1.0}});
  // Also far apart, in a vocabulary that is not sorted as a whole.
  Logits many(5000, -1.0F);
  many[17] = many[4000] = many[4999] = 1.0F;
  expect_distribution({.top_k = 2, .top_p = 1.0}, many, {{17, 0.5}, {4000, 0.5}});
  expect_distribution({.top_k = 4, .top_p = 1.0}, many, sorted_filtered_softmax({.top_k = 4, .top_p = 1.0}, many, {}));
  EXPECT_EQ(sorted_filtered_softmax({.top_k = 4, .top_p = 1.0}, many, {})[3].token, 0);
}

TEST(Sampler, RepetitionPenaltyDividesPositiveLogitsAndMultipliesNegativeOnesOnce) {
  const Logits logits{2.0F, -1.0F, 0.0F, 3.0F};
  const double e = std::exp(1.0);
  const double sum = e + 1.0 / e / e + 1.0 + e * e * e;  // 2 / 2, -1 * 2, 0, and 3 as it was
  expect_distribution({.top_p = 1.0, .repetition_penalty = 2.0}, logits,
                      {{3, e * e * e / sum}, {0, e / sum}, {2, 1.0 / sum}, {1, 1.0 / e / e / sum}}, {0, 1, 1, 2, 0, 1});
  // Before all filters, and for greedy decoding too.
  expect_distribution({.temperature = 0.0, .repetition_penalty = 2.0}, logits, {{0, 1.0}}, {3});
  expect_distribution({.top_k = 1, .top_p = 1.0, .repetition_penalty = 2.0}, logits, {{0, 1.0}}, {3});
  // A call leaves nothing behind for the next.
  Sampler sampler({.temperature = 0.0, .repetition_penalty = 2.0});
  EXPECT_EQ(sampler.distribution(logits, Ids{3})[0].token, 0);
  EXPECT_EQ(sampler.distribution(logits, Ids{})[0].token, 3);
}

TEST(Sampler, EveryCombinationOfFiltersEqualsPlainLoops) {
  int cases = 0;
  for (const std::size_t vocabulary : {1UL, 2UL, 17UL, 300UL, 3000UL}) {
    for (const double spread : {0.01, 1.0, 8.0}) {
      Logits logits = random_logits(vocabulary, vocabulary, spread);
      if (vocabulary > 10) logits[3] = logits[9] = -kInfinity;
      const Ids seen{0, static_cast<std::int32_t>(vocabulary) - 1, 0};
      for (const double temperature : {0.0, 0.02, 0.7, 1.0, 3.0}) {
        for (const std::int64_t top_k : {0, 1, 5, 200}) {
          for (const double top_p : {1e-9, 0.3, 0.8, 0.9999, 1.0}) {
            for (const double min_p : {0.0, 0.05, 0.9}) {
              for (const double penalty : {1.0, 1.3, 0.5}) {
                const SamplingOptions options{.temperature = temperature,
                                              .top_k = top_k,
                                              .top_p = top_p,
                                              .min_p = min_p,
                                              .repetition_penalty = penalty};
                expect_distribution(options, logits, sorted_filtered_softmax(options, logits, seen), seen);
                if (HasFatalFailure()) return;
                ++cases;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 5 * 3 * 5 * 4 * 5 * 3 * 3);
}

TEST(Sampler, TemperatureNearZeroIsGreedyAndDoesNotOverflow) {
  const Logits logits{-3e38F, 1.0F, 1.01F, -7.0F, -kInfinity};
  const Logits large{3e38F, -3e38F, 2.9e38F};
  for (const double temperature : {1e-6, 1e-30, 5e-324}) {
    expect_distribution({.temperature = temperature, .top_p = 1.0}, logits, {{2, 1.0}});
    expect_distribution({.temperature = temperature, .top_p = 1.0}, large, {{0, 1.0}});
  }
  // The limit of softmax: what is equal stays equal. Only 0 itself decides by id.
  expect_distribution({.temperature = 1e-30, .top_p = 1.0}, Logits{1.0F, 2.0F, 2.0F}, {{1, 0.5}, {2, 0.5}});
  expect_distribution({.temperature = 0.0, .top_p = 1.0}, Logits{1.0F, 2.0F, 2.0F}, {{1, 1.0}});
}

TEST(Sampler, LogProbabilityIsTheModelsOwnWhateverTheFilters) {
  const Logits logits = logits_of({0.1, 0.6, 0.3});
  const std::vector<double> probabilities{0.1, 0.6, 0.3};
  for (const double temperature : {0.0, 0.3, 5.0}) {
    Sampler sampler({.temperature = temperature, .top_k = 2, .repetition_penalty = 3.0});
    for (std::uint64_t position = 0; position < 50; ++position) {
      const TokenDraw drawn = sampler.draw(logits, Ids{1, 2}, {.sample = 1, .position = position});
      EXPECT_NEAR(drawn.log_probability, std::log(probabilities.at(static_cast<std::size_t>(drawn.token))), 1e-6);
    }
  }
  // The same bits whether the filters have weighed the tokens alike or not.
  const Logits many = random_logits(300, 5, 2.0);
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.temperature = 0.7}, SamplingOptions{.top_k = 12},
        SamplingOptions{.top_p = 1.0, .repetition_penalty = 1.5}, SamplingOptions{.temperature = 0.0}}) {
    Sampler sampler(options);
    for (std::uint64_t position = 0; position < 50; ++position) {
      const TokenDraw drawn = sampler.draw(many, Ids{1, 2}, {.sample = 1, .position = position});
      EXPECT_EQ(drawn.log_probability, log_probability(many, drawn.token));
    }
  }
  // Large logits cost no digits: two of three are equal, far from zero.
  Sampler greedy({.temperature = 0.0});
  EXPECT_DOUBLE_EQ(greedy.draw(Logits{3e38F, 3e38F, 0.0F}, {}, {}).log_probability, -std::log(2.0));
}

TEST(Sampler, MostLikelyTokensComeInOrderWithLogProbabilities) {
  const Logits logits = logits_of({0.1, 0.3, 0.2, 0.3, 0.1});
  const auto three = most_likely(logits, 3);
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three[0].token, 1);
  EXPECT_EQ(three[1].token, 3);
  EXPECT_EQ(three[2].token, 2);
  EXPECT_NEAR(three[1].log_probability, std::log(0.3), 1e-6);
  EXPECT_NEAR(three[2].log_probability, std::log(0.2), 1e-6);
  for (const TokenDraw& draw : three) EXPECT_EQ(log_probability(logits, draw.token), draw.log_probability);
  EXPECT_THROW(log_probability(logits, 5), InputError);
  EXPECT_THROW(log_probability(logits, -1), InputError);
  EXPECT_EQ(most_likely(logits, 0).size(), 0U);
  EXPECT_EQ(most_likely(logits, 99).size(), 5U);
  EXPECT_EQ(most_likely(Logits{1.0F, -kInfinity, 2.0F}, 3).size(), 2U);
  EXPECT_THROW(most_likely(logits, -1), InputError);
  EXPECT_THROW(most_likely(Logits{kNan}, 1), InputError);
}

TEST(Sampler, LogitsThatCannotBeDrawnFromAreRefusedByPlace) {
  Sampler sampler({});
  const auto message = [&](const Logits& logits) {
    EXPECT_THROW(sampler.distribution(logits, {}), InputError);
    return message_of<InputError>([&] { sampler.draw(logits, {}, {}); });
  };
  EXPECT_NE(message({0.0F, 1.0F, kNan}).find("the logit of token 2 of 3 is nan"), std::string::npos);
  EXPECT_NE(message({0.0F, kInfinity, kNan}).find("the logit of token 1 of 3 is inf"), std::string::npos);
  EXPECT_NE(message({-kInfinity, -kInfinity}).find("all tokens, 0 to 1, are -inf"), std::string::npos);
  EXPECT_NE(message({}).find("no logits"), std::string::npos);
  Sampler penalised({.repetition_penalty = 1.1});
  for (const std::int32_t id : {-1, 2}) {
    EXPECT_NE(message_of<InputError>([&] {
                penalised.draw(Logits{0.0F, 0.0F}, Ids{id}, {});
              }).find("token " + std::to_string(id) + " is among those seen, but there are 2 logits"),
              std::string::npos);
  }
}

TEST(SamplingOptionsTest, EachOptionIsRefusedByNameValueAndRange) {
  const auto message = [](const SamplingOptions& options) {
    EXPECT_THROW(Sampler{options}, ConfigError);
    return message_of<ConfigError>([&] { validate(options); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_NE(message({.temperature = -0.5}).find("temperature is -0.5, but must be a finite number"), std::string::npos);
  EXPECT_NE(message({.top_k = -3}).find("top_k is -3, but must be 0 or more"), std::string::npos);
  EXPECT_NE(message({.top_p = 1.5}).find("top_p is 1.5, but must be above 0 and at most 1"), std::string::npos);
  EXPECT_NE(message({.min_p = -0.1}).find("min_p is -0.1, but must be between 0 and 1"), std::string::npos);
  EXPECT_NE(message({.repetition_penalty = 0.0}).find("repetition_penalty is 0, but"), std::string::npos);
  for (const double value : {nan, infinity}) {
    message({.temperature = value});
    message({.top_p = value});
    message({.min_p = value});
    message({.repetition_penalty = value});
  }
  message({.top_p = 0.0});
  message({.min_p = 1.01});
  message({.repetition_penalty = 100.5});
  EXPECT_NO_THROW(validate({}));
  EXPECT_NO_THROW(validate({.temperature = 0, .top_p = 1.0, .min_p = 1.0, .repetition_penalty = 100.0}));
}

}  // namespace
}  // namespace routing::sampler_test
