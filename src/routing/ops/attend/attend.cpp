#include "routing/ops/attend/attend.h"

#include "routing/core/error.h"
#include "routing/kernels/attend/attend.h"
#include "routing/ops/attend/attend_fused.h"
#include "routing/ops/attend/attend_reference.h"
#include "routing/ops/attend/head_tensors.h"
#include "routing/ops/one_derivative.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace routing {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;
using OptionalInt = c10::optional<std::int64_t>;

// The schema cannot hold a Plan, so this is the plan and the options as the operator takes them, in its order.
struct FlatCall {
  at::Tensor q, k, v;
  Plan plan;
  AttendOptions options;
};

// Neither can it hold a seal. attend() leaves that of its plan here for the implementation it calls, on this thread;
// for tensors that are not those of the seal it is worth nothing.
thread_local std::shared_ptr<const PlanSeal> seal_of_call;

class SealOfCall {
 public:
  explicit SealOfCall(std::shared_ptr<const PlanSeal> seal) : before_(std::exchange(seal_of_call, std::move(seal))) {}
  ~SealOfCall() { seal_of_call = std::move(before_); }
  SealOfCall(const SealOfCall&) = delete;
  SealOfCall& operator=(const SealOfCall&) = delete;

 private:
  std::shared_ptr<const PlanSeal> before_;
};

// Autograd and the dispatcher take an absent tensor as an empty optional; an undefined one has no device to ask for.
OptionalTensor if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : c10::nullopt;
}

void check_rows(const at::Tensor& tensor, const char* name, std::int64_t tokens, const Plan& plan,
                const at::Tensor& q) {
  require<InputError>(tensor.dim() == 4, "attend: ", name, " has ", tensor.dim(),
                      " dimensions, but must be [batch, heads, tokens, dim]");
  require<InputError>(tensor.size(0) == plan.batch && tensor.size(1) == plan.heads && tensor.size(2) == tokens,
                      "attend: ", name, " is ", tensor.sizes(), ", but the plan is for [", plan.batch, ", ", plan.heads,
                      ", ", tokens, ", dim]");
  require<InputError>(tensor.scalar_type() == q.scalar_type() && tensor.device() == q.device(), "attend: ", name,
                      " is ", tensor.scalar_type(), " on ", tensor.device().str(), ", but q is ", q.scalar_type(),
                      " on ", q.device().str());
}

void check_table(const at::Tensor& table, const char* name, std::int64_t dim, const at::Tensor& q) {
  if (!table.defined()) return;
  require<InputError>(table.dim() == 2 && table.size(0) % 2 == 1 && table.size(1) == dim, "attend: ", name, " is ",
                      table.sizes(), ", but must be [2 * max + 1, ", dim, "]");
  require<InputError>(table.scalar_type() == q.scalar_type() && table.device() == q.device(), "attend: ", name, " is ",
                      table.scalar_type(), " on ", table.device().str(), ", but q is ", q.scalar_type(), " on ",
                      q.device().str());
}

void check_recency(const at::Tensor& slopes, const FlatCall& call) {
  if (!slopes.defined()) return;
  require<InputError>(slopes.dim() == 1 && slopes.size(0) == call.plan.heads, "attend: recency is ", slopes.sizes(),
                      ", but must hold one slope for each of ", call.plan.heads, " heads");
  require<InputError>(slopes.scalar_type() == call.q.scalar_type() && slopes.device() == call.q.device(),
                      "attend: recency is ", slopes.scalar_type(), " on ", slopes.device().str(), ", but q is ",
                      call.q.scalar_type(), " on ", call.q.device().str());
  require<InputError>(!slopes.requires_grad(),
                      "attend: recency asks for a gradient, but slopes are taken as given; detach them");
  if (!slopes.is_cpu()) return;  // reading them elsewhere would have to wait for the device
  const at::Tensor numbers = slopes.to(at::kDouble).contiguous();
  for (std::int64_t head = 0; head < call.plan.heads; ++head) {
    const double slope = numbers.data_ptr<double>()[head];
    require<InputError>(std::isfinite(slope) && slope >= 0.0, "attend: the slope of recency of head ", head, " is ",
                        slope, ", but it must be finite and not below 0");
  }
}

void check_call(const FlatCall& call) {
  check_plan(call.plan);
  check_rows(call.q, "q", call.plan.num_queries, call.plan, call.q);
  check_rows(call.k, "k", call.plan.num_keys, call.plan, call.q);
  check_rows(call.v, "v", call.plan.num_keys, call.plan, call.q);
  require<InputError>(!call.k.is_same(call.q) || !call.plan.key_rows.defined(),
                      "attend: k is q, but the plan says that keys stand elsewhere than queries");
  require<InputError>(!call.k.is_same(call.q) || call.plan.query_origin == call.plan.key_origin,
                      "attend: k is q, but rows of queries begin at position ", call.plan.query_origin,
                      " and those of keys at ", call.plan.key_origin);
  require<InputError>(call.q.scalar_type() == at::kFloat || call.q.scalar_type() == at::kDouble, "attend: q holds ",
                      call.q.scalar_type(), ", but must hold Float or Double");
  require<InputError>(call.q.size(3) == call.k.size(3), "attend: q has ", call.q.size(3), " dimensions per head and k ",
                      call.k.size(3), "; they must agree");
  const AttendOptions& options = call.options;
  const bool has_table = options.relative_key.defined() || options.relative_value.defined();
  require<InputError>(has_table == (options.relative != RelativePosition::none), "attend: relative is ",
                      to_string(options.relative), " and ", has_table ? "a table was" : "no table was",
                      " given; give at least one table exactly when relative is not none");
  check_table(options.relative_key, "relative_key", call.q.size(3), call.q);
  check_table(options.relative_value, "relative_value", call.v.size(3), call.q);
  if (options.relative_key.defined() && options.relative_value.defined()) {
    require<InputError>(options.relative_key.size(0) == options.relative_value.size(0), "attend: relative_key has ",
                        options.relative_key.size(0), " rows and relative_value ", options.relative_value.size(0),
                        "; they must agree");
  }
  check_recency(options.recency, call);
  require<InputError>(options.merge_eps >= 0.0, "attend: merge_eps is ", options.merge_eps,
                      ", but must not be below 0");
  require<InputError>(options.dropout.probability >= 0.0 && options.dropout.probability < 1.0,
                      "attend: dropout probability is ", options.dropout.probability,
                      ", but must be at least 0 and below 1");
  const at::Tensor& ids = options.dropout.sample_ids;
  require<InputError>(
      !ids.defined() || (ids.dim() == 1 && ids.size(0) == call.plan.batch && ids.scalar_type() == at::kLong),
      "attend: sample_ids must be int64 [", call.plan.batch, "]");
}

// Shapes only on the meta device, where models are built to be measured.
AttendResult compute_forward(const FlatCall& call) {
  const AttendInputs inputs{call.q, call.k, call.v};
  if (can_attend_fused(call.q)) return attend_fused_forward(inputs, call.plan, call.options);
  if (!call.q.is_meta()) return attend_reference_forward(inputs, call.plan, call.options);
  const Plan& plan = call.plan;
  return {at::empty({plan.batch, plan.heads, plan.num_queries, call.v.size(3)}, call.q.options()),
          at::empty({plan.batch, plan.heads, plan.num_queries}, call.q.options())};
}

class AttendFunction : public torch::autograd::Function<AttendFunction> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& q,
                                                const at::Tensor& k, const at::Tensor& v,
                                                const OptionalTensor& /*relative_key*/,
                                                const OptionalTensor& /*relative_value*/, const FlatCall& call) {
    // The kernels round rows when they read them, here and in the backward pass: so they may be kept rounded, and read
    // so.
    const bool halves = can_attend_fused(q) && attend_keeps_halves(call.options.precision);
    const bool shared = call.k.is_same(call.q);
    AttendInputs rows{q, k, v};
    if (halves) {
      rows.q = rounded_heads(q);
      rows.k = shared ? rows.q : rounded_heads(k);
      rows.v = rounded_heads(v);
    }
    const AttendResult result = halves ? attend_fused_forward(rows, call.plan, call.options) : compute_forward(call);
    context->save_for_backward({rows.q, shared ? at::Tensor() : rows.k, rows.v, call.options.relative_key,
                                call.options.relative_value, result.output, result.lse, call.options.dropout.sample_ids,
                                call.options.recency});
    context->saved_data["plan"] = c10::IValue::make_capsule(c10::make_intrusive<SavedCall>(call));
    return {result.output, result.lse};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("attend");
    const auto saved = context->get_saved_variables();
    const auto capsule = context->saved_data["plan"].toCapsule();
    const auto& rest = static_cast<const SavedCall&>(*capsule);
    const AttendResult result{saved[5], saved[6]};
    AttendResult gradient{gradients[0], gradients[1]};
    if (!gradient.output.defined()) gradient.output = at::zeros_like(result.output);
    if (!gradient.lse.defined()) gradient.lse = at::zeros_like(result.lse);
    AttendOptions options = rest.options;
    options.relative_key = saved[3];
    options.relative_value = saved[4];
    options.dropout.sample_ids = saved[7];
    options.recency = saved[8];
    AttendInputs inputs{saved[0], saved[1], saved[2]};
    if (rest.shared) inputs.k = inputs.q;
    const AttendGradients d = can_attend_fused(inputs.q)
                                  ? attend_fused_backward(gradient, result, inputs, rest.plan, options)
                                  : attend_reference_backward(gradient, result, inputs, rest.plan, options);
    return {d.q, d.k, d.v, d.relative_key, d.relative_value, at::Tensor()};
  }

 private:
  // What backward needs beside the saved tensors. Holds no tensor that could hold the graph alive.
  struct SavedCall : torch::CustomClassHolder {
    explicit SavedCall(const FlatCall& call) : plan(call.plan), options(call.options), shared(call.k.is_same(call.q)) {
      options.relative_key = options.relative_value = options.dropout.sample_ids = options.recency = at::Tensor();
    }
    Plan plan;
    AttendOptions options;
    bool shared = false;  // k is the very tensor q
  };
};

FlatCall unflatten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& query_order,
                   const at::Tensor& key_order, const at::Tensor& groups, const at::Tensor& unit_offsets,
                   const at::Tensor& member_offsets, const at::Tensor& member_group, const at::Tensor& member_rank,
                   OptionalInt lookback, OptionalInt lookahead, bool causal, c10::string_view self, double scale,
                   c10::string_view merge, double merge_eps, c10::string_view relative,
                   const OptionalTensor& relative_key, const OptionalTensor& relative_value, double dropout,
                   std::int64_t dropout_key, const OptionalTensor& sample_ids, bool bf16, const OptionalTensor& recency,
                   c10::string_view repeats, std::int64_t query_origin, std::int64_t key_origin,
                   const OptionalTensor& key_rows) {
  const auto word = [](c10::string_view text) { return std::string_view(text.data(), text.size()); };
  const auto number = [](OptionalInt value) { return value ? std::optional(*value) : std::nullopt; };
  require<InputError>(q.dim() == 4 && k.dim() == 4, "attend: q has ", q.dim(), " dimensions and k ", k.dim(),
                      ", but both must be [batch, heads, tokens, dim]");
  FlatCall call;
  call.q = q;
  call.k = k;
  call.v = v;
  call.plan = {.batch = q.size(0),
               .heads = q.size(1),
               .num_queries = q.size(2),
               .num_keys = k.size(2),
               .query_order = query_order,
               .key_order = key_order,
               .groups = groups,
               .unit_offsets = unit_offsets,
               .query_index = {member_offsets, member_group, member_rank},
               .rules = {.lookback = number(lookback),
                         .lookahead = number(lookahead),
                         .causal = causal,
                         .self = parse_word<SelfRule>(word(self), "self"),
                         .repeats = parse_word<RepeatRule>(word(repeats), "repeats")},
               .query_origin = query_origin,
               .key_origin = key_origin,
               .key_rows = key_rows.value_or(at::Tensor()),
               .seal = seal_of_call};
  call.options = {.scale = scale,
                  .merge = parse_word<Merge>(word(merge), "merge"),
                  .merge_eps = merge_eps,
                  .relative = parse_word<RelativePosition>(word(relative), "relative"),
                  .relative_key = relative_key.value_or(at::Tensor()),
                  .relative_value = relative_value.value_or(at::Tensor()),
                  .recency = recency.value_or(at::Tensor()),
                  .dropout = {.probability = dropout,
                              .key = std::bit_cast<std::uint64_t>(dropout_key),
                              .sample_ids = sample_ids.value_or(at::Tensor())},
                  .precision = bf16 ? MatmulPrecision::bf16 : MatmulPrecision::fp32};
  return call;
}

template <class... Arguments>
std::tuple<at::Tensor, at::Tensor> attend_autograd(Arguments... arguments) {
  const FlatCall call = unflatten(arguments...);
  check_call(call);
  const auto results = AttendFunction::apply(call.q, call.k, call.v, if_defined(call.options.relative_key),
                                             if_defined(call.options.relative_value), call);
  return {results[0], results[1]};
}

template <class... Arguments>
std::tuple<at::Tensor, at::Tensor> attend_forward(Arguments... arguments) {
  const FlatCall call = unflatten(arguments...);
  check_call(call);
  const AttendResult result = compute_forward(call);
  return {result.output, result.lse};
}

using AttendSignature = std::tuple<at::Tensor, at::Tensor>(
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, OptionalInt, OptionalInt, bool,
    c10::string_view, double, c10::string_view, double, c10::string_view, const OptionalTensor&, const OptionalTensor&,
    double, std::int64_t, const OptionalTensor&, bool, const OptionalTensor&, c10::string_view, std::int64_t,
    std::int64_t, const OptionalTensor&);

// Chooses the instance of one of the templates above that has the operator's signature.
template <class Signature>
struct Implementations;
template <class Result, class... Arguments>
struct Implementations<Result(Arguments...)> {
  static Result autograd(Arguments... arguments) { return attend_autograd<Arguments...>(arguments...); }
  static Result forward(Arguments... arguments) { return attend_forward<Arguments...>(arguments...); }
};
using Attend = Implementations<AttendSignature>;

TORCH_LIBRARY(routing, library) {
  library.def(
      "attend(Tensor q, Tensor k, Tensor v, Tensor query_order, Tensor key_order, Tensor groups, Tensor unit_offsets, "
      "Tensor member_offsets, Tensor member_group, Tensor member_rank, int? lookback, int? lookahead, bool causal, "
      "str self, float scale, str merge, float merge_eps, str relative, Tensor? relative_key, Tensor? relative_value, "
      "float dropout, int dropout_key, Tensor? sample_ids, bool bf16=False, Tensor? recency=None, "
      "str repeats='every_time', int query_origin=0, int key_origin=0, Tensor? key_rows=None) -> "
      "(Tensor output, Tensor lse)");
}

TORCH_LIBRARY_IMPL(routing, Autograd, library) {
  library.impl("attend", Attend::autograd);
}
// Every backend, meta included, below autograd.
TORCH_LIBRARY_IMPL(routing, CompositeExplicitAutograd, library) {
  library.impl("attend", Attend::forward);
}

}  // namespace

AttendResult attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Plan& plan,
                    const AttendOptions& options) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("routing::attend", "").typed<AttendSignature>();
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? OptionalInt(*value) : OptionalInt();
  };
  const auto word = [](std::string_view text) { return c10::string_view(text.data(), text.size()); };
  const SealOfCall hand_over(plan.seal);
  const auto [output, lse] = op.call(
      q, k, v, plan.query_order, plan.key_order, plan.groups, plan.unit_offsets, plan.query_index.offsets,
      plan.query_index.group, plan.query_index.rank, number(plan.rules.lookback), number(plan.rules.lookahead),
      plan.rules.causal, word(to_string(plan.rules.self)), options.scale, word(to_string(options.merge)),
      options.merge_eps, word(to_string(options.relative)), if_defined(options.relative_key),
      if_defined(options.relative_value), options.dropout.probability, std::bit_cast<std::int64_t>(options.dropout.key),
      if_defined(options.dropout.sample_ids), options.precision == MatmulPrecision::bf16, if_defined(options.recency),
      word(to_string(plan.rules.repeats)), plan.query_origin, plan.key_origin, if_defined(plan.key_rows));
  return {output, lse};
}

bool attend_keeps_halves(MatmulPrecision precision) {
  return precision == MatmulPrecision::bf16 && kernels::attend_rounds_to_bfloat16();
}

}  // namespace routing
