#include "routing/data/windows.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace routing::windows_test {
namespace {

using Windows = std::vector<EvalWindow>;

std::string message_of(std::int64_t bytes, std::int64_t n, std::int64_t stride, std::int64_t limit) {
  try {
    evaluation_windows(bytes, n, stride, limit);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(EvaluationWindows, DisjointWindowsTileTheSplitAndTheLastIsShorter) {
  EXPECT_EQ(evaluation_windows(10, 4, 4), (Windows{{0, 4, 0}, {4, 4, 0}, {8, 2, 0}}));
  EXPECT_EQ(evaluation_windows(8, 4, 0), (Windows{{0, 4, 0}, {4, 4, 0}}));
  EXPECT_EQ(evaluation_windows(3, 4, 0), (Windows{{0, 3, 0}}));
}

TEST(EvaluationWindows, StridedWindowsScoreTheirNewBytesOnly) {
  // Bytes 0-3, then 4, 5 behind two of context, then 6, 7, then 8.
  EXPECT_EQ(evaluation_windows(9, 4, 2), (Windows{{0, 4, 0}, {2, 4, 2}, {4, 4, 2}, {6, 3, 2}}));
  EXPECT_EQ(evaluation_windows(6, 4, 1), (Windows{{0, 4, 0}, {1, 4, 3}, {2, 4, 3}}));
  EXPECT_EQ(evaluation_windows(4, 4, 1), (Windows{{0, 4, 0}}));
  EXPECT_EQ(evaluation_windows(2, 4, 1), (Windows{{0, 2, 0}}));
}

TEST(EvaluationWindows, LimitEndsTheTextEarlyAndIsNoMoreThanIt) {
  EXPECT_EQ(evaluation_windows(100, 4, 2, 9), evaluation_windows(9, 4, 2));
  EXPECT_EQ(evaluation_windows(9, 4, 2, 100), evaluation_windows(9, 4, 2));
  EXPECT_EQ(evaluation_windows(9, 4, 2, 1), (Windows{{0, 1, 0}}));
}

TEST(EvaluationWindows, EveryByteIsScoredOnceAndWithTheContextThatThePromiseSays) {
  for (std::int64_t bytes = 1; bytes <= 40; ++bytes) {
    for (std::int64_t n = 1; n <= 12; ++n) {
      for (std::int64_t stride = 1; stride <= n; ++stride) {
        std::vector<int> scored(static_cast<std::size_t>(bytes), 0);
        for (const EvalWindow& window : evaluation_windows(bytes, n, stride)) {
          ASSERT_GE(window.begin, 0);
          ASSERT_LE(window.begin + window.length, bytes);
          ASSERT_LE(window.length, n);
          // A window that scores nothing would be wasted work.
          ASSERT_LT(window.scored_from, window.length);
          for (std::int64_t place = window.scored_from; place < window.length; ++place) {
            const std::int64_t byte = window.begin + place;
            ++scored[static_cast<std::size_t>(byte)];
            const std::int64_t context = place;
            EXPECT_GE(context, std::min(byte, n - stride))
                << "byte " << byte << " of " << bytes << ", n " << n << ", stride " << stride;
          }
        }
        EXPECT_TRUE(std::all_of(scored.begin(), scored.end(), [](int times) { return times == 1; }))
            << bytes << " bytes, n " << n << ", stride " << stride;
      }
    }
  }
}

TEST(EvaluationWindows, ImpossibleNumbersAreRefusedWithTheKeyToChange) {
  EXPECT_NE(message_of(0, 4, 0, 0).find("has 0 tokens, but at least 1 is needed; give it some in data.split"),
            std::string::npos);
  EXPECT_NE(message_of(9, 0, 0, 0).find("train.sequence_length"), std::string::npos);
  EXPECT_NE(message_of(9, 4, 5, 0).find("eval.stride is 5, but windows have 4 tokens"), std::string::npos);
  EXPECT_NE(message_of(9, 4, -1, 0).find("eval.stride is -1"), std::string::npos);
  EXPECT_NE(message_of(9, 4, 2, -1).find("limited to -1 tokens"), std::string::npos);
}

TEST(RecordWindows, AreOneARecordOfItsFirstTokens) {
  EXPECT_EQ(record_windows(30, 10, 10), (std::vector<EvalWindow>{{0, 10, 0}, {10, 10, 0}, {20, 10, 0}}));
  EXPECT_EQ(record_windows(30, 10, 4), (std::vector<EvalWindow>{{0, 4, 0}, {10, 4, 0}, {20, 4, 0}}));
  EXPECT_EQ(record_windows(30, 10, 10, 11), (std::vector<EvalWindow>{{0, 10, 0}, {10, 10, 0}})) << "whole records";
  EXPECT_EQ(record_windows(30, 10, 10, 999).size(), 3U);
}

TEST(RecordWindows, ImpossibleLengthsAreRefused) {
  EXPECT_THROW(record_windows(5, 10, 10), ConfigError);
  EXPECT_THROW(record_windows(30, 10, 11), ConfigError);
  EXPECT_THROW(record_windows(30, 10, 0), ConfigError);
  EXPECT_THROW(record_windows(30, 10, 10, -1), ConfigError);
}

}  // namespace
}  // namespace routing::windows_test
