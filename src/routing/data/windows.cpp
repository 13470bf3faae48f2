#include "routing/data/windows.h"

#include "routing/core/error.h"

#include <algorithm>

namespace routing {

std::vector<EvalWindow> evaluation_windows(std::int64_t tokens, std::int64_t n, std::int64_t stride,
                                           std::int64_t limit_tokens) {
  require<ConfigError>(tokens >= 1, "the split to evaluate has ", tokens,
                       " tokens, but at least 1 is needed; give it some in data.split or choose another in eval.split");
  require<ConfigError>(n >= 1, "evaluation windows of ", n,
                       " tokens, but one has at least 1; raise train.sequence_length");
  require<ConfigError>(stride >= 0 && stride <= n, "eval.stride is ", stride, ", but windows have ", n,
                       " tokens; choose 1 … ", n, ", or 0 for disjoint windows");
  require<ConfigError>(limit_tokens >= 0, "evaluation is limited to ", limit_tokens,
                       " tokens; give at least 1 in train.eval_tokens, or 0 for the whole split");
  const std::int64_t total = limit_tokens == 0 ? tokens : std::min(tokens, limit_tokens);
  const std::int64_t advance = stride == 0 ? n : stride;
  const std::int64_t context = n - advance;

  std::vector<EvalWindow> windows = {{0, std::min(n, total), 0}};
  for (std::int64_t begin = advance; begin < total - context; begin += advance) {
    windows.push_back({begin, std::min(n, total - begin), context});
  }
  return windows;
}

std::vector<EvalWindow> record_windows(std::int64_t tokens, std::int64_t record_length, std::int64_t n,
                                       std::int64_t limit_tokens) {
  require<ConfigError>(record_length >= 1 && tokens >= record_length, "the split to evaluate has ", tokens,
                       " tokens, but a record has ", record_length,
                       "; give it some in data.split or choose another in eval.split");
  require<ConfigError>(n >= 1 && n <= record_length, "evaluation windows of ", n, " tokens, but a record has ",
                       record_length, "; choose a length from 1 to that");
  require<ConfigError>(limit_tokens >= 0, "evaluation is limited to ", limit_tokens,
                       " tokens; give at least 1 in train.eval_tokens, or 0 for the whole split");
  const std::int64_t total = limit_tokens == 0 ? tokens : std::min(tokens, limit_tokens);
  std::vector<EvalWindow> windows;
  for (std::int64_t begin = 0; begin < total; begin += record_length) windows.push_back({begin, n, 0});
  return windows;
}

}  // namespace routing
