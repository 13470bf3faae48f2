#include "routing/data/windows.h"

#include "routing/core/error.h"

#include <algorithm>

namespace routing {

std::vector<EvalWindow> evaluation_windows(std::int64_t bytes, std::int64_t n, std::int64_t stride,
                                           std::int64_t limit_bytes) {
  require<ConfigError>(bytes >= 1, "the split to evaluate has ", bytes,
                       " bytes, but at least 1 is needed; give it some in data.split or choose another in eval.split");
  require<ConfigError>(n >= 1, "evaluation windows of ", n,
                       " bytes, but one has at least 1; raise train.sequence_length");
  require<ConfigError>(stride >= 0 && stride <= n, "eval.stride is ", stride, ", but windows have ", n,
                       " bytes; choose 1 … ", n, ", or 0 for disjoint windows");
  require<ConfigError>(limit_bytes >= 0, "evaluation is limited to ", limit_bytes,
                       " bytes; give at least 1 in train.eval_tokens, or 0 for the whole split");
  const std::int64_t total = limit_bytes == 0 ? bytes : std::min(bytes, limit_bytes);
  const std::int64_t advance = stride == 0 ? n : stride;
  const std::int64_t context = n - advance;

  std::vector<EvalWindow> windows = {{0, std::min(n, total), 0}};
  for (std::int64_t begin = advance; begin < total - context; begin += advance) {
    windows.push_back({begin, std::min(n, total - begin), context});
  }
  return windows;
}

}  // namespace routing
