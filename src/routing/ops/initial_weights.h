// How dense kernels, embeddings and relative tables start (FACTS C9).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

struct InitialWeight {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  double scale = 0.2;     // variance times the mean of rows and columns …
  double mean_fan = 0.0;  // … or times this, where it is not 0
};

// [rows, columns], uniform in +-sqrt(3 * scale / mean fan), drawn from the stream with this key. On the
// meta device nothing is drawn.
at::Tensor initial_weight(const InitialWeight& weight, std::uint64_t key, const at::TensorOptions& options);

}  // namespace routing
