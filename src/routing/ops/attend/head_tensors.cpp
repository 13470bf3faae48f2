#include "routing/ops/attend/head_tensors.h"

namespace routing {

at::Tensor rounded_heads(const at::Tensor& rows) {
  const at::Tensor adjacent = with_adjacent_numbers(rows);
  at::Tensor rounded = empty_heads(adjacent, rows.size(1), at::kBFloat16);
  kernels::round_head_rows(read_rows(adjacent), head_shape(rows),
                           {reinterpret_cast<std::uint16_t*>(rounded.data_ptr<at::BFloat16>()), rounded.stride(0),
                            rounded.stride(1), rounded.stride(2)});
  return rounded;
}

}  // namespace routing
