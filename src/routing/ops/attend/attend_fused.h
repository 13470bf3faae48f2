// attend by the fused kernels of routing/kernels/attend/attend.h: float32 on the CPU. Nobody else calls them; training,
// evaluation and decoding all attend through here. Bits do not depend on the number of threads.
//
// q, k and v may be transposed views; results and gradients take over their memory order. Where attend_keeps_halves(),
// all three may be BFloat16, rounded before (ops/attend/head_tensors.h), with the same bits in all results, which are
// Float.
#pragma once

#include "routing/kernels/attend/attend.h"
#include "routing/kernels/dispatch/isa.h"
#include "routing/ops/attend/attend_reference.h"
#include "routing/ops/attend/kept_plan.h"

#include <optional>

namespace routing {

// Do the fused kernels take vectors of this type, on this device?
bool can_attend_fused(const at::Tensor& q);

AttendResult attend_fused_forward(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options);

// Where inputs.k is the very tensor inputs.q, the gradient of k is added to that of q and .k is left undefined: one
// tensor less to write, and autograd has nothing to add up.
// Recomputes the probabilities from q, k and the saved result instead of keeping them.
AttendGradients attend_fused_backward(const AttendResult& gradient, const AttendResult& saved,
                                      const AttendInputs& inputs, const Plan& plan, const AttendOptions& options);

// The relative tables of some options as the kernels read them, for a caller that attends with them again and again.
class KeptTables {
 public:
  // Packed at the first call, and again where level or precision have changed; null if there are no tables. Any thread,
  // as long as neither changes.
  const kernels::PackedTables* packed(const kernels::AttendRules& rules);

 private:
  std::optional<kernels::PackedTables> tables_;
  kernels::Isa level_ = kernels::Isa::generic;
  bool bf16_ = false;
};

// What new tokens attend with, kept from call to call.
struct KeptRows {
  // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives inside one call.
  const at::Tensor& rows;  // [rows, key_dim + value_dim], contiguous: keys, and behind each its value
  std::int64_t key_dim;
  KeptTables& tables;  // of the options; they must be the same in every call, but for the precision
  // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
};

// The same over kept rows, with the bits that the whole sequence has at the places of q [batch, heads, queries, dim].
// Writes all rows of output. Decoding waits for every call, so no tensor is made and hardly anything checked. Rows of
// BFloat16 are for options of a precision with attend_keeps_halves(); throws an InputError otherwise.
void attend_kept(const at::Tensor& q, const KeptRows& kept, const KeptPlan& plan, const AttendOptions& options,
                 const kernels::HeadRows<float>& output);

}  // namespace routing
