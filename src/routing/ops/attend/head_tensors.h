// Tensors [batch, heads, tokens, dim] as kernels take them.
#pragma once

#include "routing/kernels/pointwise/head_rows.h"

#include <ATen/ATen.h>

namespace routing {

// The kernels need the numbers of one vector side by side; a copy where they are not.
inline at::Tensor with_adjacent_numbers(const at::Tensor& rows) {
  return rows.stride(3) == 1 || rows.size(3) <= 1 ? rows : rows.contiguous();
}

inline kernels::HeadShape head_shape(const at::Tensor& rows) {
  return {.batch = rows.size(0), .heads = rows.size(1), .tokens = rows.size(2), .dim = rows.size(3)};
}

// [batch, heads, tokens, dim] without gaps; heads stand inside of tokens if those of `like` do.
inline at::Tensor empty_heads(const at::Tensor& like, std::int64_t heads, at::ScalarType type) {
  const auto options = like.options().dtype(type);
  const bool inside = like.stride(1) < like.stride(2);
  if (!inside) return at::empty({like.size(0), heads, like.size(2), like.size(3)}, options);
  return at::empty({like.size(0), like.size(2), heads, like.size(3)}, options).transpose(1, 2);
}

// Null for an undefined tensor.
inline kernels::HeadRows<const float> read_rows(const at::Tensor& rows) {
  if (!rows.defined()) return {};
  return {rows.data_ptr<float>(), rows.stride(0), rows.stride(1), rows.stride(2)};
}
inline kernels::HeadRows<const std::uint16_t> read_halves(const at::Tensor& rounded) {
  return {reinterpret_cast<const std::uint16_t*>(rounded.data_ptr<at::BFloat16>()), rounded.stride(0),
          rounded.stride(1), rounded.stride(2)};
}
inline kernels::HeadRows<float> written_rows(const at::Tensor& rows) {
  return {rows.data_ptr<float>(), rows.stride(0), rows.stride(1), rows.stride(2)};
}

// Rows in BFloat16, to be kept in half of the bytes.
at::Tensor rounded_heads(const at::Tensor& rows);

}  // namespace routing
