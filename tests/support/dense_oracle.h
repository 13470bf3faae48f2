// attend again, the dense way: n x n matrices, autograd through plain tensor operations, and nothing shared with ops/
// but the definition. Only Plan::to_dense_counts() and to_dense_masks() say what is visible.
#pragma once

#include "routing/ops/attend/attend.h"
#include "routing/ops/attend/plan.h"

namespace routing::support {

AttendResult dense_attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Plan& plan,
                          const AttendOptions& options);

}  // namespace routing::support
