// attend by hand-worked numbers, on plans made for the purpose, through the registered operator, and on bad input.
#include "routing/ops/attend/attend.h"

#include "routing/attention/patterns/position_patterns.h"
#include "routing/attention/plan/plan_builder.h"
#include "routing/core/error.h"
#include "routing/kernels/dispatch/isa.h"
#include "routing/ops/attend/visibility.h"
#include "support/dense_oracle.h"
#include "support/pattern_cases.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <sys/resource.h>

namespace routing::attend_test {
namespace {

using support::dense_attend;
using support::random_tensor;

// Vectors of one number, [1, 1, tokens, 1].
at::Tensor column(std::vector<double> values) {
  return at::tensor(values, at::kDouble).view({1, 1, static_cast<std::int64_t>(values.size()), 1});
}

double at_token(const at::Tensor& tensor, std::int64_t token) {
  return tensor.view({-1})[token].item<double>();
}

// A plan of one sequence and head from lists of positions.
Plan plan_of_groups(std::int64_t tokens, const std::vector<std::vector<std::int32_t>>& groups,
                    const VisibilityRules& rules) {
  PlanBuilder builder(self_layout(1, 1, tokens), rules, PlanBuilder::Lists::one);
  for (const auto& members : groups) {
    const ListRange range = builder.add_queries(members);
    builder.add_group(range, range);
  }
  builder.end_unit();
  return builder.build();
}

// Levels whose loops round keep rounded rows for the backward pass, the others must not.
TEST(Attend, WhatIsKeptForTheBackwardPassIsWhatTheLoopsOfTheLevelRead) {
  const std::vector<at::Tensor> rows{random_tensor({1, 2, 70, 20}, 1).to(at::kFloat),
                                     random_tensor({1, 2, 70, 20}, 2).to(at::kFloat),
                                     random_tensor({1, 2, 70, 12}, 3).to(at::kFloat)};
  const at::Tensor d_output = random_tensor({1, 2, 70, 12}, 4).to(at::kFloat);
  const Plan plan = full_plan(self_layout(1, 2, 70), true, SelfRule::allowed);
  const auto gradients = [&](bool rounded, MatmulPrecision precision) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& one : rows) {
      leaves.push_back((rounded ? one.to(at::kBFloat16).to(at::kFloat) : one.detach()).requires_grad_());
    }
    const AttendResult result = attend(leaves[0], leaves[1], leaves[2], plan, {.scale = 0.3, .precision = precision});
    return torch::autograd::grad({result.output}, leaves, {d_output});
  };
  for (const kernels::Isa isa : kernels::supported_isas()) {
    kernels::set_active_isa(isa);
    const bool halves = attend_keeps_halves(MatmulPrecision::bf16);
    EXPECT_EQ(halves, kernels::includes(isa, kernels::Isa::avx512_bf16));
    EXPECT_FALSE(attend_keeps_halves(MatmulPrecision::fp32));
    const auto found = gradients(false, MatmulPrecision::bf16);
    const auto wanted = gradients(halves, halves ? MatmulPrecision::bf16 : MatmulPrecision::fp32);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(at::equal(found[i], wanted[i])) << i << " at " << to_string(isa);
    }
  }
  kernels::set_active_isa(kernels::supported_isas().back());
}

TEST(Attend, HandWorkedCausalFullAttentionOfTwoTokens) {
  // Token 1: logits 2 * 1 * 0 = 0 and 2 * 1 * (ln 3) / 2 = ln 3, so weights 1/4 and 3/4.
  const at::Tensor q = column({5.0, 1.0});
  const at::Tensor k = column({0.0, std::log(3.0) / 2.0});
  const at::Tensor v = column({8.0, 4.0});
  const Plan plan = full_plan(self_layout(1, 1, 2), true, SelfRule::allowed);
  const AttendResult result = attend(q, k, v, plan, {.scale = 2.0});
  EXPECT_DOUBLE_EQ(at_token(result.output, 0), 8.0);
  EXPECT_DOUBLE_EQ(at_token(result.output, 1), 8.0 / 4.0 + 3.0 * 4.0 / 4.0);
  EXPECT_DOUBLE_EQ(at_token(result.lse, 0), 0.0);
  EXPECT_DOUBLE_EQ(at_token(result.lse, 1), std::log(4.0));
}

// Token 2 sees token 0 through both groups (weight e^0 twice), token 1 through the second (e^0), and itself through
// both (e^{ln 2} twice): counts 2, 1, 2.
TEST(Attend, HandWorkedMergesOfOverlappingGroups) {
  const at::Tensor q = column({0.0, 0.0, 1.0});
  const at::Tensor k = column({0.0, 0.0, std::log(2.0)});
  const at::Tensor v = column({10.0, 20.0, 30.0});
  const Plan plan = plan_of_groups(3, {{0, 2}, {0, 1, 2}}, {.causal = true});
  const AttendResult lse = attend(q, k, v, plan, {.merge = Merge::lse});
  EXPECT_DOUBLE_EQ(at_token(lse.output, 2), (2 * 10.0 + 20.0 + 2 * 2 * 30.0) / (2 + 1 + 4));
  EXPECT_DOUBLE_EQ(at_token(lse.lse, 2), std::log(7.0));
  // mean: (10 + 60) / 3 from the first group, (10 + 20 + 60) / 4 from the second.
  const AttendResult mean = attend(q, k, v, plan, {.merge = Merge::mean, .merge_eps = 0.5});
  EXPECT_DOUBLE_EQ(at_token(mean.output, 2), (70.0 / 3.0 + 90.0 / 4.0) / 2.5);
  EXPECT_DOUBLE_EQ(at_token(mean.output, 1), 15.0 / 1.5);
  EXPECT_DOUBLE_EQ(at_token(mean.lse, 2), std::log(7.0));
}

TEST(Attend, HandWorkedSelfRuleOverSeveralGroups) {
  // Token 0 is alone in both of its groups and so reads itself; token 1 sees token 0 in one group and so never itself.
  const Plan plan = plan_of_groups(2, {{0}, {0, 1}, {1}}, {.causal = true, .self = SelfRule::only_if_alone});
  const AttendResult result = attend(column({1.0, 1.0}), column({1.0, 1.0}), column({3.0, 7.0}), plan, {});
  EXPECT_DOUBLE_EQ(at_token(result.output, 0), 3.0);
  EXPECT_DOUBLE_EQ(at_token(result.output, 1), 3.0);
  EXPECT_DOUBLE_EQ(at_token(result.lse, 0), 1.0 + std::log(2.0));
  EXPECT_DOUBLE_EQ(at_token(result.lse, 1), 1.0);
}

// The groups of HandWorkedMergesOfOverlappingGroups. Token 2 sees tokens 0 and 2 in the first group, so that only token
// 1 is left for the second. Token 0 sees itself in the first; its second group has nothing to show.
TEST(Attend, HandWorkedKeysThatCountOnce) {
  const at::Tensor q = column({0.0, 0.0, 1.0});
  const at::Tensor k = column({0.0, 0.0, std::log(2.0)});
  const at::Tensor v = column({10.0, 20.0, 30.0});
  const Plan plan = plan_of_groups(3, {{0, 2}, {0, 1, 2}}, {.causal = true, .repeats = RepeatRule::once});
  EXPECT_TRUE(
      plan.to_dense_counts().view({3, 3}).equal(at::tensor({1, 0, 0, 1, 1, 0, 1, 1, 1}, at::kInt).view({3, 3})));
  EXPECT_EQ(attended_pairs(plan), 6);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double near = type == at::kDouble ? 1e-14 : 1e-5;
    const auto run = [&](const AttendOptions& options) {
      return attend(q.to(type), k.to(type), v.to(type), plan, options);
    };
    const AttendResult lse = run({.merge = Merge::lse});
    EXPECT_NEAR(at_token(lse.output, 2), (10.0 + 20.0 + 2 * 30.0) / (1 + 1 + 2), near);
    EXPECT_NEAR(at_token(lse.lse, 2), std::log(4.0), near);
    EXPECT_NEAR(at_token(lse.output, 1), 15.0, near);
    EXPECT_NEAR(at_token(lse.output, 0), 10.0, near);
    EXPECT_NEAR(at_token(lse.lse, 0), 0.0, near) << "not log 2";
    // mean: (10 + 60) / 3 from the first group, 20 from the second; one group for token 0, not two.
    const AttendResult mean = run({.merge = Merge::mean, .merge_eps = 0.5});
    EXPECT_NEAR(at_token(mean.output, 2), (70.0 / 3.0 + 20.0) / 2.5, near);
    EXPECT_NEAR(at_token(mean.output, 0), 10.0 / 1.5, near);
  }
}

TEST(Attend, ATokenThatIsAloneCountsItselfOnce) {
  const Plan plan = plan_of_groups(2, {{0}, {0, 1}, {1}},
                                   {.causal = true, .self = SelfRule::only_if_alone, .repeats = RepeatRule::once});
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const AttendResult result =
        attend(column({1.0, 1.0}).to(type), column({1.0, 1.0}).to(type), column({3.0, 7.0}).to(type), plan, {});
    EXPECT_NEAR(at_token(result.output, 0), 3.0, 1e-6);
    EXPECT_NEAR(at_token(result.output, 1), 3.0, 1e-6);
    EXPECT_NEAR(at_token(result.lse, 0), 1.0, 1e-6) << "itself in the first of its two groups";
    EXPECT_NEAR(at_token(result.lse, 1), 1.0, 1e-6) << "token 0, and itself in no group";
  }
}

// A window is that of a group: what it hides in the first group, the second may still show.
TEST(Attend, AKeyBeyondTheWindowOfItsFirstGroupCountsInTheNext) {
  const Plan plan =
      plan_of_groups(4, {{0, 1, 2, 3}, {0, 3}}, {.lookback = 2, .causal = true, .repeats = RepeatRule::once});
  const at::Tensor masks = plan.to_dense_masks(0, 0).to(at::kInt);
  EXPECT_TRUE(masks[0][3].equal(at::tensor({0, 0, 1, 1}, at::kInt)));
  EXPECT_TRUE(masks[1][3].equal(at::tensor({1, 0, 0, 0}, at::kInt)));
  const at::Tensor v = column({8.0, 100.0, 1.0, 3.0});
  EXPECT_DOUBLE_EQ(at_token(attend(at::zeros_like(v), at::zeros_like(v), v, plan, {}).output, 3), 4.0);
}

TEST(Attend, HandWorkedRelativePositions) {
  // Positions 0, 3, 4 are ranks 0, 1, 2 of one group. For token 4, offsets to the others are -4 and -1 by position
  // (clipped to -2 and -1), -2 and -1 by rank: both rows differ only in a table that tells -2 from -4, so clip to 3.
  const Plan plan = plan_of_groups(5, {{0, 3, 4}}, {.causal = true, .self = SelfRule::only_if_alone});
  const at::Tensor zeros = column({0.0, 0.0, 0.0, 0.0, 0.0});
  const at::Tensor q = column({1.0, 1.0, 1.0, 1.0, 1.0});
  const at::Tensor v = column({100.0, 0.0, 0.0, 200.0, 0.0});
  // Row 3 + offset: offsets -3, -2, -1, 0, 1, 2, 3.
  const at::Tensor key_table =
      at::tensor({std::log(2.0), std::log(3.0), 0.0, 9.0, 9.0, 9.0, 9.0}, at::kDouble).view({7, 1});
  const at::Tensor value_table = at::tensor({1.0, 2.0, 3.0, 9.0, 9.0, 9.0, 9.0}, at::kDouble).view({7, 1});
  AttendOptions options{
      .relative = RelativePosition::true_offset, .relative_key = key_table, .relative_value = value_table};
  EXPECT_NEAR(at_token(attend(q, zeros, v, plan, options).output, 4), (2 * 101.0 + 1 * 203.0) / 3, 1e-12);
  options.relative = RelativePosition::rank;
  EXPECT_NEAR(at_token(attend(q, zeros, v, plan, options).output, 4), (3 * 102.0 + 1 * 203.0) / 4, 1e-12);
}

TEST(Attend, HandWorkedRecency) {
  // Token 4 sees the tokens 0 and 3, four and one before it. A slope of ln 2 halves a weight for every token between,
  // so the weights are 1/16 and 1/2; distances of ranks, 2 and 1, would be another answer.
  const Plan plan = plan_of_groups(5, {{0, 3, 4}}, {.causal = true, .self = SelfRule::only_if_alone});
  const at::Tensor zeros = column({0.0, 0.0, 0.0, 0.0, 0.0});
  const at::Tensor v = column({90.0, 0.0, 0.0, 180.0, 7.0});
  const AttendResult result =
      attend(zeros, zeros, v, plan, {.scale = 3.0, .recency = at::tensor({std::log(2.0)}, at::kDouble)});
  EXPECT_NEAR(at_token(result.output, 4), (1 * 90.0 + 8 * 180.0) / 9, 1e-12);
  EXPECT_NEAR(at_token(result.lse, 4), std::log(1.0 / 16 + 1.0 / 2), 1e-12) << "scale is not for the slope";
  EXPECT_NEAR(at_token(result.output, 0), 90.0, 1e-12) << "alone, a token sees itself";
}

TEST(Attend, FullEqualsPlainSoftmaxAttention) {
  for (const std::int64_t tokens : {1, 2, 65, 200}) {
    const at::Tensor q = random_tensor({2, 3, tokens, 8}, 1);
    const at::Tensor k = random_tensor({2, 3, tokens, 8}, 2);
    const at::Tensor v = random_tensor({2, 3, tokens, 8}, 3);
    const double scale = 1.0 / std::sqrt(8.0);
    const at::Tensor logits = at::matmul(q, k.transpose(2, 3)) * scale;
    const at::Tensor future = at::ones({tokens, tokens}, at::kBool).triu(1);
    const at::Tensor causal = at::matmul(logits.masked_fill(future, -INFINITY).softmax(-1), v);
    const at::Tensor both_ways = at::matmul(logits.softmax(-1), v);
    const Plan causal_plan = full_plan(self_layout(2, 3, tokens), true, SelfRule::allowed);
    const Plan plan = full_plan(self_layout(2, 3, tokens), false, SelfRule::allowed);
    EXPECT_TRUE(at::allclose(attend(q, k, v, causal_plan, {.scale = scale}).output, causal, 0.0, 1e-12));
    EXPECT_TRUE(at::allclose(attend(q, k, v, plan, {.scale = scale}).output, both_ways, 0.0, 1e-12));
  }
}

TEST(Attend, GroupsOfSizeZeroAndOneAndOverlappingGroupsEqualTheOracle) {
  const Plan plan = plan_of_groups(6, {{}, {2}, {0, 1, 2, 5}, {}, {1, 2, 3}, {2}}, {.lookback = 2, .causal = true});
  const at::Tensor q = random_tensor({1, 1, 6, 3}, 1);
  const at::Tensor v = random_tensor({1, 1, 6, 3}, 2);
  for (const Merge merge : {Merge::lse, Merge::mean}) {
    const AttendResult result = attend(q, q, v, plan, {.merge = merge});
    const AttendResult expected = dense_attend(q, q, v, plan, {.merge = merge});
    EXPECT_TRUE(at::allclose(result.output, expected.output, 0.0, 1e-10));
    // Token 4 is in no group.
    EXPECT_EQ(result.output[0][0][4].abs().max().item<double>(), 0.0);
    EXPECT_EQ(result.lse[0][0][4].item<double>(), -INFINITY);
  }
}

TEST(Attend, EmptyBatchesSequencesAndPlansGiveEmptyOrZeroResults) {
  const Plan no_batch = full_plan(self_layout(0, 2, 5), true, SelfRule::allowed);
  EXPECT_EQ(
      attend(at::zeros({0, 2, 5, 4}), at::zeros({0, 2, 5, 4}), at::zeros({0, 2, 5, 4}), no_batch, {}).output.numel(),
      0);
  const Plan no_tokens = full_plan(self_layout(2, 2, 0), true, SelfRule::allowed);
  EXPECT_EQ(
      attend(at::zeros({2, 2, 0, 4}), at::zeros({2, 2, 0, 4}), at::zeros({2, 2, 0, 4}), no_tokens, {}).output.numel(),
      0);
  const Plan all_padding = full_plan(self_layout(1, 1, 3, at::zeros({1, 3}, at::kBool)), true, SelfRule::allowed);
  at::Tensor q = random_tensor({1, 1, 3, 2}, 1).set_requires_grad(true);
  const at::Tensor output = attend(q, q, q, all_padding, {}).output;
  EXPECT_EQ(output.abs().max().item<double>(), 0.0);
  output.sum().backward();
  EXPECT_EQ(q.grad().abs().max().item<double>(), 0.0);
}

TEST(Attend, Float32StaysCloseToDouble) {
  const at::Tensor q = random_tensor({1, 2, 200, 16}, 1);
  const at::Tensor v = random_tensor({1, 2, 200, 16}, 2);
  const Plan plan = local_plan(self_layout(1, 2, 200), {.window = 32}, true, SelfRule::allowed);
  const at::Tensor exact = attend(q, q, v, plan, {.scale = 0.25}).output;
  const AttendResult rounded = attend(q.to(at::kFloat), q.to(at::kFloat), v.to(at::kFloat), plan, {.scale = 0.25});
  EXPECT_EQ(rounded.output.scalar_type(), at::kFloat);
  EXPECT_LT((rounded.output.to(at::kDouble) - exact).abs().max().item<double>(), 2e-6);
}

TEST(Attend, HugeLogitsDoNotOverflow) {
  const at::Tensor q = column({1000.0, 1000.0});
  const Plan plan = full_plan(self_layout(1, 1, 2), true, SelfRule::allowed);
  const AttendResult result = attend(q, q, column({1.0, 3.0}), plan, {});
  EXPECT_DOUBLE_EQ(at_token(result.output, 1), 2.0);
  EXPECT_DOUBLE_EQ(at_token(result.lse, 1), 1e6 + std::log(2.0));
}

// 240 tiles of 64 queries and up to 600 keys: more than one batch holds.
TEST(Attend, SeveralBatchesOfTilesEqualTheOracle) {
  const at::Tensor q = random_tensor({4, 6, 600, 4}, 1);
  const Plan plan = full_plan(self_layout(4, 6, 600), true, SelfRule::allowed);
  EXPECT_TRUE(at::allclose(attend(q, q, q, plan, {}).output, dense_attend(q, q, q, plan, {}).output, 0.0, 1e-10));
}

TEST(Attend, NotANumberInOneSequenceStaysThere) {
  at::Tensor q = random_tensor({3, 1, 70, 4}, 1);
  const Plan plan = local_plan(self_layout(3, 1, 70), {.window = 9}, true, SelfRule::allowed);
  const at::Tensor clean = attend(q, q, q, plan, {}).output;
  q[0].fill_(std::nan(""));
  q.set_requires_grad(true);
  const at::Tensor output = attend(q, q, q, plan, {}).output;
  EXPECT_TRUE(output.narrow(0, 1, 2).equal(clean.narrow(0, 1, 2)));
  output.sum().backward();
  EXPECT_TRUE(q.grad().narrow(0, 1, 2).isfinite().all().item<bool>());
}

TEST(Attend, ASecondDerivativeIsRefused) {
  const at::Tensor q = random_tensor({1, 1, 3, 2}, 1).set_requires_grad(true);
  const Plan plan = full_plan(self_layout(1, 1, 3), true, SelfRule::allowed);
  const at::Tensor loss = attend(q, q, q, plan, {}).output.sum();
  EXPECT_THROW(torch::autograd::grad({loss}, {q}, {}, true, /*create_graph=*/true), InputError);
}

// n x n numbers would be 1.6 GB for the local and 0.27 GB for the full plan.
TEST(Attend, MemoryStaysFarBelowAnNxNMatrix) {
  const auto peak_megabytes = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  const auto run = [](std::int64_t tokens, const Plan& plan) {
    const at::Tensor q = random_tensor({1, 1, tokens, 16}, 1, at::kFloat).set_requires_grad(true);
    attend(q, q, q, plan, {}).output.sum().backward();
  };
  const auto before = peak_megabytes();
  run(20000, local_plan(self_layout(1, 1, 20000), {.window = 64}, true, SelfRule::allowed));
  run(8192, full_plan(self_layout(1, 1, 8192), true, SelfRule::allowed));
  EXPECT_LT(peak_megabytes() - before, 250);
}

TEST(Attend, StridedInputsGiveWhatContiguousOnesGive) {
  const at::Tensor wide = random_tensor({2, 10, 3, 8}, 1);
  const at::Tensor q = wide.transpose(1, 2);
  const Plan plan = full_plan(self_layout(2, 3, 10), true, SelfRule::allowed);
  EXPECT_TRUE(
      attend(q, q, q, plan, {}).output.equal(attend(q.contiguous(), q.contiguous(), q.contiguous(), plan, {}).output));
}

TEST(Attend, IsRegisteredAndCallableByName) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("routing::attend", "");
  const at::Tensor q = random_tensor({1, 1, 4, 2}, 1);
  const Plan t = full_plan(self_layout(1, 1, 4), true, SelfRule::allowed);
  torch::jit::Stack stack;
  torch::jit::push(stack, q, q, q, t.query_order, t.key_order, t.groups, t.unit_offsets, t.query_index.offsets,
                   t.query_index.group, t.query_index.rank, c10::IValue(), c10::IValue(), true, "allowed", 0.5, "lse",
                   0.0, "none", c10::IValue(), c10::IValue(), 0.0, 0, c10::IValue(), false,
                   at::tensor({0.25}, at::kDouble), "every_time", std::int64_t{0}, std::int64_t{0}, c10::IValue());
  op.callBoxed(stack);
  ASSERT_EQ(stack.size(), 2U);
  EXPECT_TRUE(
      stack[0].toTensor().equal(attend(q, q, q, t, {.scale = 0.5, .recency = at::tensor({0.25}, at::kDouble)}).output));
}

TEST(Attend, TheOperatorTakesTheRuleOfRepeatsByItsWord) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("routing::attend", "");
  const at::Tensor q = random_tensor({1, 1, 3, 2}, 1);
  const Plan every_time = plan_of_groups(3, {{0, 2}, {0, 1, 2}}, {.causal = true});
  const Plan once = plan_of_groups(3, {{0, 2}, {0, 1, 2}}, {.causal = true, .repeats = RepeatRule::once});
  const auto by_name = [&](const char* repeats) {
    const Plan& t = every_time;
    torch::jit::Stack stack;
    torch::jit::push(stack, q, q, q, t.query_order, t.key_order, t.groups, t.unit_offsets, t.query_index.offsets,
                     t.query_index.group, t.query_index.rank, c10::IValue(), c10::IValue(), true, "allowed", 1.0, "lse",
                     0.0, "none", c10::IValue(), c10::IValue(), 0.0, 0, c10::IValue(), false, c10::IValue(), repeats,
                     std::int64_t{0}, std::int64_t{0}, c10::IValue());
    op.callBoxed(stack);
    return stack[0].toTensor();
  };
  EXPECT_TRUE(by_name("every_time").equal(attend(q, q, q, every_time, {}).output));
  EXPECT_TRUE(by_name("once").equal(attend(q, q, q, once, {}).output));
  EXPECT_FALSE(by_name("once").equal(by_name("every_time")));
  EXPECT_THROW(by_name("ones"), ConfigError);
  const auto& arguments = op.schema().arguments();
  const std::size_t count = arguments.size();
  EXPECT_EQ(arguments[count - 4].name(), "repeats");
  EXPECT_EQ(arguments[count - 4].default_value()->toStringRef(), "every_time") << "older calls mean the same";
  EXPECT_EQ(arguments[count - 3].name(), "query_origin");
  EXPECT_EQ(arguments[count - 2].name(), "key_origin");
  EXPECT_EQ(arguments[count - 2].default_value()->toInt(), 0) << "older calls mean the same";
  EXPECT_EQ(arguments[count - 1].name(), "key_rows");
  EXPECT_TRUE(arguments[count - 1].default_value()->isNone()) << "older calls mean the same";
}

TEST(Attend, OnTheMetaDeviceGivesShapesOnly) {
  const at::Tensor q = at::empty({2, 3, 7, 4}, at::TensorOptions(at::kMeta));
  const at::Tensor v = at::empty({2, 3, 7, 5}, at::TensorOptions(at::kMeta));
  const Plan plan = full_plan(self_layout(2, 3, 7), true, SelfRule::allowed);
  const AttendResult result = attend(q, q, v, plan, {});
  EXPECT_TRUE(result.output.is_meta());
  EXPECT_EQ(result.output.sizes(), at::IntArrayRef({2, 3, 7, 5}));
  EXPECT_EQ(result.lse.sizes(), at::IntArrayRef({2, 3, 7}));
}

TEST(Attend, InputsThatDoNotFitAreRefusedWithBothValues) {
  const Plan plan = full_plan(self_layout(1, 2, 4), true, SelfRule::allowed);
  const at::Tensor good = at::zeros({1, 2, 4, 3});
  const auto message = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const AttendOptions& options) {
    try {
      attend(q, k, v, plan, options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_NE(message(good, at::zeros({1, 2, 5, 3}), good, {}).find("5"), std::string::npos);
  EXPECT_NE(message(good, at::zeros({1, 2, 4, 2}), good, {}).find("q has 3"), std::string::npos);
  EXPECT_NE(message(good, good.to(at::kDouble), good, {}).find("k is Double"), std::string::npos);
  EXPECT_NE(message(good.to(at::kHalf), good.to(at::kHalf), good.to(at::kHalf), {}).find("Half"), std::string::npos);
  EXPECT_NE(message(good, good, good, {.relative = RelativePosition::rank}).find("no table"), std::string::npos);
  EXPECT_NE(
      message(good, good, good, {.relative = RelativePosition::rank, .relative_key = at::zeros({4, 3})}).find("[4, 3]"),
      std::string::npos);
  EXPECT_NE(message(good, good, good, {.merge_eps = -1.0}).find("-1"), std::string::npos);
  EXPECT_NE(message(good, good, good, {.dropout = {.probability = 1.0}}).find("1"), std::string::npos);
  EXPECT_NE(message(at::zeros({2, 4, 3}), good, good, {}).find("3 dimensions"), std::string::npos);
  const auto of_recency = [&](const at::Tensor& slopes) { return message(good, good, good, {.recency = slopes}); };
  EXPECT_NE(of_recency(at::zeros({3})).find("recency is [3], but must hold one slope for each of 2 heads"),
            std::string::npos);
  EXPECT_NE(of_recency(at::zeros({2}, at::kDouble)).find("recency is Double"), std::string::npos);
  EXPECT_NE(of_recency(at::tensor({0.5F, -0.5F})).find("head 1 is -0.5"), std::string::npos);
  EXPECT_NE(of_recency(at::tensor({std::nanf(""), 0.5F})).find("head 0 is nan"), std::string::npos);
  EXPECT_NE(of_recency(at::zeros({2}).set_requires_grad(true)).find("detach"), std::string::npos);
}

}  // namespace
}  // namespace routing::attend_test
