// Changing tokens after position i must not change anything up to i: plans exactly, outputs within 1e-12 of the
// largest, in double.
#include "routing/attention/multi_head.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace routing::prefix_invariance_test {
namespace {

using support::PatternCase;
using support::random_tensor;

constexpr std::int64_t kTokens = 48;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kLayers = 3;

// A stack of residual layers, as the model will be, without what is trivially causal.
struct Stack {
  std::vector<MultiHeadAttention> layers;

  Stack(const std::vector<HeadGroupConfig>& head_groups, AttentionKind kind) {
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      layers.emplace_back(AttentionConfig{.kind = kind, .width = kWidth, .head_dim = 8, .head_groups = head_groups},
                          LayerPlace{.seed = 3, .layer = layer}, at::TensorOptions(at::kDouble));
      // Larger weights than at initialisation, so that layers really change their input.
      for (at::Tensor& parameter : layers.back()->parameters()) parameter.data().mul_(4.0);
      layers.back()->eval();
    }
  }

  struct Run {
    at::Tensor output;
    std::vector<Plan> plans;
  };
  Run run(at::Tensor x) {
    Run result;
    for (MultiHeadAttention& layer : layers) {
      AttentionState state;
      x = x + layer->forward(x, state);
      result.plans.insert(result.plans.end(), state.plans.begin(), state.plans.end());
    }
    result.output = x;
    return result;
  }
};

class PrefixInvariance : public ::testing::TestWithParam<PatternCase> {};

void expect_prefix_invariance(const std::vector<HeadGroupConfig>& head_groups) {
  const at::NoGradGuard no_gradient;
  Stack stack(head_groups, AttentionKind::causal_self);
  const at::Tensor x = random_tensor({2, kTokens, kWidth}, 1);
  const Stack::Run before = stack.run(x);
  // Later tokens change the sizes of products, and with them how a BLAS rounds, by the processor's own kernels: that is
  // relative to the outputs.
  const double rounding = 1e-12 * std::max(1.0, before.output.abs().max().item<double>());
  std::vector<at::Tensor> counts_before;
  for (const Plan& plan : before.plans) counts_before.push_back(plan.to_dense_counts());
  for (std::int64_t i = 0; i < kTokens - 1; ++i) {
    at::Tensor changed = x.clone();
    changed.narrow(1, i + 1, kTokens - i - 1) =
        random_tensor({2, kTokens - i - 1, kWidth}, 100 + static_cast<std::uint64_t>(i));
    const Stack::Run after = stack.run(changed);
    const double difference = (after.output - before.output).narrow(1, 0, i + 1).abs().max().item<double>();
    ASSERT_LE(difference, rounding) << "tokens after " << i << " changed earlier outputs";
    for (std::size_t plan = 0; plan < before.plans.size(); ++plan) {
      ASSERT_TRUE(
          after.plans[plan].to_dense_counts().narrow(2, 0, i + 1).equal(counts_before[plan].narrow(2, 0, i + 1)))
          << "tokens after " << i << " changed what plan " << plan << " lets earlier queries read";
    }
    // The change did happen.
    ASSERT_GT((after.output - before.output).narrow(1, i + 1, 1).abs().max().item<double>(), 1e-6);
  }
}

TEST_P(PrefixInvariance, HoldsAtEveryPositionOfAStack) {
  HeadGroupConfig group = GetParam().group;
  const bool span = std::holds_alternative<SpanPattern>(group.pattern);  // measured in true offsets only
  group.relative = span ? RelativePosition::none : RelativePosition::rank;
  group.max_relative = 5;
  expect_prefix_invariance({group});
  group.merge = Merge::mean;
  group.relative = RelativePosition::true_offset;
  expect_prefix_invariance({group});
}

bool reads_the_future(const PatternCase& pattern_case) {
  const auto* routing = std::get_if<RoutingPattern>(&pattern_case.group.pattern);
  return routing != nullptr && routing->selection == RoutingSelection::balanced;
}

std::vector<PatternCase> causal_cases() {
  std::vector<PatternCase> cases = support::pattern_cases(AttentionKind::causal_self);
  std::erase_if(cases, reads_the_future);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryCausalPattern, PrefixInvariance, ::testing::ValuesIn(causal_cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(PrefixInvarianceOfMixedHeads, HoldsWithEveryCausalPatternInOneLayer) {
  std::vector<HeadGroupConfig> head_groups{
      {.pattern = FullPattern{}},
      {.pattern = LocalPattern{.window = 5}},
      {.pattern = LocalPattern{.form = LocalForm::block, .window = 4}},
      {.pattern = LocalPattern{.form = LocalForm::block, .window = 3, .flange = 2}},
      {.pattern = StridedPattern{.stride = 3}},
      {.pattern = SpanPattern{.limit = 14, .ramp = 3, .initial = 0.1}},
      {.pattern = FixedPattern{.stride = 5, .summary = 2}},
      {.pattern = Local2dPattern{.rows = 2, .columns = 2, .above = 1, .beside = 1, .image_width = 4}},
      {.pattern = RandomPattern{.groups = 4, .window = 12}, .heads = 2},
      {.pattern = LshPattern{.buckets = 4, .rounds = 2, .window = 6},
       .heads = 2,
       .shared_query_key = true,
       .self = SelfRule::only_if_alone},
      {.pattern = RoutingPattern{.clusters = 4, .window = 6},
       .heads = 4,
       .shared_query_key = true,
       .self = SelfRule::only_if_alone},
      {.pattern = RoutingPattern{.selection = RoutingSelection::nearest, .clusters = 4, .window = 6}, .heads = 4}};
  expect_prefix_invariance(head_groups);
}

TEST(PrefixInvarianceOfMixedHeads, HoldsWithShiftedKeys) {
  expect_prefix_invariance(
      {{.pattern = LocalPattern{.window = 5}, .heads = 2},
       {.pattern = RoutingPattern{.clusters = 4, .window = 6}, .heads = 2, .shared_query_key = true, .key_shift = 1}});
}

// The label `selection reads the future` is earned: with top-w over the whole sequence, changing only what comes later
// changes earlier outputs.
TEST(PrefixInvarianceOfBalancedRouting, IsBroken) {
  const at::NoGradGuard no_gradient;
  int cases = 0;
  for (const PatternCase& pattern_case : support::pattern_cases(AttentionKind::causal_self)) {
    if (!reads_the_future(pattern_case)) continue;
    ++cases;
    Stack stack({pattern_case.group}, AttentionKind::causal_self);
    const at::Tensor x = random_tensor({2, kTokens, kWidth}, 1);
    at::Tensor changed = x.clone();
    changed.narrow(1, kTokens / 2, kTokens / 2) = random_tensor({2, kTokens / 2, kWidth}, 9);
    const at::Tensor difference = stack.run(changed).output - stack.run(x).output;
    EXPECT_GT(difference.narrow(1, 0, kTokens / 2).abs().max().item<double>(), 1e-3) << pattern_case.name;
  }
  EXPECT_EQ(cases, 5);
}

// The test can fail: bidirectional attention does read what comes later.
TEST(PrefixInvarianceOfMixedHeads, IsBrokenByBidirectionalAttention) {
  const at::NoGradGuard no_gradient;
  Stack stack({{.pattern = LocalPattern{.window = 5}, .heads = 2}}, AttentionKind::bidirectional_self);
  const at::Tensor x = random_tensor({1, kTokens, kWidth}, 1);
  at::Tensor changed = x.clone();
  changed.narrow(1, 20, 1) += 1.0;
  EXPECT_GT((stack.run(changed).output - stack.run(x).output).narrow(1, 0, 20).abs().max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace routing::prefix_invariance_test
