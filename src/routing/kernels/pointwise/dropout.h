// Dropout whose choices come from counters.
//
//   y = x / (1 - probability) where kept, else 0
//
// Whether element (sample, token, column) is kept depends on the key of its sample, the token and the column alone:
// word column mod 4 of philox(key, {column / 4, token, 0, 0}) must be at least probability * 2^32.
//
// Layout     [num_samples, num_tokens, width], row-major, contiguous
// Overlap    outputs may be inputs
// Threads    spread over parallel_for
#pragma once

#include <cstdint>

namespace routing::kernels {

struct DropoutShape {
  std::int64_t num_samples = 0;
  std::int64_t num_tokens = 0;
  std::int64_t width = 0;
  std::int64_t first_token = 0;  // tokens count from it
};

// keys [num_samples]; probability in [0, 1)
void dropout(const float* inputs, const DropoutShape& shape, const std::uint64_t* keys, double probability,
             float* outputs);
void dropout(const double* inputs, const DropoutShape& shape, const std::uint64_t* keys, double probability,
             double* outputs);

// Some rows of the [num_samples * num_tokens] that there are, in place: rows points to the first of them.
struct DropoutRange {
  std::int64_t first_row = 0;
  std::int64_t num_rows = 0;
};
void dropout_rows(const DropoutRange& range, const DropoutShape& shape, const std::uint64_t* keys, double probability,
                  float* rows);

}  // namespace routing::kernels
