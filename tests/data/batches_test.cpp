#include "routing/data/batches.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace routing::batches_test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Ids = std::vector<std::int64_t>;

// 0, 1, 2 …: a byte says where it stands, up to 256 of them.
Bytes counting(std::int64_t size) {
  Bytes bytes;
  for (std::int64_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  return bytes;
}

struct Batch {
  Ids tokens;
  std::vector<std::int64_t> sample_ids;
  friend bool operator==(const Batch&, const Batch&) = default;
};

Batch batch_of(const TokenBatches& batches, const BatchOptions& options, std::int64_t index) {
  Batch batch;
  batch.tokens.resize(static_cast<std::size_t>(options.batch_size * options.sequence_length));
  batch.sample_ids.resize(static_cast<std::size_t>(options.batch_size));
  batches.fill(index, batch.tokens, batch.sample_ids);
  return batch;
}

TEST(Crops, EveryWindowIsSuccessiveBytesFromItsOwnStream) {
  const Bytes split = counting(100);
  const BatchOptions options = {.batch_size = 3, .sequence_length = 7, .seed = 5};
  const TokenBatches batches(split, options);
  for (const std::uint64_t index : {0U, 1U, 77U}) {
    const Batch batch = batch_of(batches, options, static_cast<std::int64_t>(index));
    for (std::uint64_t row = 0; row < 3; ++row) {
      const std::uint32_t start = RandomStream(5, "crops", {index, row}).below(94);
      for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(batch.tokens[row * 7 + i], start + i);
      EXPECT_EQ(batch.sample_ids[row], static_cast<std::int64_t>(index * 3 + row));
    }
  }
}

TEST(Crops, SameBatchComesAgainInAnyOrderAndFromAnotherObject) {
  const Bytes split = counting(200);
  const BatchOptions options = {.batch_size = 2, .sequence_length = 9, .seed = 1};
  const TokenBatches first(split, options);
  std::vector<Batch> forwards;
  for (std::int64_t index = 0; index < 20; ++index) forwards.push_back(batch_of(first, options, index));
  const TokenBatches resumed(split, options);
  for (std::int64_t index = 19; index >= 0; --index) {
    EXPECT_EQ(batch_of(resumed, options, index), forwards[static_cast<std::size_t>(index)]);
  }
}

TEST(Crops, OtherSeedsRowsAndBatchesGiveOtherWindows) {
  const Bytes split = counting(250);
  BatchOptions options = {.batch_size = 8, .sequence_length = 4, .seed = 1};
  const Batch batch = batch_of(TokenBatches(split, options), options, 0);
  EXPECT_NE(batch.tokens, batch_of(TokenBatches(split, options), options, 1).tokens);
  std::map<std::int64_t, int> starts;
  for (std::size_t row = 0; row < 8; ++row) ++starts[batch.tokens[row * 4]];
  EXPECT_GE(starts.size(), 5U);
  options.seed = 2;
  EXPECT_NE(batch.tokens, batch_of(TokenBatches(split, options), options, 0).tokens);
}

TEST(Crops, EveryStartFromTheFirstToTheLastComesEquallyOften) {
  const Bytes split = counting(12);
  const BatchOptions options = {.batch_size = 10, .sequence_length = 5, .seed = 3};
  const TokenBatches batches(split, options);
  std::vector<int> starts(12, 0);
  for (std::int64_t index = 0; index < 800; ++index) {
    const Batch batch = batch_of(batches, options, index);
    for (std::size_t row = 0; row < 10; ++row) ++starts[static_cast<std::size_t>(batch.tokens[row * 5])];
  }
  // 8000 draws over the starts 0 … 7: 1000 each, with a standard deviation of 30.
  for (std::size_t start = 0; start < 8; ++start) EXPECT_NEAR(starts[start], 1000, 150) << start;
  for (std::size_t start = 8; start < 12; ++start) EXPECT_EQ(starts[start], 0) << start;
}

TEST(Crops, SplitOfExactlyOneWindowIsThatWindow) {
  const Bytes split = counting(6);
  const BatchOptions options = {.batch_size = 2, .sequence_length = 6};
  EXPECT_EQ(batch_of(TokenBatches(split, options), options, 9).tokens, (Ids{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
}

TEST(Contiguous, RowsGoOnWhereTheyEndedAndWrapInTheirPart) {
  // Eleven bytes, two rows: parts 0-5 and 6-10.
  const Bytes split = counting(11);
  const BatchOptions options = {.batch_size = 2, .sequence_length = 4, .contiguous = true};
  const TokenBatches batches(split, options);
  EXPECT_EQ(batch_of(batches, options, 0).tokens, (Ids{0, 1, 2, 3, /**/ 6, 7, 8, 9}));
  EXPECT_EQ(batch_of(batches, options, 1).tokens, (Ids{4, 5, 0, 1, /**/ 10, 6, 7, 8}));
  EXPECT_EQ(batch_of(batches, options, 2).tokens, (Ids{2, 3, 4, 5, /**/ 9, 10, 6, 7}));
  EXPECT_EQ(batch_of(batches, options, 3).tokens, (Ids{0, 1, 2, 3, /**/ 8, 9, 10, 6}));
  EXPECT_EQ(batch_of(batches, options, 3).sample_ids, (std::vector<std::int64_t>{6, 7}));
}

TEST(Contiguous, OneRoundOfEveryRowHoldsEveryByteOfTheSplitOnce) {
  for (std::int64_t bytes = 4; bytes <= 60; bytes += 7) {
    for (std::int64_t rows = 1; rows <= 4; ++rows) {
      for (std::int64_t n = 1; n <= bytes / rows; ++n) {
        const Bytes split = counting(bytes);
        const BatchOptions options = {.batch_size = rows, .sequence_length = n, .contiguous = true};
        const TokenBatches batches(split, options);
        std::vector<Ids> streams(static_cast<std::size_t>(rows));
        for (std::int64_t index = 0; index <= 2 * bytes / rows / n + 2; ++index) {
          const Batch batch = batch_of(batches, options, index);
          for (std::int64_t i = 0; i < rows * n; ++i) {
            streams[static_cast<std::size_t>(i / n)].push_back(batch.tokens[static_cast<std::size_t>(i)]);
          }
        }
        // Cutting each stream where its part ends gives the split back, in the first round and in the second.
        for (std::size_t round = 0; round < 2; ++round) {
          Ids joined;
          for (std::int64_t row = 0; row < rows; ++row) {
            const Ids& stream = streams[static_cast<std::size_t>(row)];
            const auto part = static_cast<std::ptrdiff_t>(bytes / rows + (row < bytes % rows ? 1 : 0));
            const auto begin = stream.begin() + static_cast<std::ptrdiff_t>(round) * part;
            joined.insert(joined.end(), begin, begin + part);
          }
          EXPECT_EQ(joined, Ids(split.begin(), split.end()))
              << bytes << " bytes, " << rows << " rows, n " << n << ", round " << round;
        }
      }
    }
  }
}

TEST(Contiguous, LateBatchesOfALongRunAreStillRight) {
  const Bytes split = counting(7);
  const BatchOptions options = {.batch_size = 1, .sequence_length = 3, .contiguous = true};
  // 2^61 mod 7 = 2 (as 2^3 mod 7 = 1 and 61 mod 3 = 1), times 3 is place 6.
  EXPECT_EQ(batch_of(TokenBatches(split, options), options, std::int64_t{1} << 61U).tokens, (Ids{6, 0, 1}));
}

TEST(Batches, ShortSplitsAreRefusedWithBothNumbersAndTheKeyToChange) {
  const Bytes split = counting(10);
  std::string message = message_of<ConfigError>([&] { TokenBatches(split, {.sequence_length = 11}); });
  EXPECT_NE(message.find("has 10 tokens, but one window needs 11; lower train.sequence_length"), std::string::npos)
      << message;
  message = message_of<ConfigError>(
      [&] { TokenBatches(split, {.batch_size = 3, .sequence_length = 4, .contiguous = true}); });
  EXPECT_NE(message.find("has 10 tokens, 3 for each of 3 contiguous rows, but one window needs 4"), std::string::npos)
      << message;
  EXPECT_NO_THROW(TokenBatches(split, {.batch_size = 3, .sequence_length = 4}));
  EXPECT_NO_THROW(TokenBatches(split, {.batch_size = 3, .sequence_length = 3, .contiguous = true}));
  EXPECT_THROW(TokenBatches(TokenView(), {}), ConfigError);
}

TEST(Batches, ImpossibleOptionsAndSpansAreRefused) {
  const Bytes split = counting(10);
  EXPECT_THROW(TokenBatches(split, {.batch_size = 0, .sequence_length = 4}), ConfigError);
  EXPECT_THROW(TokenBatches(split, {.batch_size = 1, .sequence_length = 0}), ConfigError);
  const TokenBatches batches(split, {.batch_size = 2, .sequence_length = 4});
  Ids tokens(8);
  Ids short_tokens(7);
  std::vector<std::int64_t> ids(2);
  std::vector<std::int64_t> many_ids(3);
  EXPECT_NO_THROW(batches.fill(0, tokens, ids));
  EXPECT_THROW(batches.fill(-1, tokens, ids), InputError);
  EXPECT_THROW(batches.fill(0, short_tokens, ids), InputError);
  EXPECT_THROW(batches.fill(0, tokens, many_ids), InputError);
}

TEST(Batches, MayBeShorterThanTheWindowsAndBeginTheSame) {
  const Bytes split = counting(100);
  for (const bool contiguous : {false, true}) {
    const BatchOptions options = {.batch_size = 2, .sequence_length = 8, .seed = 4, .contiguous = contiguous};
    const TokenBatches batches(split, options);
    const Batch whole = batch_of(batches, options, 3);
    Ids tokens(10);
    Ids ids(2);
    batches.fill(3, tokens, ids);
    EXPECT_EQ(tokens, (Ids{whole.tokens[0], whole.tokens[1], whole.tokens[2], whole.tokens[3], whole.tokens[4],
                           whole.tokens[8], whole.tokens[9], whole.tokens[10], whole.tokens[11], whole.tokens[12]}));
  }
}

TEST(Batches, WideIdsComeThrough) {
  const std::vector<std::int32_t> split{70000, 1, 267734, 3};
  const BatchOptions options = {.batch_size = 1, .sequence_length = 4};
  EXPECT_EQ(batch_of(TokenBatches(std::span(split), options), options, 0).tokens, (Ids{70000, 1, 267734, 3}));
}

// Ten records of three tokens, all of them the number of the record.
Bytes records() {
  Bytes bytes;
  for (std::uint8_t i = 0; i < 10; ++i) bytes.insert(bytes.end(), 3, i);
  return bytes;
}

TEST(Records, EachComesOnceARoundInAnotherOrderEveryRound) {
  const Bytes split = records();
  const BatchOptions options = {.batch_size = 5, .sequence_length = 3, .seed = 8, .record_length = 3};
  const TokenBatches batches(split, options);
  std::vector<Ids> rounds;
  for (std::int64_t round = 0; round < 3; ++round) {
    Ids order;
    for (std::int64_t half = 0; half < 2; ++half) {
      const Batch batch = batch_of(batches, options, 2 * round + half);
      for (std::size_t row = 0; row < 5; ++row) {
        order.push_back(batch.tokens[3 * row]);
        EXPECT_EQ(batch.tokens[3 * row + 2], order.back()) << "a record is not cut";
      }
    }
    Ids sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, (Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    rounds.push_back(order);
  }
  EXPECT_NE(rounds[0], rounds[1]);
  EXPECT_NE(rounds[1], rounds[2]);
}

TEST(Records, InOrderIfContiguousAndOnlyTheirBeginningIfTheWindowIsShorter) {
  const Bytes split = records();
  const BatchOptions options = {.batch_size = 4, .sequence_length = 2, .contiguous = true, .record_length = 3};
  EXPECT_EQ(batch_of(TokenBatches(split, options), options, 2).tokens, (Ids{8, 8, 9, 9, 0, 0, 1, 1}));
}

TEST(Records, LongerWindowsNoRecordsAndBrokenRecordsAreRefused) {
  const Bytes split = records();
  EXPECT_EQ(message_of<ConfigError>([&] { TokenBatches(split, {.sequence_length = 4, .record_length = 3}); }),
            "train.sequence_length is 4, but an image has 3 values; lower train.sequence_length");
  EXPECT_THROW(TokenBatches(TokenView(), {.record_length = 3}), ConfigError);
  EXPECT_THROW(TokenBatches(split, {.record_length = 7}), InputError);
}

TEST(RowsOfRank, CoverAllRowsOnceInOrderAndDifferByOneAtMost) {
  for (const std::int64_t rows : {0, 1, 2, 3, 5, 8, 64, 1001}) {
    for (const int ranks : {1, 2, 3, 5, 7}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const RowRange range = rows_of_rank(rows, rank, ranks);
        EXPECT_EQ(range.first, next) << rows << " rows, rank " << rank << " of " << ranks;
        EXPECT_EQ(range.count, rows / ranks + (rank < rows % ranks ? 1 : 0));
        next += range.count;
      }
      EXPECT_EQ(next, rows);
    }
  }
  EXPECT_THROW(rows_of_rank(4, 2, 2), InputError);
  EXPECT_THROW(rows_of_rank(4, -1, 2), InputError);
  EXPECT_THROW(rows_of_rank(4, 0, 0), InputError);
}

TEST(Batches, RowsOfRanksPutTogetherAreTheBatch) {
  const Bytes text = counting(200);
  const Bytes images = records();
  for (const BatchOptions& options :
       {BatchOptions{.batch_size = 5, .sequence_length = 9, .seed = 3},
        BatchOptions{.batch_size = 5, .sequence_length = 9, .contiguous = true},
        BatchOptions{.batch_size = 5, .sequence_length = 3, .seed = 3, .record_length = 3},
        BatchOptions{.batch_size = 5, .sequence_length = 2, .contiguous = true, .record_length = 3}}) {
    const TokenBatches batches(options.record_length > 0 ? images : text, options);
    for (const std::int64_t index : {0, 1, 30}) {
      const Batch whole = batch_of(batches, options, index);
      for (const int ranks : {1, 2, 3, 5}) {
        Batch parts;
        for (int rank = 0; rank < ranks; ++rank) {
          const RowRange rows = rows_of_rank(5, rank, ranks);
          Ids tokens(static_cast<std::size_t>(rows.count * options.sequence_length));
          Ids ids(static_cast<std::size_t>(rows.count));
          batches.fill_rows(index, rows, tokens, ids);
          parts.tokens.insert(parts.tokens.end(), tokens.begin(), tokens.end());
          parts.sample_ids.insert(parts.sample_ids.end(), ids.begin(), ids.end());
        }
        EXPECT_EQ(parts, whole) << "batch " << index << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(Batches, RowsThatABatchDoesNotHaveAreRefused) {
  const Bytes split = counting(100);
  const TokenBatches batches(split, {.batch_size = 4, .sequence_length = 3});
  Ids tokens(6);
  Ids ids(2);
  EXPECT_NO_THROW(batches.fill_rows(0, {.first = 2, .count = 2}, tokens, ids));
  EXPECT_EQ(message_of<InputError>([&] { batches.fill_rows(0, {.first = 3, .count = 2}, tokens, ids); }),
            "rows 3 to 4 of a batch asked for, but it has 4");
  EXPECT_THROW(batches.fill_rows(0, {.first = -1, .count = 2}, tokens, ids), InputError);
  EXPECT_THROW(batches.fill_rows(0, {.first = 0, .count = 0}, {}, {}), InputError);
  EXPECT_THROW(batches.fill_rows(0, {.first = 0, .count = 1}, tokens, ids), InputError) << "room for two";
  EXPECT_THROW(batches.fill_rows(-1, {.first = 0, .count = 2}, tokens, ids), InputError);
}

TEST(ShuffledPlace, IsAPermutationOfAnyCountAndDiffersByKey) {
  for (const std::uint64_t count : {1U, 2U, 3U, 4U, 5U, 16U, 17U, 1000U}) {
    std::vector<std::uint64_t> places;
    for (std::uint64_t place = 0; place < count; ++place) places.push_back(shuffled_place(place, count, 77));
    std::sort(places.begin(), places.end());
    for (std::uint64_t place = 0; place < count; ++place) EXPECT_EQ(places[place], place) << count;
  }
  EXPECT_THROW(shuffled_place(5, 5, 1), InputError);
}

TEST(ShuffledPlace, PutsEveryRecordAtEveryPlaceEquallyOften) {
  std::vector<std::vector<int>> counts(5, std::vector<int>(5, 0));
  for (std::uint64_t key = 0; key < 5000; ++key) {
    for (std::uint64_t place = 0; place < 5; ++place)
      ++counts[place][shuffled_place(place, 5, stream_key(1, "t", {key}))];
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, 1000, 150);
  }
}

}  // namespace
}  // namespace routing::batches_test
