// How dense kernels, embeddings and relative tables start (FACTS C9).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

// [rows, columns], uniform in +-sqrt(3 * 0.2 / mean of rows and columns), drawn from the stream with this key. On the
// meta device nothing is drawn.
at::Tensor initial_weight(std::int64_t rows, std::int64_t columns, std::uint64_t key, const at::TensorOptions& options);

}  // namespace routing
