// How a whole split is evaluated with a model that reads n tokens at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace routing {

// The model reads the tokens begin … begin + length - 1 of the split, shifted right by one behind its start symbol, and
// predicts each of them. Only the predictions of token begin + scored_from and of those after it count.
struct EvalWindow {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t scored_from = 0;  // in the window
  friend bool operator==(const EvalWindow&, const EvalWindow&) = default;
};

// Window i begins at i * s and has n tokens, or what is left of the split: no tail is dropped. The first window scores
// all its tokens, every other one those from n - s on, which are its s new ones. So every token is scored exactly
// once, and with at least n - s tokens of context unless it is among the first n of the split. s = n makes the windows
// disjoint; each then starts with no context.
//
// tokens        of the split
// n             tokens per window
// stride        s, from 1 to n; 0 means n
// limit_tokens  evaluate only so many tokens from the start of the split; 0 means all
//
// Throws  ConfigError  an empty split, n < 1, a stride outside 0 … n, a negative limit
std::vector<EvalWindow> evaluation_windows(std::int64_t tokens, std::int64_t n, std::int64_t stride,
                                           std::int64_t limit_tokens = 0);

// The same for records, such as images: one window each, of its first n tokens. With a limit, as many whole records as
// begin before it.
//
// Throws  ConfigError  no records, n not between 1 and their length, a negative limit
std::vector<EvalWindow> record_windows(std::int64_t tokens, std::int64_t record_length, std::int64_t n,
                                       std::int64_t limit_tokens = 0);

}  // namespace routing
