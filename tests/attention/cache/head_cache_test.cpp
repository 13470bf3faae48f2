// The store of keys and values: which rows are held, by whom, and when they are free again.
#include "routing/attention/cache/head_cache.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace routing::head_cache_test {
namespace {

using Numbers = std::vector<std::int64_t>;

// One head, keys and values of one number: key t is 10 t, value t is -t.
struct Tokens {
  explicit Tokens(std::int64_t count) : count_(count) {
    for (std::int64_t t = 0; t < count; ++t) {
      keys_.push_back(static_cast<float>(10 * t));
      values_.push_back(static_cast<float>(-t));
    }
  }
  // All of them join and read these lists.
  HeadCache::NewTokens in(const Numbers& sequences, const std::vector<std::int32_t>& lists) {
    lists_.counts.assign(static_cast<std::size_t>(count_), static_cast<std::int32_t>(lists.size()));
    lists_.lists.clear();
    for (std::int64_t t = 0; t < count_; ++t) lists_.lists.insert(lists_.lists.end(), lists.begin(), lists.end());
    units_.assign(sequences.size(), lists_);
    sequences_ = sequences;
    return {.sequences = sequences_,
            .tokens = count_,
            .keys = {.data = keys_.data(), .row_stride = 1},
            .values = {.data = values_.data(), .row_stride = 1},
            .query_lists = units_};
  }

 private:
  std::int64_t count_;
  std::vector<float> keys_, values_;
  Numbers sequences_;
  TokenLists lists_;
  std::vector<TokenLists> units_;
};

HeadCache cache_of(const ListRules& rules) {
  return HeadCache({.heads = 1, .key_dim = 1, .value_dim = 1, .rules = rules});
}

TEST(HeadCache, AWindowHoldsItsLastKeysOnly) {
  HeadCache cache = cache_of({.lists = 2, .lookback = 3});
  const Numbers sequence{0};
  cache.add_sequence(0);
  Tokens five(5);
  const KeptPlan plan = cache.append(five.in(sequence, {1}));
  EXPECT_EQ(cache.rows_in_use(), 5);
  EXPECT_EQ(plan.keys_of(0, 0, 1), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(plan.keys_of(0, 0, 4), (std::vector<std::int32_t>{2, 3, 4}));
  cache.release(sequence);
  EXPECT_EQ(cache.rows_in_use(), 3);
  EXPECT_EQ(cache.length(0), 5);
  // Another list of the same head has nothing to do with it.
  Tokens one(1);
  EXPECT_EQ(cache.append(one.in(sequence, {0})).keys_of(0, 0, 0), (std::vector<std::int32_t>{5}));
  cache.release(sequence);
  EXPECT_EQ(cache.rows_in_use(), 4);
  cache.drop_sequence(0);
  EXPECT_EQ(cache.rows_in_use(), 0);
}

TEST(HeadCache, CompactingKeepsRowsRanksAndHolders) {
  HeadCache cache = cache_of({.lists = 2, .lookback = 3});
  const Numbers sequence{0};
  cache.add_sequence(0);
  Tokens many(1000);
  cache.append(many.in(sequence, {0, 1}));
  cache.release(sequence);
  cache.fork_sequence(0, 1);
  cache.compact();
  EXPECT_EQ(cache.bytes(), 3 * 2 * 4);
  EXPECT_EQ(cache.rows_in_use(), 3);
  EXPECT_TRUE(
      at::equal(cache.store().rows(), at::tensor({9970, -997, 9980, -998, 9990, -999}, at::kFloat).view({3, 2})));
  cache.compact();
  EXPECT_EQ(cache.bytes(), 3 * 2 * 4) << "there is nothing to hand back";
  Tokens two(2);
  const KeptPlan plan = cache.append(two.in(sequence, {0}));
  EXPECT_EQ(plan.keys_of(0, 0, 1), (std::vector<std::int32_t>{999, 1000, 1001}));
  EXPECT_EQ(plan.views.views[0].key_to % 64, 1001 % 64) << "ranks are those of the whole list";
  cache.release(sequence);
  EXPECT_EQ(cache.rows_in_use(), 5) << "list 1 and the fork still hold the old ones";
  cache.drop_sequence(0);
  EXPECT_EQ(cache.rows_in_use(), 3);
  cache.drop_sequence(1);
  EXPECT_EQ(cache.rows_in_use(), 0);
  cache.compact();
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(HeadCache, ATokenInSeveralListsIsKeptOnceUntilTheLastLetsGo) {
  HeadCache cache = cache_of({.lists = 2, .lookback = 2});
  const Numbers sequence{0};
  cache.add_sequence(0);
  Tokens one(1);
  const auto add = [&](const std::vector<std::int32_t>& lists) {
    const KeptPlan plan = cache.append(one.in(sequence, lists));
    cache.release(sequence);
    return plan.keys_of(0, 0, 0);
  };
  add({0, 1});
  EXPECT_EQ(cache.rows_in_use(), 1);
  add({0});
  add({0});
  EXPECT_EQ(cache.rows_in_use(), 3) << "token 0 is still in list 1";
  EXPECT_EQ(add({0, 1}), (std::vector<std::int32_t>{2, 3, 0, 3})) << "list after list";
  add({1});
  EXPECT_EQ(cache.rows_in_use(), 3) << "tokens 2 and 3 of list 0, 3 and 4 of list 1";
}

TEST(HeadCache, ForksShareRowsAndLetGoByThemselves) {
  HeadCache cache = cache_of({});
  cache.add_sequence(0);
  Tokens four(4);
  Tokens one(1);
  cache.append(four.in({0}, {0}));
  cache.fork_sequence(0, 7);
  EXPECT_EQ(cache.rows_in_use(), 4);
  cache.append(one.in({0}, {0}));
  cache.append(one.in({7}, {0}));
  EXPECT_EQ(cache.rows_in_use(), 6);
  cache.drop_sequence(0);
  EXPECT_EQ(cache.rows_in_use(), 5);
  EXPECT_EQ(cache.append(one.in({7}, {0})).keys_of(0, 0, 0), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  cache.drop_sequence(7);
  EXPECT_EQ(cache.rows_in_use(), 0);
  // Free rows are used again.
  const std::int64_t bytes = cache.bytes();
  cache.add_sequence(0);
  for (int i = 0; i < 50; ++i) cache.append(four.in({0}, {0}));
  EXPECT_EQ(cache.bytes(), bytes);
}

// Each thread has a sequence of its own, and all of them rows of the first.
TEST(HeadCache, PartsTakeAndLetGoOfRowsSideBySide) {
  HeadCache cache = cache_of({.lookback = 20});
  cache.add_sequence(0);
  Tokens twenty(20);
  cache.append(twenty.in({0}, {0}));
  const Numbers sequences{0, 1, 2, 3};
  for (const std::int64_t fork : {1, 2, 3}) cache.fork_sequence(0, fork);
  for (int step = 0; step < 500; ++step) {
    cache.begin_parts(sequences, 1);
    std::vector<std::thread> threads;
    for (const std::int64_t sequence : sequences) {
      threads.emplace_back([&cache, sequence] {
        Tokens one(1);
        const Numbers own{sequence};
        cache.append(one.in(own, {0}));
        cache.release(own);
      });
    }
    for (std::thread& thread : threads) thread.join();
    cache.end_parts();
    const std::int64_t shared = std::max(0, 19 - step);
    ASSERT_EQ(cache.rows_in_use(), shared + 4 * (20 - shared)) << "step " << step;
  }
  const std::int64_t bytes = cache.bytes();
  for (const std::int64_t sequence : {3, 1, 2}) cache.drop_sequence(sequence);
  EXPECT_EQ(cache.rows_in_use(), 20);
  EXPECT_EQ(cache.bytes_in_use(), cache.bytes_of(0));
  // What was set aside for them is there for others.
  Tokens sixty(60);
  cache.append(sixty.in({0}, {0}));
  EXPECT_EQ(cache.bytes(), bytes);
}

TEST(HeadCache, PartsAreCheckedBeforeTheyBeginAndHaveNoMoreTokensThanTheySaid) {
  HeadCache cache = cache_of({});
  Tokens two(2);
  for (const std::int64_t sequence : {0, 1, 2}) cache.add_sequence(sequence);
  cache.keep_sequence(2);
  EXPECT_THROW(cache.begin_parts(Numbers{0, 1, 0}, 1), InputError);
  EXPECT_THROW(cache.begin_parts(Numbers{0, 2}, 1), InputError);
  EXPECT_THROW(cache.begin_parts(Numbers{0, 3}, 1), InputError);
  cache.begin_parts(Numbers{0, 1}, 1);
  EXPECT_THROW(cache.append(two.in({0}, {0})), InputError);
  cache.end_parts();
}

TEST(HeadCache, AForkHoldsNoPlacesThatItsOriginHasLeft) {
  HeadCache cache = cache_of({.lookback = 3});
  cache.add_sequence(0);
  Tokens many(60);
  cache.append(many.in({0}, {0}));
  cache.release(Numbers{0});
  cache.fork_sequence(0, 1);
  EXPECT_EQ(cache.bytes_of(0), cache.bytes_of(1));
  Tokens one(1);
  const KeptPlan mine = cache.append(one.in({0}, {0}));
  const KeptPlan its = cache.append(one.in({1}, {0}));
  EXPECT_EQ(its.keys_of(0, 0, 0), (std::vector<std::int32_t>{58, 59, 60}));
  EXPECT_EQ(its.views.views[0].key_from, mine.views.views[0].key_from) << "ranks are those of the whole list";
}

TEST(HeadCache, WhatSequencesHoldIsRowsOnceAndPlacesOfEach) {
  HeadCache cache = cache_of({.lists = 2});
  EXPECT_EQ(cache.bytes_per_row(), 2 * 4 + 4);
  constexpr std::int64_t kPlace = HeadCache::kBytesPerPlace;
  cache.add_sequence(0);
  Tokens four(4);
  cache.append(four.in({0}, {0, 1}));
  EXPECT_EQ(cache.bytes_in_use(), 4 * 12 + 8 * kPlace) << "four rows, each in two lists";
  EXPECT_EQ(cache.bytes_of(0), cache.bytes_in_use());
  EXPECT_EQ(cache.kept_bytes(), 0);
  cache.fork_sequence(0, 1);
  cache.keep_sequence(1);
  cache.keep_sequence(1);
  EXPECT_TRUE(cache.is_kept(1));
  EXPECT_FALSE(cache.is_kept(0));
  EXPECT_EQ(cache.kept_bytes(), 4 * 12 + 8 * kPlace);
  // What the other one reads is not the kept one's, and what it lets go of is still held.
  Tokens one(1);
  cache.append(one.in({0}, {0}));
  EXPECT_EQ(cache.bytes_of(0), 5 * 12 + 9 * kPlace);
  cache.fork_sequence(0, 2);
  cache.keep_sequence(2);
  EXPECT_EQ(cache.kept_bytes(), 5 * 12 + 17 * kPlace) << "four of its rows are kept already";
  cache.drop_sequence(0);
  EXPECT_EQ(cache.bytes_in_use(), cache.kept_bytes());
  cache.drop_sequence(1);
  EXPECT_EQ(cache.kept_bytes(), 5 * 12 + 9 * kPlace);
  cache.compact();
  EXPECT_EQ(cache.kept_bytes(), 5 * 12 + 9 * kPlace);
  cache.drop_sequence(2);
  EXPECT_EQ(cache.kept_bytes(), 0);
  EXPECT_EQ(cache.bytes_in_use(), 0);
  cache.add_sequence(2);
  EXPECT_FALSE(cache.is_kept(2));
}

TEST(HeadCache, BlocksReadThemselvesAndTheOneBefore) {
  HeadCache cache = cache_of({.block = 3, .before = 3});
  const Numbers sequence{0};
  cache.add_sequence(0);
  Tokens seven(7);
  const KeptPlan plan = cache.append(seven.in(sequence, {0}));
  EXPECT_EQ(plan.keys_of(0, 0, 5), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(plan.keys_of(0, 0, 6), (std::vector<std::int32_t>{3, 4, 5, 6}));
  cache.release(sequence);
  EXPECT_EQ(cache.rows_in_use(), 4);
}

// Segments of 4 with a memory of 3: positions 4 to 7 read from 1 on, 8 to 11 from 5 on.
TEST(HeadCache, AHorizonMovesOnWithTheSegmentsAndLetsGoOfWhatIsBeyond) {
  HeadCache cache({.heads = 1, .key_dim = 1, .value_dim = 1, .horizon = {.segment = 4, .memory = 3}});
  const Numbers sequence{0};
  cache.add_sequence(0);
  Tokens six(6);
  const KeptPlan first = cache.append(six.in(sequence, {0}));
  EXPECT_EQ(first.keys_of(0, 0, 3), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(first.keys_of(0, 0, 4), (std::vector<std::int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(first.keys_of(0, 0, 5), (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
  cache.release(sequence);
  EXPECT_EQ(cache.rows_in_use(), 5);
  const KeptPlan second = cache.append(six.in(sequence, {0}));
  EXPECT_EQ(second.keys_of(0, 0, 1), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(second.keys_of(0, 0, 2), (std::vector<std::int32_t>{5, 6, 7, 8}));
  EXPECT_EQ(second.keys_of(0, 0, 5), (std::vector<std::int32_t>{5, 6, 7, 8, 9, 10, 11}));
  cache.release(sequence);
  EXPECT_EQ(cache.rows_in_use(), 7);
  // Shifted keys: the first that is remembered stands for a token that is not.
  HeadCache shifted({.heads = 1, .key_dim = 1, .value_dim = 1, .horizon = {.segment = 4, .memory = 3}, .key_shift = 1});
  shifted.add_sequence(0);
  EXPECT_EQ(shifted.append(six.in(sequence, {0})).keys_of(0, 0, 4), (std::vector<std::int32_t>{2, 3, 4}));
}

// Rows of 4 positions, of which 2 join list 0 and 3 join list 1; blocks are two rows and read one row before.
TEST(HeadCache, BlocksOfListsThatTakeSomeKeysReadFromTheirOwnRanks) {
  const ListRules rules{.lists = 2, .block = 8, .before = 4, .period = 4, .period_keys = {2, 3}};
  EXPECT_EQ(rules.first_rank(0, 7), 0);
  EXPECT_EQ(rules.first_rank(0, 8), 2);
  EXPECT_EQ(rules.first_rank(1, 15), 3);
  EXPECT_EQ(rules.first_rank(1, 16), 9);
  HeadCache cache = cache_of(rules);
  const Numbers sequence{0};
  cache.add_sequence(0);
  Tokens twelve(12);
  HeadCache::NewTokens tokens = twelve.in(sequence, {0});
  const std::vector<TokenLists> key_lists{
      {.counts = {1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1}, .lists = {0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1}}};
  tokens.key_lists = key_lists;
  const KeptPlan plan = cache.append(tokens);
  EXPECT_EQ(plan.keys_of(0, 0, 7), (std::vector<std::int32_t>{0, 1, 4, 5}));
  EXPECT_EQ(plan.keys_of(0, 0, 11), (std::vector<std::int32_t>{4, 5, 8, 9}));
  EXPECT_EQ(plan.views.views[11].key_from, 0) << "groups count from the first key that they read";
  cache.release(sequence);
  EXPECT_EQ(cache.rows_in_use(), 8) << "positions 4 to 11";
}

TEST(HeadCache, ATokenReadsItselfOnlyIfAlone) {
  HeadCache cache({.heads = 1, .key_dim = 1, .value_dim = 1, .rules = {.lists = 2}, .self = SelfRule::only_if_alone});
  cache.add_sequence(0);
  Tokens one(1);
  EXPECT_EQ(cache.append(one.in({0}, {0})).keys_of(0, 0, 0), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(cache.append(one.in({0}, {0})).keys_of(0, 0, 0), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(cache.append(one.in({0}, {0, 1})).keys_of(0, 0, 0), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(cache.append(one.in({0}, {1})).keys_of(0, 0, 0), (std::vector<std::int32_t>{2}));
}

TEST(HeadCache, AKeyOfSeveralListsCountsInTheFirstThatIsRead) {
  HeadCache cache = cache_of({.lists = 3, .lookback = 2, .repeats = RepeatRule::once});
  cache.add_sequence(0);
  Tokens one(1);
  EXPECT_EQ(cache.append(one.in({0}, {0, 2})).keys_of(0, 0, 0), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(cache.append(one.in({0}, {0, 1})).keys_of(0, 0, 0), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(cache.append(one.in({0}, {0})).keys_of(0, 0, 0), (std::vector<std::int32_t>{1, 2}));
  // List 0 has moved on to 2 and 3: key 0 counts in list 2, key 3 is in all.
  const KeptPlan plan = cache.append(one.in({0}, {0, 1, 2}));
  EXPECT_EQ(plan.keys_of(0, 0, 0), (std::vector<std::int32_t>{2, 3, 1, 0}));
  EXPECT_TRUE(plan.views.repeats.keys().any());
  // A plan that is made from the memory of another has nothing of it.
  HeadCache plain = cache_of({.lists = 3});
  plain.add_sequence(0);
  EXPECT_FALSE(plain.append(one.in({0}, {0, 1}), plan).views.repeats.keys().any());
}

TEST(HeadCache, RowsHoldWhatTheyWereGiven) {
  HeadCache cache = cache_of({});
  cache.add_sequence(0);
  Tokens three(3);
  const KeptPlan plan = cache.append(three.in({0}, {0}));
  EXPECT_EQ(plan.num_queries, 3);
  // They are handed out in order while none is free.
  EXPECT_TRUE(
      at::equal(cache.store().rows().narrow(0, 0, 3), at::tensor({0, 0, 10, -1, 20, -2}, at::kFloat).view({3, 2})));
}

TEST(HeadCache, WrongCallsAreRefused) {
  HeadCache cache = cache_of({});
  Tokens one(1);
  EXPECT_THROW(cache.append(one.in({0}, {0})), InputError);
  EXPECT_THROW(cache.add_sequence(-1), InputError);
  cache.add_sequence(0);
  EXPECT_THROW(cache.append(one.in({0, 0}, {0})), InputError);
  HeadCache::NewTokens without_lists = one.in({0}, {0});
  without_lists.query_lists = {};
  EXPECT_THROW(cache.append(without_lists), InputError);
  EXPECT_THROW(cache.set_memory(0, 1, {}, {}, {}), InputError);
  EXPECT_THROW(cache.fork_sequence(3, 4), InputError);
  cache.add_sequence(4);
  EXPECT_EQ(cache.length(4), 0);
  cache.keep_sequence(4);
  EXPECT_THROW(cache.append(one.in({4}, {0})), InputError) << "a kept sequence is as it is";
  EXPECT_THROW(cache.keep_sequence(5), InputError);
  EXPECT_THROW(cache.bytes_of(5), InputError);
}

}  // namespace
}  // namespace routing::head_cache_test
