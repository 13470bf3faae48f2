// What the pieces of a sequence tell each other, word by word.
#include "routing/attention/cache/sequence_pieces.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <vector>

namespace routing::sequence_pieces_test {
namespace {

using Words = std::vector<std::int32_t>;
using Numbers = std::vector<std::int64_t>;

// One of several pieces; the others have said and sent what the test wants.
class ScriptedPiece : public PieceExchange {
 public:
  ScriptedPiece(int piece, std::vector<Words> table) : piece_(piece), table_(std::move(table)) {}

  int piece() const override { return piece_; }
  int pieces() const override { return static_cast<int>(table_.size()); }
  at::Tensor gather(const at::Tensor& numbers) override {
    said = Words(numbers.data_ptr<std::int32_t>(), numbers.data_ptr<std::int32_t>() + numbers.numel());
    std::vector<at::Tensor> rows;
    for (const Words& row : table_) rows.push_back(at::tensor(row, at::kInt));
    rows[static_cast<std::size_t>(piece_)] = numbers;
    return at::stack(rows);
  }
  void send(const at::Tensor& words, int later) override {
    sent[later] = Words(words.data_ptr<std::int32_t>(), words.data_ptr<std::int32_t>() + words.numel());
  }
  at::Tensor receive(int earlier) override { return at::tensor(received.at(earlier), at::kInt); }

  Words said;
  std::map<int, Words> sent, received;

 private:
  int piece_;
  std::vector<Words> table_;
};

std::int32_t word(float number) {
  return std::bit_cast<std::int32_t>(number);
}

// One head; the token at position p has the key 10 p and the value -p.
struct Piece {
  Piece(const ListRules& rules, std::int64_t begin, TokenLists of_tokens)
      : cache({.heads = 1, .key_dim = 1, .value_dim = 1, .rules = rules}), lists{std::move(of_tokens)} {
    const auto tokens = static_cast<std::int64_t>(lists[0].counts.size());
    const at::Tensor positions = at::arange(begin, begin + tokens, at::kFloat).view({1, 1, tokens, 1});
    keys = 10.0 * positions;
    values = -1.0 * positions;
    cache.add_sequence(0);
    cache.begin_at(0, begin);
  }
  void exchange(PieceExchange& with) {
    const PieceKeys group{.cache = &cache, .keys = keys, .values = values, .key_lists = lists};
    take_keys_before(with, 0, std::span(&group, 1));
  }
  KeptPlan read() {
    const auto rows = [](const at::Tensor& t) {
      return kernels::HeadRows<const float>{.data = t.data_ptr<float>(), .row_stride = 1};
    };
    return cache.append({.sequences = sequences,
                         .tokens = keys.size(2),
                         .keys = rows(keys),
                         .values = rows(values),
                         .query_lists = lists});
  }

  HeadCache cache;
  std::vector<TokenLists> lists;
  at::Tensor keys, values;
  Numbers sequences{0};
};

// Tokens 0 … 4 are in lists 0, 1, both, 0, 0. Of each list the last two before a piece are needed. Piece 1 has one more
// of list 0, so piece 2 needs one of list 0 and both of list 1 from here.
TEST(SequencePieces, SendTheLastKeysOfEachListAndEachRowOnce) {
  Piece first({.lists = 2, .lookback = 2}, 0, {.counts = {1, 1, 2, 1, 1}, .lists = {0, 1, 0, 1, 0, 0}});
  ScriptedPiece exchange(0, {{0, 0, 0, 0}, {5, 1, 1, 0}, {6, 4, 0, 4}});
  first.exchange(exchange);
  EXPECT_EQ(exchange.said, (Words{0, 5, 4, 2}));
  ASSERT_EQ(exchange.sent.size(), 2U);
  const auto row = [](std::int32_t p) {
    return Words{p, word(10.0F * static_cast<float>(p)), word(-1.0F * static_cast<float>(p))};
  };
  const auto message = [&](const Words& positions, const Words& members) {
    Words words{static_cast<std::int32_t>(positions.size())};
    for (const std::int32_t p : positions) {
      const Words one = row(p);
      words.insert(words.end(), one.begin(), one.end());
    }
    words.insert(words.end(), members.begin(), members.end());
    return words;
  };
  EXPECT_EQ(exchange.sent[1], message({1, 2, 3, 4}, {2, 3, 0, 1}));
  EXPECT_EQ(exchange.sent[2], message({1, 2, 4}, {2, 0, 1}));
}

TEST(SequencePieces, ReadWhatStandsBeforeThemAtItsOwnRank) {
  Piece last({.lists = 2, .lookback = 3}, 6, {.counts = {1, 1}, .lists = {0, 1}});
  ScriptedPiece exchange(2, {{0, 5, 4, 2}, {5, 1, 1, 0}, {6, 0, 0, 0}});
  // Lists 0: 0 2 3 4 | 5, of which 3 4 | 5 are the last three; 1: 1 2.
  exchange.received[0] = {4,        1, word(10), word(-1), 2, word(20), word(-2), 3, word(30),
                          word(-3), 4, word(40), word(-4), 2, 3,        0,        1};
  exchange.received[1] = {1, 5, word(50), word(-5), 0};
  last.exchange(exchange);
  EXPECT_EQ(last.cache.rows_in_use(), 5);
  const KeptPlan plan = last.read();
  EXPECT_EQ(plan.keys_of(0, 0, 0), (Words{4, 5, 6}));
  EXPECT_EQ(plan.keys_of(0, 0, 1), (Words{1, 2, 7}));
  // Token 6 is key 5 of list 0, of which keys 3 … 5 are seen: the place in front of which tiles begin is 0.
  EXPECT_EQ(plan.views.views[0].key_from, 3);
  EXPECT_EQ(plan.views.views[0].key_to, 6);
  EXPECT_TRUE(at::equal(last.cache.store().rows().narrow(0, 0, 5),
                        at::tensor({10, -1, 20, -2, 30, -3, 40, -4, 50, -5}, at::kFloat).view({5, 2})));
  last.cache.release(last.sequences);
  last.cache.drop_sequence(0);
  EXPECT_EQ(last.cache.rows_in_use(), 0);
}

TEST(SequencePieces, OfBlocksReachBackToTheBlockBefore) {
  Piece first({.block = 4, .before = 4}, 0, {.counts = Words(7, 1), .lists = Words(7, 0)});
  ScriptedPiece exchange(0, {{0, 0, 0}, {7, 2, 2}, {9, 1, 1}});
  first.exchange(exchange);
  EXPECT_EQ(exchange.sent[1].front(), 7) << "token 7 is in block 1 and reads from 0 on";
  EXPECT_EQ(exchange.sent[2].front(), 3) << "token 9 is in block 2 and reads from 4 on";
}

TEST(SequencePieces, WithoutAWindowSendEverything) {
  Piece first({}, 0, {.counts = Words(7, 1), .lists = Words(7, 0)});
  ScriptedPiece exchange(0, {{0, 0, 0}, {7, 2, 2}, {9, 1, 1}});
  first.exchange(exchange);
  EXPECT_EQ(exchange.sent[1].front(), 7);
  EXPECT_EQ(exchange.sent[2].front(), 7);
}

TEST(SequencePieces, ThatDoNotFollowEachOtherOrDoNotFitAreRefused) {
  const auto refused = [](const Words& before, const Words& received) {
    Piece piece({.lists = 2, .lookback = 3}, 6, {.counts = {1, 1}, .lists = {0, 1}});
    ScriptedPiece exchange(1, {before, {}});
    exchange.received[0] = received;
    EXPECT_THROW(piece.exchange(exchange), InputError);
  };
  refused({0, 5, 1, 0}, {1, 0, 0, 0, 0});
  refused({1, 5, 1, 0}, {1, 0, 0, 0, 0});
  refused({0, 6, 1, 0}, {1, 0, 0, 0});
  refused({0, 6, 1, 0}, {1, 0, 0, 0, 0, 0});
  refused({0, 6, 1, 0}, {1, 0, 0, 0, 1});
  refused({0, 6, 1, 0}, {1, 0, 0, 0, -1});
  refused({0, 6, 1, 0}, {-1});
  Piece piece({.lists = 2, .lookback = 3}, 6, {.counts = {1, 1}, .lists = {0, 1}});
  EXPECT_THROW(piece.read(), InputError) << "nobody has told what stands before";
  EXPECT_THROW(piece.cache.begin_at(0, 7), InputError) << "it has begun";
  ScriptedPiece exchange(1, {{0, 6, 1, 0}, {}});
  exchange.received[0] = {1, 0, 0, 0, 0};
  piece.exchange(exchange);
  EXPECT_THROW(piece.exchange(exchange), InputError) << "a second time";
}

}  // namespace
}  // namespace routing::sequence_pieces_test
