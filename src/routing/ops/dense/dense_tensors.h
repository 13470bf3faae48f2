// Tensors as the products of kernels/dense/dense.h take them. For operations that call these kernels.
#pragma once

#include "routing/kernels/dense/dense.h"
#include "routing/ops/precision.h"

#include <ATen/ATen.h>

namespace routing {

inline bool takes_dense_kernels(const at::Tensor& input) {
  return input.device().is_cpu() && input.scalar_type() == at::kFloat;
}

inline kernels::DenseType dense_type(MatmulPrecision precision) {
  return precision == MatmulPrecision::bf16 ? kernels::DenseType::bf16 : kernels::DenseType::fp32;
}

// Float or BFloat16, contiguous; none for an undefined tensor.
kernels::DenseRows dense_rows(const at::Tensor& rows);

// Rows as products multiply them, to be read several times or kept: with bf16, BFloat16 in half of the bytes, which
// products would round them to anyway; else the rows themselves. rows: Float, contiguous.
at::Tensor rows_as_multiplied(const at::Tensor& rows, MatmulPrecision precision);

// count numbers, on all threads.
void round_rows(const float* rows, std::int64_t count, at::BFloat16* rounded);

}  // namespace routing
