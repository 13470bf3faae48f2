#include "routing/ops/attend/attend_fused.h"

#include "routing/kernels/attend/attend.h"
#include "routing/ops/attend/attention_dropout.h"
#include "routing/ops/attend/head_tensors.h"
#include "routing/ops/attend/visibility.h"

#include <bit>
#include <memory>

namespace routing {
namespace {

at::Tensor contiguous_or_absent(const at::Tensor& table) {
  return table.defined() ? table.contiguous() : table;
}
const float* numbers_or_null(const at::Tensor& table) {
  return table.defined() ? table.data_ptr<float>() : nullptr;
}

// Float, in the memory order of `like`, so that gradients of transposed projections need no copy.
at::Tensor empty_in_order_of(const at::Tensor& like) {
  const auto options = like.options().dtype(at::kFloat);
  const at::Tensor empty = at::empty_like(like, options, at::MemoryFormat::Preserve);
  return empty.stride(3) == 1 ? empty : at::empty(like.sizes(), options);
}

// A call as the kernels take it, and what its pointers point to.
class FusedCall {
 public:
  FusedCall(const AttendInputs& inputs, const PlanTensors& plan, const AttendOptions& options)
      : plan_(plan),
        views_(shared_views(plan)),
        q_(with_adjacent_numbers(inputs.q)),
        k_(with_adjacent_numbers(inputs.k)),
        v_(with_adjacent_numbers(inputs.v)),
        relative_key_(contiguous_or_absent(options.relative_key)),
        relative_value_(contiguous_or_absent(options.relative_value)),
        recency_(contiguous_or_absent(options.recency)) {
    problem_.plan = kernel_plan(plan, *views_);
    problem_.rules = {.dim = q_.size(3),
                      .value_dim = v_.size(3),
                      .scale = options.scale,
                      .merge = options.merge,
                      .merge_eps = options.merge_eps,
                      .relative = options.relative,
                      .relative_key = numbers_or_null(relative_key_),
                      .relative_value = numbers_or_null(relative_value_),
                      .recency_slopes = numbers_or_null(recency_),
                      .dropout = options.dropout.probability,
                      .bf16 = options.precision == MatmulPrecision::bf16};
    for (const at::Tensor& table : {relative_key_, relative_value_}) {
      if (table.defined()) problem_.rules.max_relative = (table.size(0) - 1) / 2;
    }
    if (options.dropout.probability > 0.0) {
      const at::Tensor keys = dropout_unit_keys(options.dropout, plan.batch, plan.heads);
      for (std::int64_t unit = 0; unit < plan.num_units(); ++unit) {
        unit_keys_.push_back(std::bit_cast<std::uint64_t>(keys.data_ptr<std::int64_t>()[unit]));
      }
      problem_.rules.dropout_unit_keys = unit_keys_.data();
    }
    if (q_.scalar_type() == at::kBFloat16) {
      problem_.q_halves = read_halves(q_);
      problem_.k_halves = read_halves(k_);
      problem_.v_halves = read_halves(v_);
    } else {
      problem_.q = read_rows(q_);
      problem_.k = read_rows(k_);
      problem_.v = read_rows(v_);
    }
  }

  const kernels::AttendProblem& problem() const { return problem_; }
  // [batch, heads, queries, value_dim]; in memory like v, whose heads stand inside or outside its tokens.
  at::Tensor empty_output() const {
    const std::int64_t value_dim = v_.size(3);
    const auto options = v_.options().dtype(at::kFloat);
    if (v_.is_contiguous()) return at::empty({plan_.batch, plan_.heads, plan_.num_queries, value_dim}, options);
    return at::empty({plan_.batch, plan_.num_queries, plan_.heads, value_dim}, options).transpose(1, 2);
  }

 private:
  PlanTensors plan_;
  std::shared_ptr<const PlanViews> views_;
  at::Tensor q_, k_, v_, relative_key_, relative_value_, recency_;
  std::vector<std::uint64_t> unit_keys_;
  kernels::AttendProblem problem_;
};

}  // namespace

bool can_attend_fused(const at::Tensor& q) {
  return (q.scalar_type() == at::kFloat || q.scalar_type() == at::kBFloat16) && q.is_cpu();
}

AttendResult attend_fused_forward(const AttendInputs& inputs, const PlanTensors& plan, const AttendOptions& options) {
  const at::NoGradGuard no_gradient;
  const FusedCall call(inputs, plan, options);
  AttendResult result{call.empty_output(),
                      at::empty({plan.batch, plan.heads, plan.num_queries}, inputs.q.options().dtype(at::kFloat))};
  kernels::attend_forward(call.problem(), written_rows(result.output), result.lse.data_ptr<float>());
  return result;
}

AttendGradients attend_fused_backward(const AttendResult& gradient, const AttendResult& saved,
                                      const AttendInputs& inputs, const PlanTensors& plan,
                                      const AttendOptions& options) {
  const at::NoGradGuard no_gradient;
  const FusedCall call(inputs, plan, options);
  const at::Tensor output = with_adjacent_numbers(saved.output);
  const at::Tensor d_output = with_adjacent_numbers(gradient.output);
  const at::Tensor lse = saved.lse.contiguous();
  const at::Tensor d_lse = gradient.lse.contiguous();
  AttendGradients d{.q = empty_in_order_of(inputs.q),
                    .k = {},
                    .v = empty_in_order_of(inputs.v),
                    .relative_key = {},
                    .relative_value = {}};
  const bool shared = inputs.k.is_same(inputs.q);
  if (!shared) d.k = empty_in_order_of(inputs.k);
  kernels::AttendBackward backward{.output = read_rows(output),
                                   .lse = lse.data_ptr<float>(),
                                   .d_output = read_rows(d_output),
                                   .d_lse = d_lse.data_ptr<float>(),
                                   .dq = written_rows(d.q),
                                   .dk = written_rows(shared ? d.q : d.k),
                                   .dv = written_rows(d.v)};
  if (options.relative_key.defined()) {
    d.relative_key = at::zeros(options.relative_key.sizes(), options.relative_key.options());
    backward.d_relative_key = d.relative_key.data_ptr<float>();
  }
  if (options.relative_value.defined()) {
    d.relative_value = at::zeros(options.relative_value.sizes(), options.relative_value.options());
    backward.d_relative_value = d.relative_value.data_ptr<float>();
  }
  kernels::attend_backward(call.problem(), backward);
  return d;
}

}  // namespace routing
