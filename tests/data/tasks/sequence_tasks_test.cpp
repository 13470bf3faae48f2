#include "routing/data/tasks/sequence_tasks.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace routing::sequence_tasks_test {
namespace {

using Ids = std::vector<std::int64_t>;

SequencePairs pairs_of(SequenceTask task, std::int64_t shortest, std::int64_t longest, std::uint64_t seed = 1) {
  return SequencePairs({.task = task, .vocab_size = 12, .shortest = shortest, .longest = longest, .seed = seed});
}

TEST(SequencePairs, TheTargetOfCopyIsTheSourceAndTheEnd) {
  const SequencePair pair = pairs_of(SequenceTask::copy, 9, 9).pair("train", 3);
  ASSERT_EQ(pair.source.size(), 9U);
  Ids expected = pair.source;
  expected.push_back(1);
  EXPECT_EQ(pair.target, expected);
}

TEST(SequencePairs, TheTargetOfReverseIsTheSourceFromItsEnd) {
  const SequencePair pair = pairs_of(SequenceTask::reverse, 9, 9).pair("train", 3);
  EXPECT_EQ(pair.source, pairs_of(SequenceTask::copy, 9, 9).pair("train", 3).source);
  ASSERT_EQ(pair.target.size(), 10U);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(pair.target[i], pair.source[8 - i]);
  EXPECT_EQ(pair.target.back(), 1);
}

TEST(SequencePairs, SymbolsAreAllButStartAndEndAndEquallyLikely) {
  std::map<std::int64_t, int> counts;
  const SequencePairs pairs = pairs_of(SequenceTask::copy, 100, 100);
  for (std::int64_t number = 0; number < 100; ++number) {
    for (const std::int64_t id : pairs.pair("train", number).source) ++counts[id];
  }
  ASSERT_EQ(counts.size(), 10U);
  EXPECT_EQ(counts.begin()->first, 2);
  EXPECT_EQ(counts.rbegin()->first, 11);
  // 10,000 draws of 10: deviations of 30.
  for (const auto& [id, count] : counts) EXPECT_NEAR(count, 1000, 150) << id;
}

TEST(SequencePairs, LengthsFillTheirRange) {
  std::set<std::size_t> lengths;
  const SequencePairs pairs = pairs_of(SequenceTask::copy, 3, 6);
  for (std::int64_t number = 0; number < 100; ++number) lengths.insert(pairs.pair("train", number).source.size());
  EXPECT_EQ(lengths, (std::set<std::size_t>{3, 4, 5, 6}));
  for (std::int64_t number = 0; number < 100; ++number) {
    EXPECT_EQ(pairs.pair("valid", number).source.size(), 6U) << "only training sees shorter ones";
    EXPECT_EQ(pairs.pair("test", number).source.size(), 6U);
  }
}

TEST(SequencePairs, SuccessivePairsMayShareALength) {
  const SequencePairs pairs({.vocab_size = 12, .shortest = 1, .longest = 50, .pairs_of_a_length = 4});
  std::set<std::size_t> lengths;
  for (std::int64_t number = 0; number < 80; ++number) {
    const std::size_t length = pairs.pair("train", number).source.size();
    lengths.insert(length);
    EXPECT_EQ(length, pairs.pair("train", number / 4 * 4).source.size()) << number;
  }
  EXPECT_GT(lengths.size(), 10U);
  EXPECT_NE(pairs.pair("train", 4).source, pairs.pair("train", 5).source);
}

TEST(SequencePairs, SeedPartAndNumberNameAPair) {
  const SequencePairs pairs = pairs_of(SequenceTask::copy, 20, 20);
  const Ids source = pairs.pair("train", 3).source;
  EXPECT_EQ(pairs_of(SequenceTask::copy, 20, 20).pair("train", 3).source, source);
  EXPECT_NE(pairs.pair("train", 4).source, source);
  EXPECT_NE(pairs.pair("valid", 3).source, source);
  EXPECT_NE(pairs.pair("test", 3).source, pairs.pair("valid", 3).source);
  EXPECT_NE(pairs_of(SequenceTask::copy, 20, 20, 2).pair("train", 3).source, source);
}

TEST(SequencePairs, ABatchIsItsPairsFilledUpWithPadding) {
  const SequencePairs pairs = pairs_of(SequenceTask::reverse, 1, 6);
  const PairBatch batch = pairs.batch("train", 10, 5);
  ASSERT_EQ(batch.rows, 5);
  std::size_t longest = 0;
  for (std::int64_t row = 0; row < 5; ++row) longest = std::max(longest, pairs.pair("train", 10 + row).source.size());
  EXPECT_EQ(batch.source.length, static_cast<std::int64_t>(longest));
  EXPECT_EQ(batch.target.length, static_cast<std::int64_t>(longest) + 1);
  const auto check = [](const PaddedSequences& side, std::int64_t row, const Ids& sequence) {
    for (std::int64_t i = 0; i < side.length; ++i) {
      const auto place = static_cast<std::size_t>(row * side.length + i);
      const bool real = i < static_cast<std::int64_t>(sequence.size());
      EXPECT_EQ(side.valid[place], real ? 1 : 0);
      EXPECT_EQ(side.ids[place], real ? sequence[static_cast<std::size_t>(i)] : 0);
    }
  };
  for (std::int64_t row = 0; row < 5; ++row) {
    check(batch.source, row, pairs.pair("train", 10 + row).source);
    check(batch.target, row, pairs.pair("train", 10 + row).target);
  }
}

TEST(SequencePairs, WrongQuestionsAreRefused) {
  const SequencePairs pairs = pairs_of(SequenceTask::copy, 3, 6);
  EXPECT_THROW(pairs.pair("training", 0), InputError);
  EXPECT_THROW(pairs.pair("train", -1), InputError);
  EXPECT_THROW(pairs.batch("train", 0, 0), InputError);
  EXPECT_THROW(pairs_of(SequenceTask::copy, 0, 6), ConfigError);
  EXPECT_THROW(pairs_of(SequenceTask::copy, 7, 6), ConfigError);
  EXPECT_THROW(SequencePairs({.vocab_size = 2}), ConfigError);
  EXPECT_THROW(SequencePairs({.pairs_of_a_length = 0}), ConfigError);
}

TEST(SequenceTaskOptions, ComeFromTheConfiguration) {
  ExperimentConfig config;
  config.data.format = DataFormat::reverse;
  config.model.vocab_size = 50;
  config.train.source_length = 30;
  config.train.sequence_length = 31;
  config.train.seed = 9;
  SequenceTaskOptions options = sequence_task_options(config);
  EXPECT_EQ(options.task, SequenceTask::reverse);
  EXPECT_EQ(options.vocab_size, 50);
  EXPECT_EQ(options.shortest, 30);
  EXPECT_EQ(options.longest, 30);
  EXPECT_EQ(options.pairs_of_a_length, 4) << "a batch";
  EXPECT_EQ(options.seed, 9U);
  config.data.format = DataFormat::copy;
  config.train.shortest_length = 4;
  options = sequence_task_options(config);
  EXPECT_EQ(options.task, SequenceTask::copy);
  EXPECT_EQ(options.shortest, 4);
  config.data.format = DataFormat::bytes;
  EXPECT_THROW(sequence_task_options(config), ConfigError);
}

}  // namespace
}  // namespace routing::sequence_tasks_test
