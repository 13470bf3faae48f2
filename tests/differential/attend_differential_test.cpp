// attend over random plans, three ways: fused at every level of instructions, reference, dense matrices; forward and
// backward.
#include "differential/seeds.h"
#include "routing/attention/plan/plan_builder.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/isa.h"
#include "support/attend_problems.h"
#include "support/dense_oracle.h"
#include "support/pattern_cases.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <sstream>

namespace routing::attend_differential_test {
namespace {

using differential::Draws;
using differential::for_each_seed;
using kernels::Isa;
using support::AttendProblem;
using support::expect_close;
using support::expect_same_bits;
using support::Level;
using support::make_problem;
using support::random_tensor;
using support::run_fused;
using support::run_reference;

struct Sizes {
  std::int64_t batch, heads, tokens, dim, value_dim;
};

Sizes random_sizes(Draws& draws, std::int64_t most_tokens) {
  const std::vector<std::int64_t> edges{1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65};
  const auto size = [&](std::int64_t most) {
    return std::min(most, draws.chance(0.4) ? draws.one_of(edges) : draws.between(1, most));
  };
  return {.batch = draws.between(1, 2),
          .heads = draws.between(1, 3),
          .tokens = size(most_tokens),
          .dim = size(80),
          .value_dim = size(80)};
}

VisibilityRules random_rules(Draws& draws) {
  VisibilityRules rules;
  rules.causal = draws.chance(0.6);
  if (draws.chance(0.5)) rules.lookback = draws.between(0, 100);
  if (!rules.causal && draws.chance(0.5)) rules.lookahead = draws.between(0, 20);
  rules.self = draws.one_of<SelfRule>({SelfRule::allowed, SelfRule::only_if_alone, SelfRule::only_if_alone_in_group});
  rules.repeats = draws.one_of<RepeatRule>({RepeatRule::every_time, RepeatRule::once});
  return rules;
}

// None, one, few, many or all of them.
std::vector<std::int32_t> random_members(Draws& draws, std::int64_t tokens) {
  const double share = draws.one_of<double>({0.0, 0.02, 0.2, 0.6, 1.0, 1.0});
  std::vector<std::int32_t> members;
  for (std::int32_t token = 0; token < tokens; ++token) {
    if (share == 1.0 || draws.chance(share)) members.push_back(token);
  }
  return members;
}

Plan random_plan(Draws& draws, const Sizes& sizes) {
  const bool one_list = draws.chance(0.5);
  PlanBuilder builder(self_layout(sizes.batch, sizes.heads, sizes.tokens), random_rules(draws),
                      one_list ? PlanBuilder::Lists::one : PlanBuilder::Lists::two);
  for (std::int64_t unit = 0; unit < sizes.batch * sizes.heads; ++unit) {
    for (std::int64_t group = draws.between(0, 6); group > 0; --group) {
      const std::vector<std::int32_t> members = random_members(draws, sizes.tokens);
      const ListRange queries = builder.add_queries(members);
      const bool own_keys = !one_list || draws.chance(0.2);
      const ListRange keys =
          own_keys ? builder.add_keys(draws.chance(0.3) ? members : random_members(draws, sizes.tokens)) : queries;
      builder.add_group(queries, keys);
    }
    builder.end_unit();
  }
  return builder.build();
}

// Heads outside of tokens or inside of them, as projections leave them.
at::Tensor random_vectors(Draws& draws, const Sizes& sizes, std::int64_t dim, std::uint64_t seed) {
  if (draws.chance(0.5)) return random_tensor({sizes.batch, sizes.heads, sizes.tokens, dim}, seed);
  return random_tensor({sizes.batch, sizes.tokens, sizes.heads, dim}, seed).transpose(1, 2);
}

AttendOptions random_options(Draws& draws, const Sizes& sizes, std::uint64_t seed) {
  AttendOptions options{.scale =
                            draws.one_of<double>({1.0, 0.3, 1.0 / std::sqrt(static_cast<double>(sizes.dim)), -0.5})};
  options.merge = draws.one_of<Merge>({Merge::lse, Merge::mean});
  options.merge_eps = draws.one_of<double>({0.0, 0.01});
  if (draws.chance(0.4)) {
    options.relative = draws.one_of<RelativePosition>({RelativePosition::true_offset, RelativePosition::rank});
    const std::int64_t rows = 2 * draws.one_of<std::int64_t>({0, 1, 5, 40, 100}) + 1;
    const std::int64_t tables = draws.between(1, 3);
    if (tables != 1) options.relative_key = random_tensor({rows, sizes.dim}, seed + 41);
    if (tables != 2) options.relative_value = random_tensor({rows, sizes.value_dim}, seed + 42);
  }
  if (draws.chance(0.3)) {
    options.recency =
        at::arange(1, sizes.heads + 1, at::kFloat) * static_cast<float>(draws.one_of<double>({0.01, 0.3}));
  }
  if (draws.chance(0.3)) options.dropout = {.probability = draws.one_of<double>({0.1, 0.5}), .key = seed};
  return options;
}

struct RandomCase {
  AttendInputs inputs;
  Plan plan;
  AttendOptions options;
};

RandomCase random_case(std::uint64_t seed, std::int64_t most_tokens) {
  Draws draws(seed, "differential attention");
  const Sizes sizes = random_sizes(draws, most_tokens);
  RandomCase drawn;
  drawn.inputs = {random_vectors(draws, sizes, sizes.dim, seed + 1), random_vectors(draws, sizes, sizes.dim, seed + 2),
                  random_vectors(draws, sizes, sizes.value_dim, seed + 3)};
  drawn.plan = random_plan(draws, sizes);
  drawn.options = random_options(draws, sizes, seed);
  return drawn;
}

std::string description(const RandomCase& drawn) {
  const VisibilityRules& rules = drawn.plan.rules;
  const auto number = [](const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "all"; };
  std::ostringstream text;
  text << "q " << drawn.inputs.q.sizes() << ", value dim " << drawn.inputs.v.size(3) << ", " << drawn.plan.num_groups()
       << " groups, " << (rules.causal ? "causal" : "bidirectional") << ", back " << number(rules.lookback)
       << ", ahead " << number(rules.lookahead) << ", self " << to_string(rules.self) << ", repeats "
       << to_string(rules.repeats) << ", merge " << to_string(drawn.options.merge) << " " << drawn.options.merge_eps
       << ", relative " << to_string(drawn.options.relative) << ", recency " << drawn.options.recency.defined()
       << ", dropout " << drawn.options.dropout.probability;
  return text.str();
}

std::vector<Level> levels_of_this_machine() {
  std::vector<Level> levels;
  for (const Isa isa : kernels::supported_isas()) {
    levels.push_back({isa, includes(isa, Isa::avx512_bf16) ? MatmulPrecision::bf16 : MatmulPrecision::fp32});
  }
  return levels;
}

void set_all_threads(int threads) {
  set_num_threads(threads);
  at::set_num_threads(threads);
}

TEST(AttendDifferential, FusedEqualsTheReferenceAtEveryLevelWithTheBitsOfAnyNumberOfThreads) {
  const int before = num_threads();
  for_each_seed(60, [](std::uint64_t seed) {
    const RandomCase drawn = random_case(seed, 300);
    SCOPED_TRACE(description(drawn));
    for (const Level& level : levels_of_this_machine()) {
      const support::LevelUnderTest under_test(level);
      AttendProblem problem = make_problem(drawn.inputs, drawn.plan, drawn.options);
      // In the type that the level reads.
      for (at::Tensor* table : {&problem.options.relative_key, &problem.options.relative_value}) {
        if (table->defined()) *table = level.rounds() ? table->to(at::kBFloat16).to(at::kFloat) : table->to(at::kFloat);
      }
      set_all_threads(1);
      const auto fused = run_fused(problem);
      // Of 1,500 cases one, a table's gradient over 267 tokens and heads of one number, was off by 2.3 tolerances.
      expect_close(fused, run_reference(problem), std::string(to_string(level.isa)), /*slack=*/4.0);
      set_all_threads(3);
      expect_same_bits(run_fused(problem), fused, std::string(to_string(level.isa)) + ", 3 threads");
    }
  });
  set_all_threads(before);
}

// In double, where both may differ by rounding only. Gradients come from autograd on both sides.
TEST(AttendDifferential, ReferenceEqualsDenseMatrices) {
  for_each_seed(60, [](std::uint64_t seed) {
    const RandomCase drawn = random_case(seed, 60);
    SCOPED_TRACE(description(drawn));
    AttendOptions options = drawn.options;
    if (options.recency.defined()) options.recency = options.recency.to(at::kDouble);
    const auto run = [&](const auto& attention) {
      std::vector<at::Tensor> leaves;
      for (const at::Tensor& input : {drawn.inputs.q, drawn.inputs.k, drawn.inputs.v}) {
        leaves.push_back(input.detach().clone().requires_grad_(true));
      }
      for (at::Tensor* table : {&options.relative_key, &options.relative_value}) {
        if (!table->defined()) continue;
        *table = table->detach().clone().requires_grad_(true);
        leaves.push_back(*table);
      }
      const AttendResult result = attention(leaves[0], leaves[1], leaves[2], drawn.plan, options);
      const at::Tensor weights = random_tensor(result.output.sizes(), seed + 9);
      const at::Tensor finite = result.lse.isfinite();
      (result.output * weights).sum().add(at::where(finite, result.lse, at::zeros_like(result.lse)).sum()).backward();
      std::vector<at::Tensor> all{result.output.detach(), result.lse.detach()};
      for (const at::Tensor& leaf : leaves) {
        all.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
      }
      return all;
    };
    const auto got = run([](const auto&... arguments) { return attend(arguments...); });
    const auto want = run([](const auto&... arguments) { return support::dense_attend(arguments...); });
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t n = 0; n < got.size(); ++n) {
      EXPECT_TRUE(at::allclose(got[n], want[n], 1e-9, 1e-9))
          << "result " << n << " is off by " << (got[n] - want[n]).abs().max().item<double>();
    }
  });
}

}  // namespace
}  // namespace routing::attend_differential_test
