// The fused kernels against the reference in double on the same numbers, and what their bits must not depend on.
#include "routing/ops/attend/attend_fused.h"

#include "routing/attention/patterns/position_patterns.h"
#include "routing/attention/plan/plan_builder.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/isa.h"
#include "support/attend_problems.h"
#if defined(__x86_64__)
#include "support/amx/amx_emulator.h"
#endif
#include "support/pattern_cases.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <utility>

namespace routing::attend_fused_test {
namespace {

using kernels::Isa;
using support::add_recency;
using support::add_tables;
using support::AttendProblem;
using support::CaseInputs;
using support::every_pattern_case;
using support::Everything;
using support::expect_close;
using support::expect_same_bits;
using support::hand_made_plans;
using support::Level;
using support::make_inputs;
using support::make_problem;
using support::PatternCase;
using support::random_inputs;
using support::random_tensor;
using support::run_fused;
using support::run_reference;

// Real machine code of the AMX level on processors without tiles; does nothing for other levels.
class TilesIfNeeded {
 public:
  explicit TilesIfNeeded([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
    if (isa != Isa::amx) return;
    emulator_ = std::make_unique<support::AmxEmulator>();
    kernels::assume_isa_runs(Isa::amx);
#endif
  }

 private:
#if defined(__x86_64__)
  std::unique_ptr<support::AmxEmulator> emulator_;
#endif
};

class AttendFused : public ::testing::TestWithParam<Level> {
 protected:
  AttendFused() {
    at::set_num_threads(1);  // the reference's many small products gain nothing from more
  }
  ~AttendFused() override { set_num_threads(threads_); }

 private:
  TilesIfNeeded tiles_{GetParam().isa};
  support::LevelUnderTest level_{GetParam()};
  int threads_ = num_threads();
};

TEST_P(AttendFused, EqualsTheReferenceForEveryPatternMergeAndTable) {
  std::uint64_t seed = 0;
  for (const PatternCase& pattern_case : every_pattern_case()) {
    for (const std::int64_t tokens : {1, 41}) {
      const CaseInputs inputs =
          make_inputs(pattern_case, {.batch = 3, .tokens = tokens, .dim = 4, .ragged = ++seed % 2 == 0, .seed = seed});
      for (const Merge merge : {Merge::lse, Merge::mean}) {
        for (const RelativePosition relative :
             {RelativePosition::none, RelativePosition::true_offset, RelativePosition::rank}) {
          AttendProblem problem = make_problem({inputs.q, inputs.k, inputs.v}, inputs.plan,
                                               {.scale = 0.7, .merge = merge, .merge_eps = seed % 3 == 0 ? 0.0 : 0.01});
          add_tables(problem, relative);
          if (seed % 4 < 2) problem.options.dropout = {.probability = 0.3, .key = seed};
          const std::string what = pattern_case.name + ", " + std::to_string(tokens) + " tokens, " +
                                   std::string(to_string(merge)) + ", " + std::string(to_string(relative));
          expect_close(run_fused(problem), run_reference(problem), what);
          add_recency(problem);
          expect_close(run_fused(problem), run_reference(problem), what + ", recency");
        }
      }
    }
  }
}

TEST_P(AttendFused, EqualsTheReferenceForEveryLength) {
  for (const std::int64_t tokens : {1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129, 257}) {
    const AttendInputs inputs = random_inputs(1, tokens, 8, 5);
    int number = 0;
    for (const Plan& plan : hand_made_plans(1, tokens)) {
      AttendProblem problem =
          make_problem(inputs, plan, {.scale = 0.4, .merge = ++number % 3 == 0 ? Merge::mean : Merge::lse});
      add_tables(problem, number % 2 == 0 ? RelativePosition::rank : RelativePosition::true_offset, 1 + 9 * number);
      const std::string what = std::to_string(tokens) + " tokens, plan " + std::to_string(number);
      expect_close(run_fused(problem), run_reference(problem), what);
      // Without tables the kernels take other ways.
      if (number % 4 < 2) add_tables(problem, RelativePosition::none);
      add_recency(problem);
      expect_close(run_fused(problem), run_reference(problem), what + ", recency");
    }
  }
}

TEST_P(AttendFused, EqualsTheReferenceForEveryDim) {
  for (const std::int64_t dim : {1, 3, 16, 17, 32, 64, 129}) {
    for (const std::int64_t value_dim : {dim, std::int64_t{2}, std::int64_t{33}}) {
      const AttendInputs inputs = random_inputs(2, 70, dim, value_dim);
      for (const Plan& plan : hand_made_plans(2, 70)) {
        AttendProblem problem = make_problem(inputs, plan, {.scale = 1.0 / std::sqrt(static_cast<double>(dim))});
        add_tables(problem, RelativePosition::true_offset);
        problem.options.dropout = {.probability = 0.5, .key = 9, .sample_ids = at::tensor({7, 3}, at::kLong)};
        expect_close(run_fused(problem), run_reference(problem),
                     "dim " + std::to_string(dim) + ", value dim " + std::to_string(value_dim));
      }
    }
  }
}

TEST_P(AttendFused, OneTableAloneEqualsTheReference) {
  const AttendInputs inputs = random_inputs(1, 70, 8, 6);
  for (const Plan& plan : hand_made_plans(1, 70)) {
    for (const bool keys : {true, false}) {
      AttendProblem problem = make_problem(inputs, plan, {});
      add_tables(problem, RelativePosition::rank);
      (keys ? problem.options.relative_value : problem.options.relative_key) = at::Tensor();
      expect_close(run_fused(problem), run_reference(problem), keys ? "keys alone" : "values alone");
    }
  }
}

// With 272 tokens, blocks of 128 end with half a strip that sees whole tiles: what stands in the other half must not
// show.
TEST_P(AttendFused, ScoresFarApartStayFiniteAndRight) {
  for (const std::int64_t tokens : {150, 272}) {
    AttendInputs inputs = random_inputs(1, tokens, 8, 4);
    inputs.q = inputs.q * 30.0;
    inputs.k = inputs.k * 30.0;
    for (const Plan& plan : hand_made_plans(1, tokens)) {
      AttendProblem problem = make_problem(inputs, plan, {.scale = 1.0});
      if (tokens > 200) problem.options.dropout = {.probability = 0.2, .key = 3};
      const Everything fused = run_fused(problem);
      const Everything reference = run_reference(problem);
      for (const at::Tensor& tensor : {fused.d.q, fused.d.k, fused.d.v, fused.result.output}) {
        EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << tokens << " tokens";
      }
      // Scores reach 1e4, so that float32 rounds them to 1e-3: that is how far weights may be off.
      EXPECT_LT((fused.result.output - reference.result.output).abs().max().item<double>(), 2e-2);
    }
  }
}

// Two keys with scores 0 and x, values 0 and 1: the output is e^x / (1 + e^x), whose relative error is that of the
// exponential and of two roundings, however small e^x is.
TEST_P(AttendFused, TheExponentialIsRightToAFewUnitsInTheLastPlace) {
  if (GetParam().rounds()) GTEST_SKIP() << "weights are rounded to 8 bits; the next test looks at their sum";
  constexpr std::int64_t kPairs = 4000;
  const Plan plan = full_plan(self_layout(kPairs, 1, 2), /*causal=*/false, SelfRule::allowed);
  const at::Tensor x = at::linspace(-86.9, 0.0, kPairs, at::kFloat);
  const at::Tensor k = at::stack({at::zeros_like(x), x}, 1).view({kPairs, 1, 2, 1});
  const at::Tensor v = at::tensor({0.0F, 1.0F}).view({1, 1, 2, 1}).expand({kPairs, 1, 2, 1});
  const AttendResult result = attend_fused_forward({at::ones_like(k), k, v}, plan, {});
  const at::Tensor weight = x.to(at::kDouble).exp();
  const at::Tensor expected = weight / (1.0 + weight);
  const at::Tensor error = (result.output.select(2, 0).flatten() - expected).abs() / expected;
  EXPECT_LT(error.max().item<double>(), 4 * 0x1.0p-23);
}

// The sum of the exponentials is not rounded to 8 bits: lse of scores 0 and x is log(1 + e^x), where an error of e^x
// shows by its share. Near 0 that share is a half, so what is allowed are some units in the last place of e^x.
TEST_P(AttendFused, TheSumOfExponentialsIsRightToAFewUnitsInTheLastPlace) {
  constexpr std::int64_t kPairs = 4000;
  const Plan plan = full_plan(self_layout(kPairs, 1, 2), /*causal=*/false, SelfRule::allowed);
  const at::Tensor x = at::linspace(-4.0, 0.0, kPairs, at::kFloat).to(at::kBFloat16).to(at::kFloat);
  const at::Tensor k = at::stack({at::zeros_like(x), x}, 1).view({kPairs, 1, 2, 1});
  AttendOptions options;
  options.precision = GetParam().precision;
  const AttendResult result = attend_fused_forward({at::ones_like(k), k, k}, plan, options);
  const at::Tensor weight = x.to(at::kDouble).exp();
  const at::Tensor error = (result.lse.select(2, 0).flatten() - weight.log1p()).abs();
  EXPECT_LT((error / (weight / (1.0 + weight) + 1.0)).max().item<double>(), 4 * 0x1.0p-23);
}

TEST_P(AttendFused, BitsDoNotDependOnTheNumberOfThreads) {
  for (const Merge merge : {Merge::lse, Merge::mean}) {
    int number = 0;
    for (const Plan& plan : hand_made_plans(2, 257)) {
      AttendProblem problem = make_problem(random_inputs(2, 257, 16, 8), plan, {.merge = merge});
      add_tables(problem, ++number % 2 == 0 ? RelativePosition::rank : RelativePosition::true_offset);
      problem.options.dropout = {.probability = 0.1, .key = 5};
      if (number % 4 > 1) add_recency(problem);
      set_num_threads(1);
      const Everything one = run_fused(problem);
      for (const int threads : {2, 5}) {
        set_num_threads(threads);
        expect_same_bits(one, run_fused(problem), std::to_string(threads) + " threads");
      }
    }
  }
}

// Causal plans over a prefix of the tokens: later tokens neither changed nor missing may show in earlier bits.
TEST_P(AttendFused, LaterTokensNeverChangeEarlierBits) {
  constexpr std::int64_t kTokens = 140;
  const auto prefix = [](const at::Tensor& x, std::int64_t tokens) { return x.narrow(2, 0, tokens); };
  const std::vector<Plan> plans = hand_made_plans(1, kTokens);
  std::map<std::int64_t, std::vector<Plan>> short_plans;
  for (const std::int64_t tokens : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 139}) {
    short_plans[tokens] = hand_made_plans(1, tokens);
  }
  for (const auto& [relative, recency] : {std::pair{RelativePosition::none, false},
                                          {RelativePosition::none, true},
                                          {RelativePosition::true_offset, true},
                                          {RelativePosition::rank, false}}) {
    for (std::size_t number = 0; number < plans.size(); ++number) {
      if (!plans[number].rules.causal) continue;
      AttendProblem problem = make_problem(random_inputs(1, kTokens, 12, 7), plans[number],
                                           {.merge = number % 4 < 2 ? Merge::lse : Merge::mean});
      add_tables(problem, relative, 30);
      if (recency) add_recency(problem);
      const AttendResult whole = attend_fused_forward(problem.inputs, problem.plan, problem.options);
      for (const auto& [tokens, plans_of_prefix] : short_plans) {
        AttendProblem changed = problem;
        for (at::Tensor* x : {&changed.inputs.q, &changed.inputs.k, &changed.inputs.v}) {
          *x = x->clone();
          x->narrow(2, tokens, kTokens - tokens) += 3.0;
        }
        const AttendResult after = attend_fused_forward(changed.inputs, changed.plan, changed.options);
        const AttendInputs short_inputs{prefix(problem.inputs.q, tokens), prefix(problem.inputs.k, tokens),
                                        prefix(problem.inputs.v, tokens)};
        const AttendResult alone = attend_fused_forward(short_inputs, plans_of_prefix[number], problem.options);
        const std::string what = std::to_string(tokens) + " tokens of plan " + std::to_string(number) + ", " +
                                 std::string(to_string(relative)) + (recency ? ", recency" : "");
        ASSERT_TRUE(at::equal(prefix(after.output, tokens), prefix(whole.output, tokens))) << what << ", changed";
        ASSERT_TRUE(at::equal(prefix(after.lse, tokens), prefix(whole.lse, tokens))) << what << ", changed";
        ASSERT_TRUE(at::equal(alone.output, prefix(whole.output, tokens))) << what << ", removed";
        ASSERT_TRUE(at::equal(alone.lse, prefix(whole.lse, tokens))) << what << ", removed";
      }
    }
  }
}

// What decoding one token at a time rests on: neither the queries beside it nor its place in a block show in its bits.
TEST_P(AttendFused, AQueryAloneHasTheBitsItHasAmongOthers) {
  constexpr std::int32_t kTokens = 140;
  std::vector<std::int32_t> all;
  for (std::int32_t position = 0; position < kTokens; ++position) all.push_back(position);
  const VisibilityRules rules{.lookback = 50};
  const auto attend_with = [&](const std::vector<std::int32_t>& queries, RelativePosition relative, bool recency) {
    PlanBuilder builder(self_layout(1, 1, kTokens), rules, PlanBuilder::Lists::two);
    const ListRange query_range = builder.add_queries(queries);
    builder.add_group(query_range, builder.add_keys(all));
    builder.end_unit();
    const Plan plan = builder.build();
    AttendProblem problem = make_problem({random_tensor({1, 1, kTokens, 12}, 1), random_tensor({1, 1, kTokens, 12}, 2),
                                          random_tensor({1, 1, kTokens, 7}, 3)},
                                         plan, {});
    add_tables(problem, relative, 30);
    if (recency) add_recency(problem);
    return attend_fused_forward(problem.inputs, problem.plan, problem.options);
  };
  for (const auto& [relative, recency] : {std::pair{RelativePosition::none, false},
                                          {RelativePosition::none, true},
                                          {RelativePosition::true_offset, true},
                                          {RelativePosition::rank, false},
                                          {RelativePosition::rank, true}}) {
    const AttendResult together = attend_with(all, relative, recency);
    for (const std::int32_t query : {0, 1, 31, 64, 70, 100, 129, 139}) {
      for (const std::vector<std::int32_t>& queries : {std::vector{query}, std::vector{query - query % 3, query}}) {
        if (queries.size() == 2 && queries[0] == queries[1]) continue;
        const AttendResult alone = attend_with(queries, relative, recency);
        ASSERT_TRUE(at::equal(alone.output[0][0][query], together.output[0][0][query])) << "query " << query;
        ASSERT_TRUE(at::equal(alone.lse[0][0][query], together.lse[0][0][query])) << "query " << query;
      }
    }
  }
}

TEST_P(AttendFused, TransposedAndExpandedInputsGiveTheBitsOfContiguousOnes) {
  const Plan plan = hand_made_plans(2, 70)[3];
  AttendProblem problem = make_problem(random_inputs(2, 70, 8, 6), plan, {});
  const Everything plain = run_fused(problem);
  const auto transposed = [](const at::Tensor& x) { return x.transpose(1, 2).contiguous().transpose(1, 2); };
  const auto numbers_apart = [](const at::Tensor& x) { return x.transpose(2, 3).contiguous().transpose(2, 3); };
  AttendProblem other = problem;
  other.inputs = {transposed(problem.inputs.q), transposed(problem.inputs.k), transposed(problem.inputs.v)};
  other.gradient.output = transposed(problem.gradient.output);
  const Everything in_heads = run_fused(other);
  expect_same_bits(plain, in_heads, "transposed");
  EXPECT_EQ(in_heads.d.q.strides(), other.inputs.q.strides());
  other.inputs = {numbers_apart(problem.inputs.q), numbers_apart(problem.inputs.k), numbers_apart(problem.inputs.v)};
  other.gradient.output = numbers_apart(problem.gradient.output);
  expect_same_bits(plain, run_fused(other), "numbers apart");
  problem.gradient.output = at::ones({2, 2, 70, 6});
  other.gradient.output = at::ones({1}).expand({2, 2, 70, 6});
  expect_same_bits(run_fused(problem), run_fused(other), "expanded");
}

TEST_P(AttendFused, WhereKeysAreTheQueriesOneGradientHoldsBoth) {
  for (const Plan& plan : hand_made_plans(1, 70)) {
    AttendProblem problem = make_problem(random_inputs(1, 70, 8, 6), plan, {});
    problem.inputs.k = problem.inputs.q.clone();
    const Everything apart = run_fused(problem);
    problem.inputs.k = problem.inputs.q;
    const Everything together = run_fused(problem);
    EXPECT_FALSE(together.d.k.defined());
    const at::Tensor sum = apart.d.q + apart.d.k;
    EXPECT_LE((together.d.q - sum).abs().max().item<double>(), 1e-5 * std::max(1.0, sum.abs().max().item<double>()));
    EXPECT_TRUE(at::equal(together.d.v, apart.d.v));
    // And through the operator, whose gradient of a shared tensor is the same sum.
    const at::Tensor x = problem.inputs.q.clone().set_requires_grad(true);
    (attend(x, x, problem.inputs.v, problem.plan, problem.options).output * problem.gradient.output).sum().backward();
    problem.gradient.lse.zero_();
    EXPECT_TRUE(at::equal(x.grad(), run_fused(problem).d.q));
  }
}

TEST_P(AttendFused, TheFirstLevelsRoundNothingAndTheOthersDo) {
  const Plan plan = hand_made_plans(1, 70)[1];
  AttendProblem problem = make_problem(random_inputs(1, 70, 8, 6), plan, {});
  problem.inputs.q = random_tensor({1, 2, 70, 8}, 1, at::kFloat);
  problem.options.precision = MatmulPrecision::fp32;
  const Everything exact = run_fused(problem);
  problem.options.precision = MatmulPrecision::bf16;
  const Everything asked = run_fused(problem);
  const bool rounds = includes(GetParam().isa, Isa::avx512_bf16);
  EXPECT_EQ(at::equal(exact.result.output, asked.result.output), !rounds);
  EXPECT_EQ(at::equal(exact.d.q, asked.d.q), !rounds);
}

// The operator takes the fused kernels for float32 and for nothing else.
TEST_P(AttendFused, TheOperatorUsesItForFloat) {
  const Plan plan = hand_made_plans(1, 70)[1];
  const AttendProblem problem = make_problem(random_inputs(1, 70, 8, 6), plan, {});
  const AttendInputs& x = problem.inputs;
  EXPECT_TRUE(can_attend_fused(x.q));
  EXPECT_FALSE(can_attend_fused(x.q.to(at::kDouble)));
  EXPECT_FALSE(can_attend_fused(x.q.to(at::kMeta)));
  const at::Tensor q = x.q.clone().set_requires_grad(true);
  const at::Tensor k = x.k.clone().set_requires_grad(true);
  const at::Tensor v = x.v.clone().set_requires_grad(true);
  const AttendResult result = attend(q, k, v, problem.plan, problem.options);
  ((result.output * problem.gradient.output).sum() +
   (result.lse * problem.gradient.lse).masked_select(result.lse.isfinite()).sum())
      .backward();
  AttendProblem seen = problem;
  seen.gradient.lse = at::where(result.lse.isfinite(), problem.gradient.lse, 0.0);
  const Everything direct = run_fused(seen);
  EXPECT_TRUE(at::equal(result.output, direct.result.output));
  EXPECT_TRUE(at::equal(q.grad(), direct.d.q));
  EXPECT_TRUE(at::equal(k.grad(), direct.d.k));
  EXPECT_TRUE(at::equal(v.grad(), direct.d.v));
}

std::vector<Level> every_level() {
  std::vector<Level> levels;
  for (const Isa isa : kernels::supported_isas()) {
    levels.push_back({isa, MatmulPrecision::fp32});
    if (includes(isa, Isa::avx512_bf16)) levels.push_back({isa, MatmulPrecision::bf16});
  }
#if defined(__x86_64__)
  // Under the emulator where only the tiles are missing; in fp32 the level is avx512.
  if (kernels::supported_isas().back() == Isa::avx512_bf16 && support::can_run_amx()) {
    levels.push_back({Isa::amx, MatmulPrecision::bf16});
  }
#endif
  return levels;
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, AttendFused, ::testing::ValuesIn(every_level()), [](const auto& level) {
  return std::string(to_string(level.param.isa)) +
         (level.param.precision == MatmulPrecision::bf16 ? "_in_bf16" : "_in_fp32");
});

}  // namespace
}  // namespace routing::attend_fused_test
