#include "routing/ops/head_tensors.h"

namespace routing {
namespace {

kernels::HeadRows<std::uint16_t> halves_of(const at::Tensor& rounded) {
  return {reinterpret_cast<std::uint16_t*>(rounded.data_ptr<at::BFloat16>()), rounded.stride(0), rounded.stride(1),
          rounded.stride(2)};
}

}  // namespace

at::Tensor rounded_heads(const at::Tensor& rows) {
  const at::Tensor adjacent = with_adjacent_numbers(rows);
  at::Tensor rounded = empty_heads(adjacent, rows.size(1), at::kBFloat16);
  kernels::round_head_rows(read_rows(adjacent), head_shape(rows), halves_of(rounded));
  return rounded;
}

at::Tensor widened_heads(const at::Tensor& rounded) {
  at::Tensor rows = empty_heads(rounded, rounded.size(1), at::kFloat);
  const kernels::HeadRows<std::uint16_t> from = halves_of(rounded);
  kernels::widen_head_rows({from.data, from.batch_stride, from.head_stride, from.row_stride}, head_shape(rounded),
                           written_rows(rows));
  return rows;
}

}  // namespace routing
