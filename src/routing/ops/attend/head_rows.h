// What happens to the heads of a layer between its products, differentiable: groups of heads apart and together again,
// queries scaled and keys shifted.
//
// On the CPU in float32 by kernels/pointwise/head_rows.h: on all threads, with bits that do not depend on them, and
// with gradients that are summed where they meet instead of one by one. Double and other devices by the same formulas
// on tensors.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace routing {

// Consecutive heads.
struct HeadRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// rows [batch, heads, tokens, dim] -> one view [batch, count, tokens, dim] per range. Heads in no range, or whose
// result is not used, get a gradient of zero; no head may be in two ranges.
std::vector<at::Tensor> split_head_groups(const at::Tensor& rows, const std::vector<HeadRange>& ranges);

// groups [batch, tokens, heads of the group, dim] -> [batch, tokens, all heads, dim], in their order.
at::Tensor merge_head_groups(const std::vector<at::Tensor>& groups);

// Rows as queries, as keys, and as they are.
struct SharedRows {
  at::Tensor queries;  // times e^log_scale of the head; the rows themselves without log_scale
  at::Tensor keys;     // each at the place of the next token, zeros at place 0; without shift the rows themselves
  at::Tensor rows;
};

// rows [batch, heads, tokens, dim]; log_scale [heads] or undefined.
SharedRows shared_query_key_rows(const at::Tensor& rows, const at::Tensor& log_scale, bool shift);

}  // namespace routing
