#include "lab/leak/plan_leak.h"

#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace routing::plan_leak_test {
namespace {

std::vector<AttentionConfig> layers_of(const ExperimentConfig& config) {
  std::vector<AttentionConfig> layers;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer)
    layers.push_back(attention_of_layer(config, layer));
  return layers;
}

// A pass over a sequence and the same one with tokens from `first` on changed.
std::vector<PlanLeak> leaks_of(const ExperimentConfig& config, std::int64_t first) {
  const at::NoGradGuard no_gradient;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  model->eval();
  at::Tensor tokens = random_tokens(1, 64, 256, 3).expand({2, 64}).contiguous();
  tokens[1].narrow(0, first, 64 - first).copy_(random_tokens(1, 64 - first, 256, 4)[0]);
  model->logits(tokens, {.sample_ids = at::zeros({2}, at::kLong)});
  return first_plan_leaks(model->states(), layers_of(config), first);
}

TEST(KeyLists, AreTheDenseMaskOfEveryPattern) {
  const at::NoGradGuard no_gradient;
  std::vector<ContentCase> cases = content_cases();
  cases.push_back(
      *std::find_if(cases.begin(), cases.end(), [](const ContentCase& each) { return each.name == "lsh"; }));
  cases.back().name = "lsh, two rounds";
  std::get<LshPattern>(cases.back().config.patterns.lsh.pattern).rounds = 2;
  for (const ContentCase& each : cases) {
    Transformer model(each.config, at::TensorOptions().dtype(at::kFloat));
    model->eval();
    model->logits(random_tokens(2, 40, 256, 1), {});
    for (const Plan& plan : model->states()[1].self.plans) {
      const at::Tensor counts = plan.to_dense_counts();
      const std::int64_t head = plan.heads - 1;  // heads with a span stand alone
      const std::vector<KeyLists> lists = key_lists(plan, 1, head, 39);
      at::Tensor found = at::zeros({40, 40}, at::kInt);
      for (std::size_t query = 0; query < lists.size(); ++query) {
        for (const auto& keys : lists[query]) {
          for (const std::int32_t key : keys) found[static_cast<std::int64_t>(query)][key] += 1;
        }
      }
      EXPECT_TRUE(at::equal(found, counts[1][head])) << each.name;
    }
  }
}

TEST(FirstPlanLeaks, NamesTheRoutedHeadsOfTheLowestLayerAndNobodyInCausalModels) {
  for (const ContentCase& each : content_cases()) {
    const std::vector<PlanLeak> leaks = leaks_of(each.config, 40);
    EXPECT_EQ(leaks.empty(), each.name != "balanced") << each.name;
    for (const PlanLeak& leak : leaks) {
      EXPECT_EQ(leak.layer, 0);
      EXPECT_GE(leak.head, 2) << "the local heads come first";
      EXPECT_LT(leak.head, 4);
      EXPECT_EQ(leak.pattern, "routing");
      EXPECT_GT(leak.queries, 0);
      EXPECT_EQ(leak.later_keys, 0) << "the mask itself is right";
      EXPECT_EQ(leak.queries_checked, 41);
    }
  }
  // Routed in the second layer only: it is the second that leaks.
  ExperimentConfig top = content_cases()[5].config;
  ASSERT_EQ(top.routing.routing().selection, RoutingSelection::balanced);
  top.attention.content_layers = "top 1";
  const std::vector<PlanLeak> leaks = leaks_of(top, 40);
  ASSERT_FALSE(leaks.empty());
  EXPECT_EQ(leaks[0].layer, 1);
}

// A plan that does not depend on tokens and is wrong all the same.
TEST(FirstPlanLeaks, FindsAQueryThatReadsAKeyBehindItself) {
  const auto state_of = [](bool causal) {
    Plan tensors{.batch = 2, .heads = 1, .num_queries = 4, .num_keys = 4};
    tensors.query_order = at::arange(4, at::kInt);
    tensors.key_order = tensors.query_order;
    tensors.groups = at::tensor({0, 4, 0, 4, 0, 4, 0, 4}, at::kLong).view({2, 4});
    tensors.unit_offsets = at::tensor({0, 1, 2}, at::kLong);
    // One key behind the query where nothing forbids it.
    tensors.rules = {.lookahead = 1, .causal = causal};
    BlockState state;
    state.self.plans.push_back(complete_plan(tensors));
    return std::vector<BlockState>{state};
  };
  const std::vector<AttentionConfig> layers{{.head_groups = {HeadGroupConfig{.pattern = FullPattern{}}}}};
  const std::vector<PlanLeak> leaks = first_plan_leaks(state_of(false), layers, 2);
  ASSERT_EQ(leaks.size(), 1U);
  EXPECT_EQ(leaks[0].later_keys, 3) << "queries 0, 1 and 2 read keys 1, 2 and 3";
  EXPECT_EQ(leaks[0].queries, 0);
  EXPECT_EQ(leaks[0].pattern, "full");
  EXPECT_TRUE(first_plan_leaks(state_of(true), layers, 2).empty());
}

TEST(FirstPlanLeaks, WhatIsNotThereIsRefused) {
  EXPECT_NE(message_of<InputError>([] { first_plan_leaks(std::vector<BlockState>(2), {}, 1); }).find("2 layers, but 0"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::plan_leak_test
