// Tokens that leave a memory, compressed (Rae et al. 2020, Compressive Transformer): `rate` neighbours become one row.
//
//   mean, max    of each number over the neighbours
//   convolution  W [x_1; …; x_rate], with kernel and stride `rate` and no bias; W starts as the mean
//   most_used    of all rows given, one in `rate`: those that attention read most, in their order
#pragma once

#include "routing/config/experiment.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

// [width, rate * width]: every row of the first W is 1 / rate at its own number of each neighbour.
at::Tensor initial_compression(std::int64_t width, std::int64_t rate, const at::TensorOptions& options);

// What a compression reads beside the rows.
struct CompressionInputs {
  at::Tensor weight = {};  // of a convolution
  at::Tensor usage = {};   // [streams, rows], for most_used: how much attention each row got. Ties go to earlier rows.
};

// rows [streams, k * memory.rate, width] -> [streams, k, width].
at::Tensor compressed_rows(const at::Tensor& rows, const MemoryConfig& memory, const CompressionInputs& inputs);

}  // namespace routing
