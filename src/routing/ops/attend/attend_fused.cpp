#include "routing/ops/attend/attend_fused.h"

#include "routing/core/error.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/attend/attention_dropout.h"
#include "routing/ops/attend/head_tensors.h"
#include "routing/ops/attend/visibility.h"

#include <bit>
#include <memory>
#include <mutex>
#include <vector>

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

// A call as the kernels take it, and what its pointers point to. The only one who calls them.
class FusedCall {
 public:
  FusedCall(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options)
      : FusedCall(options, inputs.q.size(3), inputs.v.size(3)) {
    views_ = shared_views(plan);
    problem_.plan = kernel_plan(plan, *views_);
    if (options.dropout.probability > 0.0) {
      const at::Tensor keys = dropout_unit_keys(options.dropout, plan.batch, plan.heads);
      for (std::int64_t unit = 0; unit < plan.num_units(); ++unit) {
        unit_keys_.push_back(std::bit_cast<std::uint64_t>(keys.data_ptr<std::int64_t>()[unit]));
      }
      problem_.rules.dropout_unit_keys = unit_keys_.data();
    }
    q_ = with_adjacent_numbers(inputs.q);
    k_ = with_adjacent_numbers(inputs.k);
    v_ = with_adjacent_numbers(inputs.v);
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

  FusedCall(const at::Tensor& q, const KeptRows& kept, const KeptPlan& plan, const AttendOptions& options)
      : FusedCall(options, kept.key_dim, kept.rows.size(1) - kept.key_dim) {
    problem_.plan = kernel_plan(plan);
    problem_.rules.packed_tables = kept.tables.packed(problem_.rules);
    problem_.q = read_rows(q);
    // All units read one store.
    const std::int64_t stride = kept.rows.size(1);
    if (kept.rows.scalar_type() == at::kBFloat16) {
      require<InputError>(attend_keeps_halves(options.precision),
                          "keys are kept in bfloat16, but attention reads float32 with this precision and instruction "
                          "set; make the cache for it");
      const auto* const halves = reinterpret_cast<const std::uint16_t*>(kept.rows.data_ptr<at::BFloat16>());
      problem_.k_halves = {.data = halves, .row_stride = stride};
      problem_.v_halves = {.data = halves + kept.key_dim, .row_stride = stride};
    } else {
      const auto* const floats = kept.rows.data_ptr<float>();
      problem_.k = {.data = floats, .row_stride = stride};
      problem_.v = {.data = floats + kept.key_dim, .row_stride = stride};
    }
  }

  // [batch, heads, queries, value_dim]; in memory like v, whose heads stand inside or outside its tokens.
  at::Tensor empty_output() const {
    const kernels::AttendPlan& plan = problem_.plan;
    const auto options = v_.options().dtype(at::kFloat);
    if (v_.is_contiguous()) return at::empty({plan.batch, plan.heads, plan.num_queries, v_.size(3)}, options);
    return at::empty({plan.batch, plan.num_queries, plan.heads, v_.size(3)}, options).transpose(1, 2);
  }
  void forward(const kernels::HeadRows<float>& output, float* lse) const {
    kernels::attend_forward(problem_, output, lse);
  }
  void backward(const kernels::AttendBackward& call) const { kernels::attend_backward(problem_, call); }

 private:
  FusedCall(const AttendOptions& options, std::int64_t dim, std::int64_t value_dim)
      : relative_key_(contiguous_or_absent(options.relative_key)),
        relative_value_(contiguous_or_absent(options.relative_value)),
        recency_(contiguous_or_absent(options.recency)) {
    const at::Tensor& table = relative_key_.defined() ? relative_key_ : relative_value_;
    problem_.rules = {.dim = dim,
                      .value_dim = value_dim,
                      .scale = options.scale,
                      .merge = options.merge,
                      .merge_eps = options.merge_eps,
                      .relative = options.relative,
                      .max_relative = table.defined() ? (table.size(0) - 1) / 2 : 0,
                      .relative_key = numbers_or_null(relative_key_),
                      .relative_value = numbers_or_null(relative_value_),
                      .recency_slopes = numbers_or_null(recency_),
                      .dropout = options.dropout.probability,
                      .bf16 = options.precision == MatmulPrecision::bf16};
  }

  at::Tensor relative_key_, relative_value_, recency_;
  std::shared_ptr<const PlanViews> views_;
  at::Tensor q_, k_, v_;
  std::vector<std::uint64_t> unit_keys_;
  kernels::AttendProblem problem_;
};

}  // namespace

bool can_attend_fused(const at::Tensor& q) {
  return (q.scalar_type() == at::kFloat || q.scalar_type() == at::kBFloat16) && q.is_cpu();
}

AttendResult attend_fused_forward(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options) {
  const at::NoGradGuard no_gradient;
  const FusedCall call(inputs, plan, options);
  AttendResult result{call.empty_output(),
                      at::empty({plan.batch, plan.heads, plan.num_queries}, inputs.q.options().dtype(at::kFloat))};
  call.forward(written_rows(result.output), result.lse.data_ptr<float>());
  return result;
}

AttendGradients attend_fused_backward(const AttendResult& gradient, const AttendResult& saved,
                                      const AttendInputs& inputs, const Plan& plan, const AttendOptions& options) {
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
  call.backward(backward);
  return d;
}

const kernels::PackedTables* KeptTables::packed(const kernels::AttendRules& rules) {
  if (rules.relative_key == nullptr && rules.relative_value == nullptr) return nullptr;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const kernels::Isa level = kernels::active_isa();
  if (!tables_ || level_ != level || bf16_ != rules.bf16) {
    tables_.emplace(rules);
    level_ = level;
    bf16_ = rules.bf16;
  }
  return &*tables_;
}

void attend_kept(const at::Tensor& q, const KeptRows& kept, const KeptPlan& plan, const AttendOptions& options,
                 const kernels::HeadRows<float>& output) {
  std::vector<float> lse(static_cast<std::size_t>(plan.batch * plan.heads * plan.num_queries));
  FusedCall(q, kept, plan, options).forward(output, lse.data());
}

}  // namespace routing
