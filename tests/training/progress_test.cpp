#include "routing/training/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace routing::progress_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Progress third() {
  return {.step = 340,
          .total_steps = 1000,
          .score = 2.412,
          .tokens_per_second = 6120.0,
          .seconds_elapsed = 43.2,
          .seconds_left = 83.4};
}

TEST(ProgressLine, ShowsABarInTheRoomThatIsLeft) {
  // 12 letters of bar: 0.34 of them is 4.08.
  EXPECT_EQ(progress_line(third(), 68), "  340/1000 [====>       ]  2.41 bits/byte  6.1k tokens/s  1:23 left");
  EXPECT_EQ(progress_line(third(), 61), "  340/1000 [=>   ]  2.41 bits/byte  6.1k tokens/s  1:23 left");
  EXPECT_EQ(progress_line(third(), 500),
            "  340/1000 [=============>                          ]  2.41 bits/byte  6.1k tokens/s  1:23 left");
}

TEST(ProgressLine, DropsWhatMattersLeastInANarrowTerminal) {
  EXPECT_EQ(progress_line(third(), 60), "  340/1000  2.41 bits/byte  6.1k tokens/s  1:23 left");
  EXPECT_EQ(progress_line(third(), 53), "  340/1000  2.41 bits/byte  6.1k tokens/s  1:23 left");
  EXPECT_EQ(progress_line(third(), 52), "  340/1000  2.41 bits/byte  1:23 left");
  EXPECT_EQ(progress_line(third(), 30), "  340/1000  1:23 left");
  EXPECT_EQ(progress_line(third(), 15), "  340/1000");
  EXPECT_EQ(progress_line(third(), 6), "  340");
  EXPECT_EQ(progress_line(third(), 1), "");
  EXPECT_EQ(progress_line(third(), 0), "");
}

TEST(ProgressLine, CountsEpochsWhereThereIsRoom) {
  Progress progress = third();
  progress.epochs = 0.5249;
  EXPECT_EQ(progress_line(progress, 81),
            "  340/1000 [====>       ]  2.41 bits/byte  0.52 epochs  6.1k tokens/s  1:23 left");
  EXPECT_EQ(progress_line(progress, 65), "  340/1000  2.41 bits/byte  6.1k tokens/s  1:23 left");
  progress.epochs = 12.345;
  EXPECT_EQ(plain_progress_line(progress),
            "step 340 of 1000: 2.41 bits/byte, 12.3 epochs, 6.1k tokens/s, 0:43 elapsed, 1:23 left");
}

TEST(ProgressLine, NeverReachesTheLastColumn) {
  for (int width = 1; width < 200; ++width) {
    EXPECT_LT(progress_line(third(), width).size(), static_cast<std::size_t>(width));
  }
}

TEST(ProgressLine, IsFullAtTheEndAndEmptyAtTheStart) {
  Progress progress = third();
  progress.step = 1000;
  progress.seconds_left = 0.0;
  EXPECT_EQ(progress_line(progress, 68), " 1000/1000 [============]  2.41 bits/byte  6.1k tokens/s  0:00 left");
  // More steps than planned do not break the bar.
  progress.step = 12000;
  EXPECT_EQ(progress_line(progress, 69), " 12000/1000 [============]  2.41 bits/byte  6.1k tokens/s  0:00 left");
  EXPECT_EQ(progress_line({.total_steps = 50}, 40), "  0/50 [>               ]  0:00 elapsed");
}

TEST(ProgressLine, OfARunLimitedByTimeShowsTheTime) {
  Progress progress = third();
  progress.total_steps.reset();
  progress.seconds_elapsed = 30.0;
  progress.seconds_left = 90.0;
  EXPECT_EQ(progress_line(progress, 67), " step 340 [===>        ]  2.41 bits/byte  6.1k tokens/s  1:30 left");
  // Nothing is known of the end.
  progress.seconds_left.reset();
  EXPECT_EQ(progress_line(progress, 80), " step 340  2.41 bits/byte  6.1k tokens/s  0:30 elapsed");
  // No time has passed and none is left.
  EXPECT_EQ(progress_line({.seconds_left = 0.0}, 80), " step 0  0:00 left");
}

TEST(ProgressLine, DoesNotHideALossThatIsNoNumber) {
  Progress progress = third();
  progress.score = kNan;
  EXPECT_EQ(progress_line(progress, 52), "  340/1000  nan bits/byte  6.1k tokens/s  1:23 left");
}

TEST(PlainProgressLine, SaysWhatIsKnown) {
  EXPECT_EQ(plain_progress_line(third()), "step 340 of 1000: 2.41 bits/byte, 6.1k tokens/s, 0:43 elapsed, 1:23 left");
  EXPECT_EQ(plain_progress_line({.step = 7, .score = 8.0, .seconds_elapsed = 3.0}),
            "step 7: 8.00 bits/byte, 0:03 elapsed");
  EXPECT_EQ(plain_progress_line({}), "step 0: 0:00 elapsed");
}

TEST(ClockText, ReadsAsAClock) {
  EXPECT_EQ(clock_text(0.0), "0:00");
  EXPECT_EQ(clock_text(6.6), "0:07");
  EXPECT_EQ(clock_text(59.6), "1:00");
  EXPECT_EQ(clock_text(83.0), "1:23");
  EXPECT_EQ(clock_text(3599.0), "59:59");
  EXPECT_EQ(clock_text(2 * 3600 + 3 * 60 + 4), "2:03:04");
  EXPECT_EQ(clock_text(3 * 86400 + 2 * 3600 + 3 * 60 + 4), "3d 2:03:04");
  EXPECT_EQ(clock_text(86400.0), "1d 0:00:00");
  for (const double none : {-1.0, kNan, std::numeric_limits<double>::infinity(), 1e300}) {
    EXPECT_EQ(clock_text(none), "?") << none;
  }
}

TEST(ShortCount, KeepsTwoOrThreeDigits) {
  EXPECT_EQ(short_count(0.0), "0.0");
  EXPECT_EQ(short_count(0.53), "0.5");
  EXPECT_EQ(short_count(9.94), "9.9");
  EXPECT_EQ(short_count(9.96), "10");
  EXPECT_EQ(short_count(610.0), "610");
  EXPECT_EQ(short_count(999.6), "1.0k");
  EXPECT_EQ(short_count(6120.0), "6.1k");
  EXPECT_EQ(short_count(61200.0), "61k");
  EXPECT_EQ(short_count(999400.0), "999k");
  EXPECT_EQ(short_count(999600.0), "1.0M");
  EXPECT_EQ(short_count(6.1e9), "6.1G");
  EXPECT_EQ(short_count(6.1e13), "61000G");
  EXPECT_EQ(short_count(-1.0), "?");
  EXPECT_EQ(short_count(kNan), "?");
  EXPECT_EQ(short_count(std::numeric_limits<double>::infinity()), "?");
}

}  // namespace
}  // namespace routing::progress_test
