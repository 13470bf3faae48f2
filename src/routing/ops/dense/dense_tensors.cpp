#include "routing/ops/dense/dense_tensors.h"

#include "routing/core/parallel.h"
#include "routing/kernels/pointwise/bfloat16.h"

namespace routing {
namespace {

static_assert(sizeof(at::BFloat16) == sizeof(std::uint16_t));

std::uint16_t* bits_of(at::BFloat16* numbers) {
  return reinterpret_cast<std::uint16_t*>(numbers);
}

}  // namespace

kernels::DenseRows dense_rows(const at::Tensor& rows) {
  if (!rows.defined()) return {};
  if (rows.scalar_type() == at::kFloat) return {rows.data_ptr<float>()};
  return kernels::DenseRows(bits_of(rows.data_ptr<at::BFloat16>()));
}

void round_rows(const float* rows, std::int64_t count, at::BFloat16* rounded) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 15U;
  parallel_for(0, count, kGrain, [&](std::int64_t first, std::int64_t last) {
    kernels::to_bfloat16(rows + first, last - first, bits_of(rounded) + first);
  });
}

at::Tensor rows_as_multiplied(const at::Tensor& rows, MatmulPrecision precision) {
  if (precision == MatmulPrecision::fp32) return rows;
  at::Tensor rounded = at::empty(rows.sizes(), rows.options().dtype(at::kBFloat16));
  round_rows(rows.data_ptr<float>(), rows.numel(), rounded.data_ptr<at::BFloat16>());
  return rounded;
}

}  // namespace routing
