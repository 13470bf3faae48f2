// Arrays for kernels with a frame of numbers around them that must not be touched.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace routing {

inline constexpr std::size_t kFrame = 4;
inline constexpr float kUntouched = 12345.0F;

inline std::vector<float> framed(const std::vector<float>& numbers) {
  std::vector<float> result(numbers.size() + 2 * kFrame, kUntouched);
  std::copy(numbers.begin(), numbers.end(), result.begin() + kFrame);
  return result;
}

// Without the frame, which must be as it was.
inline std::vector<float> unframed(const std::vector<float>& numbers) {
  for (std::size_t i = 0; i < kFrame; ++i) {
    EXPECT_EQ(numbers[i], kUntouched) << "before the array";
    EXPECT_EQ(numbers[numbers.size() - 1 - i], kUntouched) << "behind the array";
  }
  return {numbers.begin() + kFrame, numbers.end() - kFrame};
}

}  // namespace routing
