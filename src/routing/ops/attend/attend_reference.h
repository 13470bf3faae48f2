// attend in plain tensor code: the oracle of the fused kernels, and what runs on devices that have none.
//
// Works on batches of padded tiles (some queries of a group and the keys they see), so that memory stays proportional
// to tokens and no n x n matrix is ever made. Runs on any torch device.
#pragma once

#include "routing/ops/attend/attend.h"

namespace routing {

AttendResult attend_reference_forward(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options);

struct AttendGradients {
  at::Tensor q, k, v;
  at::Tensor relative_key, relative_value;  // undefined where the table is absent
};

// Recomputes the probabilities from q, k and the saved result instead of keeping them.
AttendGradients attend_reference_backward(const AttendResult& gradient, const AttendResult& saved,
                                          const AttendInputs& inputs, const Plan& plan, const AttendOptions& options);

}  // namespace routing
