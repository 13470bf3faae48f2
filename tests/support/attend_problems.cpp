#include "support/attend_problems.h"

#include "routing/attention/plan/plan_builder.h"
#include "routing/core/hash.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

namespace routing::support {
namespace {

Level level_under_test;

// Of the largest number of a tensor. Probabilities and their gradients are rounded to 8 bits, and so are sums of them.
double tolerance() {
  return level_under_test.rounds() ? 3.5e-2 : 2e-5;
}
// Of the root mean square of a tensor.
double mean_tolerance() {
  return level_under_test.rounds() ? 2.5e-2 : 2e-5;
}

// What the kernels make of an input, so that the reference can start from the same numbers.
at::Tensor as_read(const at::Tensor& x) {
  return level_under_test.rounds() ? x.to(at::kBFloat16).to(at::kFloat) : x.to(at::kFloat);
}

// Of all that the reference reads.
std::uint64_t hash_of(const AttendProblem& problem) {
  XxHash64 hash;
  const auto add = [&](const auto& value) { hash.update(std::as_bytes(std::span(&value, 1))); };
  const AttendOptions& options = problem.options;
  const Plan& plan = problem.plan;
  for (const at::Tensor& tensor :
       {problem.inputs.q, problem.inputs.k, problem.inputs.v, problem.gradient.output, problem.gradient.lse,
        options.relative_key, options.relative_value, options.recency, options.dropout.sample_ids, plan.query_order,
        plan.key_order, plan.groups, plan.unit_offsets}) {
    add(tensor.defined() ? tensor.dim() : -1);
    if (!tensor.defined()) continue;
    for (const std::int64_t size : tensor.sizes()) add(size);
    const at::Tensor row = tensor.contiguous();
    hash.update({static_cast<const std::byte*>(row.data_ptr()), row.nbytes()});
  }
  for (const double number : {options.scale, options.merge_eps, options.dropout.probability}) add(number);
  for (const std::int64_t number :
       {plan.rules.lookback.value_or(-1), plan.rules.lookahead.value_or(-1),
        static_cast<std::int64_t>(plan.rules.causal), static_cast<std::int64_t>(plan.rules.self),
        static_cast<std::int64_t>(plan.rules.repeats), static_cast<std::int64_t>(options.merge),
        static_cast<std::int64_t>(options.relative)}) {
    add(number);
  }
  add(options.dropout.key);
  return hash.digest();
}

Everything compute_reference(const AttendProblem& problem) {
  const auto wide = [](const at::Tensor& x) { return x.defined() ? x.to(at::kDouble) : x; };
  AttendOptions options = problem.options;
  options.relative_key = wide(options.relative_key);
  options.relative_value = wide(options.relative_value);
  options.recency = wide(options.recency);
  const AttendInputs inputs{wide(problem.inputs.q), wide(problem.inputs.k), wide(problem.inputs.v)};
  Everything all;
  all.result = attend_reference_forward(inputs, problem.plan, options);
  all.d = attend_reference_backward({wide(problem.gradient.output), wide(problem.gradient.lse)}, all.result, inputs,
                                    problem.plan, options);
  return all;
}
}  // namespace

LevelUnderTest::LevelUnderTest(Level level) : before_(kernels::active_isa()) {
  level_under_test = level;
  kernels::set_active_isa(level.isa);
}
LevelUnderTest::~LevelUnderTest() {
  level_under_test = {};
  kernels::set_active_isa(before_);
}

std::vector<at::Tensor> Everything::tensors() const {
  std::vector<at::Tensor> all{result.output, result.lse, d.q, d.k, d.v};
  if (d.relative_key.defined()) all.push_back(d.relative_key);
  if (d.relative_value.defined()) all.push_back(d.relative_value);
  return all;
}

AttendProblem make_problem(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options) {
  AttendProblem problem{{as_read(inputs.q), as_read(inputs.k), as_read(inputs.v)}, plan, options, {}};
  problem.options.precision = level_under_test.precision;
  problem.gradient.output = as_read(random_tensor({plan.batch, plan.heads, plan.num_queries, inputs.v.size(3)}, 31));
  problem.gradient.lse = random_tensor({plan.batch, plan.heads, plan.num_queries}, 32, at::kFloat);
  return problem;
}

void add_tables(AttendProblem& problem, RelativePosition relative, std::int64_t max) {
  problem.options.relative = relative;
  problem.options.relative_key = problem.options.relative_value = at::Tensor();
  if (relative == RelativePosition::none) return;
  problem.options.relative_key = as_read(random_tensor({2 * max + 1, problem.inputs.q.size(3)}, 41));
  problem.options.relative_value = as_read(random_tensor({2 * max + 1, problem.inputs.v.size(3)}, 42));
}

void add_recency(AttendProblem& problem) {
  problem.options.recency = at::tensor({0.4F, 0.03F}).narrow(0, 0, problem.plan.heads);
}

Everything run_fused(const AttendProblem& problem) {
  Everything all;
  all.result = attend_fused_forward(problem.inputs, problem.plan, problem.options);
  all.d = attend_fused_backward(problem.gradient, all.result, problem.inputs, problem.plan, problem.options);
  return all;
}

Everything run_reference(const AttendProblem& problem) {
  static std::string test;
  static std::unordered_map<std::uint64_t, Everything> known;
  // The levels of a test run one after the other; what they share is of no use to the next test.
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  if (const std::string now = name.substr(0, name.find('/')); now != test) {
    known.clear();
    test = now;
  }
  const auto [place, is_new] = known.try_emplace(hash_of(problem));
  if (is_new) place->second = compute_reference(problem);
  return place->second;
}

void expect_close(const Everything& fused, const Everything& reference, const std::string& what, double slack) {
  const auto got = fused.tensors();
  const auto want = reference.tensors();
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    ASSERT_EQ(got[n].sizes(), want[n].sizes()) << what << ", result " << n;
    if (got[n].numel() == 0) continue;
    // Where a query sees nothing both are minus infinity; elsewhere both are finite.
    const at::Tensor finite = want[n].isfinite();
    ASSERT_TRUE(at::equal(got[n].isfinite(), finite)) << what << ", result " << n;
    const at::Tensor wanted = at::where(finite, want[n], 0.0);
    const at::Tensor difference = (at::where(finite, got[n].to(at::kDouble), 0.0) - wanted).abs();
    ASSERT_LE(difference.max().item<double>(), slack * tolerance() * std::max(1.0, wanted.abs().max().item<double>()))
        << what << ", result " << n;
    const auto mean_square = [](const at::Tensor& x) { return x.square().mean().item<double>(); };
    ASSERT_LE(std::sqrt(mean_square(difference)),
              slack * mean_tolerance() * std::max(1.0, std::sqrt(mean_square(wanted))))
        << what << ", result " << n;
  }
}

void expect_same_bits(const Everything& a, const Everything& b, const std::string& what) {
  const auto left = a.tensors();
  const auto right = b.tensors();
  for (std::size_t n = 0; n < left.size(); ++n) ASSERT_TRUE(at::equal(left[n], right[n])) << what << ", result " << n;
}

std::vector<Plan> hand_made_plans(std::int64_t batch, std::int64_t tokens) {
  std::vector<Plan> plans;
  for (const VisibilityRules& rules :
       {VisibilityRules{}, VisibilityRules{.lookback = 20}, VisibilityRules{.lookahead = 3, .causal = false},
        VisibilityRules{.lookback = 9, .self = SelfRule::only_if_alone},
        VisibilityRules{.lookback = 90, .repeats = RepeatRule::once},
        VisibilityRules{.lookback = 20,
        .lookahead = 3,
        .causal = false,
        .self = SelfRule::only_if_alone,
        .repeats = RepeatRule::once}}) {
    PlanBuilder one(self_layout(batch, 2, tokens), rules, PlanBuilder::Lists::one);
    PlanBuilder several(self_layout(batch, 2, tokens), rules, PlanBuilder::Lists::one);
    for (std::int64_t unit = 0; unit < 2 * batch; ++unit) {
      std::vector<std::int32_t> all, odd, thin;
      for (std::int32_t position = 0; position < tokens; ++position) {
        all.push_back(position);
        if (position % 2 == 1) odd.push_back(position);
        if ((position * 7 + static_cast<std::int32_t>(unit)) % 5 == 0 || position > 200) thin.push_back(position);
      }
      const ListRange whole = one.add_queries(all);
      one.add_group(whole, whole);
      one.end_unit();
      for (const auto& members : {odd, {}, thin, odd}) {
        const ListRange range = several.add_queries(members);
        several.add_group(range, range);
      }
      several.end_unit();
    }
    plans.push_back(one.build());
    plans.push_back(several.build());
  }
  return plans;
}

AttendInputs random_inputs(std::int64_t batch, std::int64_t tokens, std::int64_t dim, std::int64_t value_dim) {
  return {random_tensor({batch, 2, tokens, dim}, 1), random_tensor({batch, 2, tokens, dim}, 2),
          random_tensor({batch, 2, tokens, value_dim}, 3)};
}

}  // namespace routing::support
