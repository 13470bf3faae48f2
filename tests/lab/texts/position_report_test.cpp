#include "lab/texts/position_report.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace routing::position_report_test {
namespace {

constexpr double kNatsOfABit = 0.6931471805599453;

// A sequence of so many tokens that all cost so many bits but those from position 2 on, which cost one less.
struct Text {
  std::vector<std::int64_t> tokens;
  std::vector<float> nats;
  Text(std::size_t size, double bits) : tokens(size), nats(size) {
    for (std::size_t i = 0; i < size; ++i) {
      tokens[i] = static_cast<std::int64_t>(i + 7 * size);
      nats[i] = static_cast<float>(kNatsOfABit * (i < 2 ? bits : bits - 1.0));
    }
  }
  SequencePositions positions(std::int64_t scored_from = 0) const {
    return sequence_positions({.tokens = tokens, .nats = nats, .scored_from = scored_from}, 2);
  }
};

TEST(SequencePositions, CountEveryTokenThatIsScoredInRangesThatDouble) {
  const SequencePositions five = Text(5, 3.0).positions();
  ASSERT_EQ(five.ranges.size(), 3U) << "0-1, 2-3, 4-7";
  EXPECT_EQ(five.ranges[0].tokens, 2);
  EXPECT_EQ(five.ranges[1].tokens, 2);
  EXPECT_EQ(five.ranges[2].tokens, 1);
  EXPECT_NEAR(five.ranges[0].nats, kNatsOfABit * 6.0, 1e-6);
  EXPECT_NEAR(five.ranges[1].nats, kNatsOfABit * 4.0, 1e-6);
  EXPECT_NEAR(five.ranges[2].nats, kNatsOfABit * 2.0, 1e-6);
  EXPECT_EQ(Text(4, 1.0).positions().ranges.size(), 2U) << "a range begins with its first token";
  const SequencePositions later = Text(5, 3.0).positions(3);
  EXPECT_EQ(later.ranges[0].tokens, 0) << "context does not count";
  EXPECT_EQ(later.ranges[1].tokens, 1);
  const Text text(3, 1.0);
  EXPECT_THROW(sequence_positions({.tokens = text.tokens, .nats = {}, .scored_from = 0}, 2), InputError);
  EXPECT_THROW(sequence_positions({.tokens = text.tokens, .nats = text.nats, .scored_from = 0}, 0), InputError);
}

TEST(PositionRows, AreMeansOverTheSequencesThatReachThem) {
  const std::vector<SequencePositions> three{Text(5, 3.0).positions(), Text(4, 4.0).positions(),
                                             Text(2, 8.0).positions()};
  const std::vector<PositionRow> rows = position_rows(three);
  ASSERT_EQ(rows.size(), 4U) << "all, and three ranges";
  EXPECT_EQ(rows[0].sequences, 3);
  EXPECT_EQ(rows[0].tokens, 11);
  EXPECT_NEAR(rows[0].bits.ratio, (12.0 + 14.0 + 16.0) / 11.0, 1e-6);
  EXPECT_EQ(rows[0].from, 0);
  EXPECT_EQ(rows[0].to, 7);
  // 3, 4 and 8 bits a token: mean 5, deviation sqrt(7), t(2) = 4.302653.
  EXPECT_EQ(rows[1].from, 0);
  EXPECT_EQ(rows[1].to, 1);
  EXPECT_NEAR(rows[1].bits.ratio, 5.0, 1e-6);
  ASSERT_TRUE(rows[1].bits.bounded);
  EXPECT_NEAR(rows[1].bits.high - 5.0, 4.302653 * 2.6457513 / 1.7320508, 1e-4);
  EXPECT_EQ(rows[2].sequences, 2) << "one ends before";
  EXPECT_EQ(rows[2].from, 2);
  EXPECT_EQ(rows[2].to, 3);
  EXPECT_NEAR(rows[2].bits.ratio, 2.5, 1e-6);
  EXPECT_EQ(rows[3].sequences, 1);
  EXPECT_EQ(rows[3].from, 4);
  EXPECT_EQ(rows[3].to, 7);
  EXPECT_NEAR(rows[3].bits.ratio, 2.0, 1e-6);
  EXPECT_FALSE(rows[3].bits.bounded) << "of one sequence nobody can say";
  EXPECT_THROW(position_rows({}), InputError);
  EXPECT_THROW(position_rows(std::vector<SequencePositions>(2)), InputError);
}

TEST(PositionDifferences, AreTakenSequenceBySequence) {
  const std::vector<SequencePositions> first{Text(5, 3.0).positions(), Text(4, 4.0).positions()};
  const std::vector<SequencePositions> second{Text(5, 3.5).positions(), Text(4, 4.5).positions()};
  const std::vector<PositionRow> rows = position_differences(first, second);
  for (const PositionRow& row : rows) EXPECT_NEAR(row.bits.ratio, -0.5, 1e-6) << row.from;
  ASSERT_TRUE(rows[1].bits.bounded);
  EXPECT_NEAR(rows[1].bits.high - rows[1].bits.low, 0.0, 1e-5) << "half a bit in both, however hard they are";
  EXPECT_THROW(position_differences(first, {first.begin(), first.begin() + 1}), InputError);
  std::vector<SequencePositions> others = second;
  others[1].tokens_hash += 1;
  EXPECT_THROW(position_differences(first, others), InputError);
}

}  // namespace
}  // namespace routing::position_report_test
