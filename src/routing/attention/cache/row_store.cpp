#include "routing/attention/cache/row_store.h"

#include "routing/kernels/pointwise/bfloat16.h"

#include <algorithm>
#include <cstring>

namespace routing {
namespace {

std::uint16_t* halves_of(const at::Tensor& rows) {
  return reinterpret_cast<std::uint16_t*>(rows.data_ptr<at::BFloat16>());
}

}  // namespace

RowStore::RowStore(std::int64_t key_dim, std::int64_t value_dim, bool halves)
    : key_dim_(key_dim), rows_(at::empty({0, key_dim + value_dim}, halves ? at::kBFloat16 : at::kFloat)) {}

std::int64_t RowStore::bytes_per_row() const {
  return rows_.size(1) * static_cast<std::int64_t>(rows_.element_size());
}

void RowStore::resize(std::int64_t capacity, std::int64_t used) {
  const at::Tensor other = at::empty({capacity, rows_.size(1)}, rows_.options());
  other.narrow(0, 0, used).copy_(rows_.narrow(0, 0, used));
  rows_ = other;
}

void RowStore::write(std::int64_t row, const float* key, const float* value) {
  const std::int64_t width = rows_.size(1);
  if (halves()) {
    std::uint16_t* const to = halves_of(rows_) + row * width;
    kernels::to_bfloat16(key, key_dim_, to);
    kernels::to_bfloat16(value, width - key_dim_, to + key_dim_);
    return;
  }
  float* const to = rows_.data_ptr<float>() + row * width;
  std::copy_n(key, key_dim_, to);
  std::copy_n(value, width - key_dim_, to + key_dim_);
}

void RowStore::copy(std::int64_t to, const RowStore& other, std::int64_t from) {
  const auto bytes = static_cast<std::size_t>(bytes_per_row());
  std::memcpy(static_cast<char*>(rows_.data_ptr()) + static_cast<std::size_t>(to) * bytes,
              static_cast<const char*>(other.rows_.data_ptr()) + static_cast<std::size_t>(from) * bytes, bytes);
}

}  // namespace routing
