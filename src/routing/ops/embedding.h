// Looking up rows of a table, differentiable.
#pragma once

#include <ATen/ATen.h>

namespace routing {

// ids int64 of any shape, table [rows, width] float or double -> [..., width]. Differentiable once in the table; on the
// CPU a row's gradient is summed in the order of positions, whatever the number of threads. An id outside the table
// is an InputError. Call it as routing::embedding: by its arguments' types, at::embedding is a candidate too.
at::Tensor embedding(const at::Tensor& ids, const at::Tensor& table);

}  // namespace routing
