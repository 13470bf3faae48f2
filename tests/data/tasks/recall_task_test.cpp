#include "routing/data/tasks/recall_task.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace routing::recall_task_test {
namespace {

using Ids = std::vector<std::int64_t>;

RecallTask small_task(std::uint64_t seed = 1, bool key_first = false) {
  return RecallTask({.keys = 24, .values = 5, .filler = 4, .seed = seed, .key_first = key_first});
}

// What a reader finds who knows only the grammar.
struct Reading {
  struct Fact {
    std::int64_t value = 0;
    std::int64_t position = 0;  // of the key
  };
  std::map<std::int64_t, Fact> facts;
  std::set<std::int64_t> asked;
  std::vector<RecallAnswer> answers;
  double least_nats = 0.0;
};

// Reads a sequence by the grammar of the header and prices every token by its probability.
Reading read(const RecallTask& task, const Ids& ids) {
  const auto n = static_cast<std::int64_t>(ids.size());
  const RecallOptions& options = task.options();
  const double rate =
      std::min(1.0, kKeysUsed * static_cast<double>(options.keys) / (kFactRate * static_cast<double>(n)));
  Reading reading;
  std::int64_t word = ids[0];
  EXPECT_LT(word, options.filler);
  reading.least_nats = std::log(static_cast<double>(options.filler));
  const auto at = [&](std::int64_t i) { return ids[static_cast<std::size_t>(i)]; };
  for (std::int64_t i = 1; i < n;) {
    const double free = static_cast<double>(options.keys) - static_cast<double>(reading.facts.size());
    const double open = static_cast<double>(reading.facts.size()) - static_cast<double>(reading.asked.size());
    const double fact = free > 0 ? kFactRate * rate : 0.0;
    const double ask = open > 0 ? kAskRate * rate : 0.0;
    if (at(i) == task.fact_mark()) {
      const std::int64_t key = options.key_first ? i + 1 : i + 2;
      const std::int64_t value = options.key_first ? i + 2 : i + 1;
      reading.least_nats -= std::log(fact);
      if (value < n) reading.least_nats += std::log(static_cast<double>(options.values));
      if (key < n) {
        reading.least_nats += std::log(free);
        EXPECT_GE(at(key), task.first_key());
        EXPECT_EQ(reading.facts.count(at(key)), 0U) << "a key is stated once";
        reading.facts[at(key)] = {value < n ? at(value) : -1, key};
      }
      i += 3;
    } else if (at(i) == task.ask_mark()) {
      reading.least_nats -= std::log(ask);
      if (i + 1 < n) {
        EXPECT_EQ(reading.facts.count(at(i + 1)), 1U) << "only stated facts are asked for";
        EXPECT_TRUE(reading.asked.insert(at(i + 1)).second) << "a fact is asked for once";
        reading.least_nats += std::log(open);
      }
      if (i + 2 < n) {
        EXPECT_EQ(at(i + 2), reading.facts[at(i + 1)].value);
        reading.answers.push_back({.position = i + 2, .distance = i + 1 - reading.facts[at(i + 1)].position});
      }
      i += 3;
    } else {
      word = (word + 1) % options.filler;
      EXPECT_EQ(at(i), word) << "filler goes on where it was";
      reading.least_nats -= std::log(1.0 - fact - ask);
      i += 1;
    }
  }
  return reading;
}

class RecallSequences : public testing::TestWithParam<std::tuple<std::int64_t, bool>> {};

TEST_P(RecallSequences, ASequenceKeepsTheGrammarAndItsOwnAccounts) {
  const auto [length, key_first] = GetParam();
  const RecallTask task = small_task(1, key_first);
  for (std::int64_t number = 0; number < 40; ++number) {
    const RecallSequence sequence = task.sequence("train", number, length);
    ASSERT_EQ(static_cast<std::int64_t>(sequence.ids.size()), length);
    const Reading reading = read(task, sequence.ids);
    EXPECT_NEAR(sequence.least_nats, reading.least_nats, 1e-9) << number;
    ASSERT_EQ(sequence.answers.size(), reading.answers.size()) << number;
    for (std::size_t i = 0; i < reading.answers.size(); ++i) {
      EXPECT_EQ(sequence.answers[i].position, reading.answers[i].position);
      EXPECT_EQ(sequence.answers[i].distance, reading.answers[i].distance);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(AnyLength, RecallSequences,
                         testing::Combine(testing::Values(1, 2, 3, 7, 64, 200, 1000), testing::Bool()));

TEST(RecallTask, WithTheKeyFirstOnlyFactsChange) {
  const RecallTask task = small_task();
  const RecallTask key_first = small_task(1, true);
  const RecallSequence before = task.sequence("valid", 2, 300);
  const RecallSequence after = key_first.sequence("valid", 2, 300);
  Ids swapped = before.ids;
  for (std::size_t i = 0; i + 2 < swapped.size(); ++i) {
    if (swapped[i] == task.fact_mark()) std::swap(swapped[i + 1], swapped[i + 2]);
  }
  EXPECT_EQ(after.ids, swapped);
  EXPECT_DOUBLE_EQ(after.least_nats, before.least_nats);
  ASSERT_EQ(after.answers.size(), before.answers.size());
  ASSERT_GT(after.answers.size(), 5U);
  for (std::size_t i = 0; i < after.answers.size(); ++i) {
    const RecallAnswer& answer = after.answers[i];
    EXPECT_EQ(answer.position, before.answers[i].position);
    EXPECT_EQ(answer.distance, before.answers[i].distance + 1) << "the key of the fact stands one place earlier";
    // What follows the key in the fact is what answers.
    const auto asked = static_cast<std::size_t>(answer.position - 1);
    const auto stated = asked - static_cast<std::size_t>(answer.distance);
    EXPECT_EQ(after.ids[stated], after.ids[asked]);
    EXPECT_EQ(after.ids[stated + 1], after.ids[asked + 1]);
  }
}

TEST(RecallTask, LongSequencesHaveMoreFillerNotMoreFacts) {
  const RecallTask task({.keys = 192, .values = 32, .filler = 16, .seed = 3});
  double facts_short = 0.0;
  double facts_long = 0.0;
  for (std::int64_t number = 0; number < 20; ++number) {
    const auto marks = [&](std::int64_t length) {
      const Ids ids = task.sequence("train", number, length).ids;
      return static_cast<double>(std::count(ids.begin(), ids.end(), task.fact_mark())) / 20.0;
    };
    facts_short += marks(2048);
    facts_long += marks(16384);
  }
  // 0.7 * 192 = 134 draws in as many steps as tokens; facts and questions of three tokens make the steps fewer.
  EXPECT_GT(facts_short, 90.0);
  EXPECT_LT(facts_short, 134.0);
  EXPECT_NEAR(facts_long, 130.0, 12.0);
}

TEST(RecallTask, DistancesReachThroughTheWholeSequence) {
  const RecallTask task({.keys = 192, .values = 32, .filler = 16, .seed = 3});
  std::int64_t near = 0;
  std::int64_t far = 0;
  std::int64_t all = 0;
  for (std::int64_t number = 0; number < 20; ++number) {
    for (const RecallAnswer& answer : task.sequence("test", number, 4096).answers) {
      near += answer.distance < 128 ? 1 : 0;
      far += answer.distance >= 1024 ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(all, 20 * 60);
  EXPECT_GT(near, all / 50);
  EXPECT_GT(far, all / 16);  // about 8 of 100: most questions come while there is still little to ask for
}

TEST(RecallTask, PartsNumbersAndSeedsDiffer) {
  const RecallTask task = small_task();
  const Ids first = task.sequence("train", 0, 100).ids;
  EXPECT_EQ(first, small_task().sequence("train", 0, 100).ids);
  EXPECT_NE(first, task.sequence("train", 1, 100).ids);
  EXPECT_NE(first, task.sequence("valid", 0, 100).ids);
  EXPECT_NE(first, small_task(2).sequence("train", 0, 100).ids);
  EXPECT_EQ(task.sequence("test", 3, 100).ids, small_task(2).sequence("test", 3, 100).ids) << "held out for all seeds";
}

TEST(RecallTask, IdsLieInTheirRanges) {
  const RecallTask task = small_task();
  EXPECT_EQ(task.fact_mark(), 4);
  EXPECT_EQ(task.ask_mark(), 5);
  EXPECT_EQ(task.first_value(), 6);
  EXPECT_EQ(task.first_key(), 11);
  EXPECT_EQ(task.vocab_size(), 35);
}

TEST(RecallTask, WrongQuestionsAreRefused) {
  EXPECT_THROW(RecallTask({.keys = 1}), ConfigError);
  EXPECT_THROW(RecallTask({.values = 1}), ConfigError);
  EXPECT_THROW(RecallTask({.filler = 0}), ConfigError);
  EXPECT_THROW(small_task().sequence("dev", 0, 10), InputError);
  EXPECT_THROW(small_task().sequence("train", -1, 10), InputError);
  EXPECT_THROW(small_task().sequence("train", 0, 0), InputError);
  ExperimentConfig config;
  EXPECT_THROW(recall_options(config), ConfigError);
  config.data.format = DataFormat::recall;
  config.data.recall_keys = 77;
  config.train.seed = 9;
  EXPECT_FALSE(recall_options(config).key_first);
  config.data.key_first = true;
  EXPECT_TRUE(recall_options(config).key_first);
  EXPECT_EQ(recall_options(config).keys, 77);
  EXPECT_EQ(recall_options(config).seed, 9U);
}

TEST(RecallLength, GrowsFromShortToLongInTheMiddleOfTheTraining) {
  const RecallLengths lengths{.shortest = 64, .longest = 4096, .batches = 10000, .seed = 1};
  const auto range = [&](std::int64_t from, std::int64_t to) {
    std::pair<std::int64_t, std::int64_t> result{1 << 20, 0};
    for (std::int64_t batch = from; batch < to; ++batch) {
      const std::int64_t length = recall_length(lengths, batch);
      result = {std::min(result.first, length), std::max(result.second, length)};
    }
    return result;
  };
  EXPECT_EQ(range(0, 4000), (std::pair<std::int64_t, std::int64_t>{64, 128}));
  // Half of the way, half of the octaves: 128 sqrt(32) = 724.
  EXPECT_LE(range(4000, 6000).second, 725);
  EXPECT_GT(range(5990, 6000).second, 400);
  const auto [least, most] = range(8000, 10000);
  EXPECT_GE(least, 1024);
  EXPECT_LT(least, 1040);
  EXPECT_GT(most, 4060);
  EXPECT_LE(most, 4096);
}

TEST(RecallLength, IsDrawnByOctaves) {
  std::map<std::int64_t, int> octaves;
  for (std::int64_t batch = 8000; batch < 10000; ++batch) {
    const std::int64_t length = recall_length({.shortest = 64, .longest = 4095, .batches = 10000, .seed = 1}, batch);
    ++octaves[static_cast<std::int64_t>(std::log2(static_cast<double>(length)))];
  }
  // 2,000 draws of 2: deviations of 22.
  EXPECT_NEAR(octaves[10], 1000, 110);
  EXPECT_NEAR(octaves[11], 1000, 110);
}

TEST(RecallLength, MayBeOneAndRefusesOthers) {
  EXPECT_EQ(recall_length({.shortest = 100, .longest = 100}, 5), 100);
  EXPECT_THROW(recall_length({.shortest = 200, .longest = 100}, 0), ConfigError);
  EXPECT_THROW(recall_length({.shortest = 0, .longest = 100}, 0), ConfigError);
  EXPECT_THROW(recall_length({.batches = 0}, 0), ConfigError);
}

}  // namespace
}  // namespace routing::recall_task_test
