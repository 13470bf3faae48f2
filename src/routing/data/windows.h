// How a whole split is evaluated with a model that reads n bytes at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace routing {

// The model reads the bytes begin … begin + length - 1 of the split, shifted right by one behind token 0, and predicts
// each of them. Only the predictions of byte begin + scored_from and of those after it count.
struct EvalWindow {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t scored_from = 0;  // in the window
  friend bool operator==(const EvalWindow&, const EvalWindow&) = default;
};

// Window i begins at i * s and has n bytes, or what is left of the split: no tail is dropped. The first window scores
// all its bytes, every other one those from n - s on, which are its s new ones. So every byte is scored exactly once,
// and with at least n - s bytes of context unless it is among the first n of the split. s = n makes the windows
// disjoint; each then starts with no context but token 0.
//
// bytes        of the split
// n            bytes a window
// stride       s, from 1 to n; 0 means n
// limit_bytes  evaluate only so many bytes from the start of the split; 0 means all
//
// Throws  ConfigError  an empty split, n < 1, a stride outside 0 … n, a negative limit
std::vector<EvalWindow> evaluation_windows(std::int64_t bytes, std::int64_t n, std::int64_t stride,
                                           std::int64_t limit_bytes = 0);

}  // namespace routing
