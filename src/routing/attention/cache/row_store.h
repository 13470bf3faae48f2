// Rows of keys and values, each value behind its key, so that whoever reads a row finds both together.
//
// Where products are in bfloat16, rows may be kept in it: rounded once when they are written instead of each time they
// are read, with the same bits in all results, in half the memory.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

class RowStore {
 public:
  RowStore(std::int64_t key_dim, std::int64_t value_dim, bool halves);

  std::int64_t capacity() const { return rows_.size(0); }
  std::int64_t bytes() const { return capacity() * bytes_per_row(); }
  std::int64_t bytes_per_row() const;
  bool halves() const { return rows_.scalar_type() == at::kBFloat16; }

  // Another capacity; the first `used` rows stay as they are.
  void resize(std::int64_t capacity, std::int64_t used);
  void write(std::int64_t row, const float* key, const float* value);
  // Row `to` becomes what row `from` of another store of this kind is.
  void copy(std::int64_t to, const RowStore& other, std::int64_t from);

  // [capacity, key_dim + value_dim], Float or BFloat16
  const at::Tensor& rows() const { return rows_; }
  std::int64_t key_dim() const { return key_dim_; }

 private:
  std::int64_t key_dim_;
  at::Tensor rows_;  // [capacity, key_dim + value_dim]
};

}  // namespace routing
