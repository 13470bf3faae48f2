// Recency (ALiBi): logits of head h of H get -slope_h (i - j), slope_h = 2^(-8 (h + 1) / H).
//
// A query's logits may all be shifted alike without changing its softmax, so slope j is as good: one more column, 1 in
// the queries and slope j / scale in the keys.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

// What the key of head `head` of `heads` at `position` gets; `scale` is that of the logits.
double recency_of_key(std::int64_t head, std::int64_t heads, std::int64_t position, double scale);

// The columns: [1, heads, count, 1] of keys at positions 0 … count - 1, and queries with a 1 behind each.
at::Tensor recency_column(std::int64_t heads, std::int64_t count, double scale, const at::TensorOptions& options);
at::Tensor with_one(const at::Tensor& queries);
// A relative table that adds nothing to the new column; undefined stays so.
at::Tensor with_zero(const at::Tensor& table);

}  // namespace routing
