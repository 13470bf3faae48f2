// How dense kernels, embeddings and relative tables start (docs/facts.md C9).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

struct InitialWeight {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  double scale = 0.2;  // variance times the mean of rows and columns
  // Of one of several tables that are stored as one, or of a table without the rows that were added to it: how a table
  // is stored does not change how it starts. 0 means rows.
  std::int64_t rows_of_one = 0;
};

// [rows, columns], uniform in +-sqrt(3 * scale / mean of rows_of_one and columns), drawn from the stream with this key.
// On the meta device nothing is drawn.
at::Tensor initial_weight(const InitialWeight& weight, std::uint64_t key, const at::TensorOptions& options);

}  // namespace routing
