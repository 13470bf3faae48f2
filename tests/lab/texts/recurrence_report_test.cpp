#include "lab/texts/recurrence_report.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace routing::recurrence_report_test {
namespace {

constexpr double kNatsOfABit = 0.6931471805599453;

// Three windows of 20, 22 and 24 near targets, which cost 1, 2 and 3 bits each, and 5 that cost 8.
std::vector<WindowRecurrence> three_windows(double more_bits = 0.0) {
  std::vector<WindowRecurrence> windows;
  for (const double bits : {1.0, 2.0, 3.0}) {
    const auto near = static_cast<std::int64_t>(18 + 2 * bits);
    WindowRecurrence window{.tokens_hash = static_cast<std::uint64_t>(near)};
    window.classes[0] = {.targets = near, .nats = kNatsOfABit * (bits + more_bits) * static_cast<double>(near)};
    window.classes[2] = {.targets = 5, .nats = kNatsOfABit * 8.0 * 5.0};
    window.octaves = {{}, window.classes[0]};
    windows.push_back(window);
  }
  return windows;
}

TEST(RecurrenceRows, WeighWindowsByTheirTargets) {
  const std::vector<RecurrenceRow> rows = recurrence_rows(three_windows());
  ASSERT_EQ(rows.size(), 6U) << "all, three classes, octaves 1 and 2-3";
  EXPECT_EQ(rows[0].name, "all");
  EXPECT_EQ(rows[0].targets, 81);
  EXPECT_EQ(rows[0].share, 1.0);
  EXPECT_NEAR(rows[0].bits.ratio, (20.0 + 44.0 + 72.0 + 120.0) / 81.0, 1e-12);
  EXPECT_EQ(rows[1].name, "near");
  EXPECT_EQ(rows[1].targets, 66);
  EXPECT_NEAR(rows[1].share, 66.0 / 81.0, 1e-15);
  EXPECT_NEAR(rows[1].bits.ratio, 136.0 / 66.0, 1e-12) << "not 2, the mean of the windows' means";
  EXPECT_EQ(rows[2].name, "far");
  EXPECT_EQ(rows[2].targets, 0);
  EXPECT_EQ(rows[3].name, "never");
  EXPECT_NEAR(rows[3].bits.ratio, 8.0, 1e-12);
  EXPECT_TRUE(rows[3].bits.bounded);
  EXPECT_NEAR(rows[3].bits.high - rows[3].bits.low, 0.0, 1e-9) << "the same in every window";
  EXPECT_EQ(rows[5].name, "2-3");
  EXPECT_EQ(rows[5].from, 2);
  EXPECT_EQ(rows[5].to, 3);
  EXPECT_NEAR(rows[5].bits.ratio, rows[1].bits.ratio, 1e-15);
  // The interval is that of the ratio of 20, 44, 72 to 20, 22, 24.
  const RatioInterval expected =
      ratio_interval(std::vector<double>{20.0, 44.0, 72.0}, std::vector<double>{20.0, 22.0, 24.0});
  EXPECT_EQ(rows[1].bits.bounded, expected.bounded);
  ASSERT_TRUE(expected.bounded);
  EXPECT_NEAR(rows[1].bits.low, expected.low, 1e-9);
  EXPECT_NEAR(rows[1].bits.high, expected.high, 1e-9);
  EXPECT_THROW(recurrence_rows({}), InputError);
  EXPECT_THROW(recurrence_rows(std::vector<WindowRecurrence>(2)), InputError);
}

TEST(RecurrenceDifferences, ArePairedByWindow) {
  // The second pays half a bit more for every near target: the windows' own spread cancels out.
  const std::vector<RecurrenceRow> rows = recurrence_differences(three_windows(), three_windows(0.5));
  EXPECT_NEAR(rows[1].bits.ratio, -0.5, 1e-12);
  EXPECT_TRUE(rows[1].bits.bounded);
  EXPECT_NEAR(rows[1].bits.low, -0.5, 1e-6);
  EXPECT_NEAR(rows[1].bits.high, -0.5, 1e-6);
  EXPECT_NEAR(rows[3].bits.ratio, 0.0, 1e-12);
  EXPECT_NEAR(rows[0].bits.ratio, -0.5 * 66.0 / 81.0, 1e-12) << "all targets count";
}

TEST(RecurrenceDifferences, RefuseOtherTokens) {
  std::vector<WindowRecurrence> other = three_windows();
  other[1].tokens_hash = 99;
  EXPECT_THROW(recurrence_differences(three_windows(), other), InputError);
  other = three_windows();
  other.pop_back();
  EXPECT_THROW(recurrence_differences(three_windows(), other), InputError);
  other = three_windows();
  ++other[2].classes[2].targets;
  EXPECT_THROW(recurrence_differences(three_windows(), other), InputError);
}

}  // namespace
}  // namespace routing::recurrence_report_test
