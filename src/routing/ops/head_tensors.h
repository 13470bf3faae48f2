// Tensors [batch, heads, tokens, dim] as kernels take them.
#pragma once

#include "routing/kernels/head_rows.h"

#include <ATen/ATen.h>

namespace routing {

// The kernels need the numbers of one vector side by side; a copy where they are not.
inline at::Tensor with_adjacent_numbers(const at::Tensor& rows) {
  return rows.stride(3) == 1 || rows.size(3) <= 1 ? rows : rows.contiguous();
}

// Null for an undefined tensor.
inline kernels::HeadRows<const float> read_rows(const at::Tensor& rows) {
  if (!rows.defined()) return {};
  return {rows.data_ptr<float>(), rows.stride(0), rows.stride(1), rows.stride(2)};
}
inline kernels::HeadRows<float> written_rows(const at::Tensor& rows) {
  return {rows.data_ptr<float>(), rows.stride(0), rows.stride(1), rows.stride(2)};
}

}  // namespace routing
