// attend by the fused kernels of routing/kernels/attend/attend.h: float32 on the CPU. Bits do not depend on the number
// of threads. q, k and v may be transposed views; results and gradients take over their memory order. Where
// attend_keeps_halves(), all three may be BFloat16, rounded before (ops/attend/head_tensors.h), with the same bits in
// all results, which are Float.
#pragma once

#include "routing/ops/attend/attend_reference.h"

namespace routing {

// Do the fused kernels take vectors of this type, on this device?
bool can_attend_fused(const at::Tensor& q);

AttendResult attend_fused_forward(const AttendInputs& inputs, const PlanTensors& plan, const AttendOptions& options);

// Where inputs.k is the very tensor inputs.q, the gradient of k is added to that of q and .k is left undefined: one
// tensor less to write, and autograd has nothing to add up.
// Recomputes the probabilities from q, k and the saved result instead of keeping them.
AttendGradients attend_fused_backward(const AttendResult& gradient, const AttendResult& saved,
                                      const AttendInputs& inputs, const PlanTensors& plan,
                                      const AttendOptions& options);

}  // namespace routing
