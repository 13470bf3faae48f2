#include "lab/heads/spread_sequences.h"

#include "routing/core/error.h"

#include <algorithm>
#include <span>
#include <string>

namespace routing {

at::Tensor spread_sequences(const TokenView& part, const SequencesToTake& which) {
  const std::int64_t n = which.length;
  require<ConfigError>(n >= 1 && which.count >= 1, "sequences to take: ", which.count, " of ", n,
                       " tokens; both must be at least 1");
  const std::int64_t pitch = which.record_length > 0 ? which.record_length : n;
  const std::int64_t available = part.size() / pitch;
  require<ConfigError>(n <= pitch && available >= 1, "the part has ", part.size(), " tokens, but a sequence has ", n,
                       which.record_length > 0 ? " of an image with " + std::to_string(which.record_length) : "",
                       "; choose another part or shorter sequences");
  const std::int64_t count = std::min(which.count, available);
  at::Tensor tokens = at::empty({count, n}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t window = i * available / count;
    part.copy(window * pitch, std::span(tokens.data_ptr<std::int64_t>() + i * n, static_cast<std::size_t>(n)));
  }
  return tokens;
}

}  // namespace routing
