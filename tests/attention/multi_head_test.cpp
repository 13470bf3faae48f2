#include "routing/attention/multi_head.h"

#include "routing/attention/patterns/position_patterns.h"
#include "routing/core/error.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <cmath>

namespace routing::multi_head_test {
namespace {

using support::random_tensor;

const at::TensorOptions kDoubles{at::kDouble};

AttentionConfig mixed_config() {
  return {.width = 24,
          .head_groups = {{.pattern = LocalPattern{.window = 4},
                           .heads = 2,
                           .relative = RelativePosition::true_offset,
                           .max_relative = 3},
                          {.pattern = LshPattern{.buckets = 4, .window = 6},
                           .heads = 1,
                           .shared_query_key = true,
                           .self = SelfRule::only_if_alone},
                          {.pattern = FullPattern{}, .heads = 1, .scale = 1.0}}};
}

at::Tensor parameter(const MultiHeadAttention& layer, const std::string& name) {
  const auto* found = layer->named_parameters().find(name);
  EXPECT_NE(found, nullptr) << name;
  return found == nullptr ? at::Tensor() : *found;
}

// Written out head by head: slices of the weights, dense softmax, concatenation, output projection.
TEST(MultiHeadAttention, EqualsHeadsComputedOneByOne) {
  MultiHeadAttention layer(mixed_config(), LayerPlace{}, kDoubles);
  layer->eval();
  const at::Tensor x = random_tensor({2, 15, 24}, 1);
  AttentionState state;
  const at::Tensor output = layer->forward(x, state);
  ASSERT_EQ(state.plans.size(), 3U);

  std::vector<at::Tensor> heads;
  const int head_dim = 6;
  const int group_of_head[] = {0, 0, 1, 2};
  const int head_in_group[] = {0, 1, 0, 0};
  const int key_head[] = {0, 1, -1, 2};
  const double scale[] = {1.0 / std::sqrt(6.0), 1.0 / std::sqrt(6.0), 1.0 / std::sqrt(6.0), 1.0};
  for (int head = 0; head < 4; ++head) {
    const auto project = [&](const std::string& name, int index) {
      return at::matmul(x, parameter(layer, name).narrow(0, index * head_dim, head_dim).t());
    };
    const at::Tensor q = project("query_weight", head);
    const at::Tensor k = key_head[head] >= 0 ? project("key_weight", key_head[head]) : q / q.norm(2, -1, true);
    const at::Tensor v = project("value_weight", head);
    at::Tensor logits = at::bmm(q, k.transpose(1, 2));
    at::Tensor extra = at::zeros_like(q);
    const at::Tensor offset = (at::arange(15).view({1, 15}) - at::arange(15).view({15, 1})).clamp(-3, 3) + 3;
    if (group_of_head[head] == 0) {
      logits =
          logits +
          at::matmul(q, parameter(layer, "group0_relative_key").t()).gather(2, offset.unsqueeze(0).expand({2, 15, 15}));
    }
    const at::Tensor visible =
        state.plans[static_cast<std::size_t>(group_of_head[head])].to_dense_counts().select(1, head_in_group[head]) > 0;
    const at::Tensor p = (logits * scale[head]).masked_fill(visible.logical_not(), -INFINITY).softmax(-1);
    if (group_of_head[head] == 0) {
      extra = (p.unsqueeze(3) *
               parameter(layer, "group0_relative_value").index_select(0, offset.flatten()).view({1, 15, 15, 6}))
                  .sum(2);
    }
    heads.push_back(at::bmm(p, v) + extra);
  }
  const at::Tensor expected = at::matmul(at::cat(heads, 2), parameter(layer, "output_weight").t());
  EXPECT_LT((output - expected).abs().max().item<double>(), 1e-12);
}

TEST(MultiHeadAttention, SharedHeadsHaveNoKeyColumns) {
  MultiHeadAttention layer(mixed_config(), LayerPlace{}, kDoubles);
  EXPECT_EQ(parameter(layer, "query_weight").sizes(), at::IntArrayRef({24, 24}));
  EXPECT_EQ(parameter(layer, "key_weight").sizes(), at::IntArrayRef({18, 24}));
  AttentionConfig all_shared = mixed_config();
  all_shared.head_groups = {mixed_config().head_groups[1]};
  MultiHeadAttention without_keys(all_shared, LayerPlace{}, kDoubles);
  EXPECT_EQ(without_keys->named_parameters().find("key_weight"), nullptr);
  AttentionState state;
  EXPECT_EQ(without_keys->forward(random_tensor({1, 5, 24}, 1), state).sizes(), at::IntArrayRef({1, 5, 24}));
}

TEST(MultiHeadAttention, GradientsReachEveryParameterAndTheInput) {
  MultiHeadAttention layer(mixed_config(), LayerPlace{}, kDoubles);
  at::Tensor x = random_tensor({2, 15, 24}, 1).set_requires_grad(true);
  AttentionState state;
  layer->forward(x, state).square().sum().backward();
  for (const auto& item : layer->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0) << item.key();
  }
  EXPECT_GT(x.grad().abs().max().item<double>(), 0.0);
}

TEST(MultiHeadAttention, EveryParameterHasAPlaceWhereAnotherMayStandInForIt) {
  MultiHeadAttention layer(mixed_config(), LayerPlace{}, kDoubles);
  layer->eval();
  const at::Tensor x = random_tensor({2, 15, 24}, 1);
  const auto output = [&] {
    AttentionState state;
    return layer->forward(x, state);
  };
  const at::Tensor before = output();
  for (const auto& item : layer->named_parameters()) {
    const std::vector<at::Tensor*> places = layer->places_of(item.value());
    ASSERT_EQ(places.size(), 1U) << item.key();
    at::Tensor other = (item.value().detach() + 0.1).requires_grad_();
    *places[0] = other;
    const at::Tensor changed = output();
    EXPECT_FALSE(changed.equal(before)) << item.key();
    changed.square().sum().backward();
    EXPECT_TRUE(other.grad().defined() && other.grad().abs().sum().item<double>() > 0.0) << item.key();
    *places[0] = item.value();
    EXPECT_TRUE(output().equal(before)) << item.key();
  }
  EXPECT_TRUE(layer->places_of(at::zeros({1})).empty());
}

TEST(MultiHeadAttention, WeightsFollowTheSeedAndTheLayerWithinTheAuthorsLimit) {
  const auto weights = [](LayerPlace place) {
    return parameter(MultiHeadAttention(mixed_config(), place, kDoubles), "query_weight");
  };
  EXPECT_TRUE(weights({.seed = 1, .layer = 0}).equal(weights({.seed = 1, .layer = 0})));
  EXPECT_FALSE(weights({.seed = 1, .layer = 0}).equal(weights({.seed = 1, .layer = 1})));
  EXPECT_FALSE(weights({.seed = 1, .layer = 0}).equal(weights({.seed = 2, .layer = 0})));
  EXPECT_FALSE(weights({.part = "decoder self"}).equal(weights({.part = "encoder self"})));
  // sqrt(3 * 0.2 / 24) = 0.158; 576 uniform draws come close to it.
  const double largest = weights({}).abs().max().item<double>();
  EXPECT_LT(largest, std::sqrt(0.6 / 24.0));
  EXPECT_GT(largest, 0.95 * std::sqrt(0.6 / 24.0));
}

// Padding changes nothing for the real tokens: a padded sequence equals the short one.
TEST(MultiHeadAttention, PaddedSequencesEqualShortOnes) {
  AttentionConfig config = mixed_config();
  config.head_groups[1].pattern = RandomPattern{.groups = 3, .window = 5};
  config.head_groups[1].shared_query_key = false;
  for (const AttentionKind kind : {AttentionKind::causal_self, AttentionKind::bidirectional_self}) {
    config.kind = kind;
    MultiHeadAttention layer(config, LayerPlace{}, kDoubles);
    layer->eval();
    at::Tensor x = random_tensor({2, 12, 24}, 1);
    at::Tensor valid = at::ones({2, 12}, at::kBool);
    valid[1].narrow(0, 7, 5).fill_(false);
    AttentionState padded{.valid = valid};
    const at::Tensor output = layer->forward(x, padded);
    AttentionState alone;
    const at::Tensor expected = layer->forward(x.narrow(0, 1, 1).narrow(1, 0, 7), alone);
    EXPECT_LT((output[1].narrow(0, 0, 7) - expected[0]).abs().max().item<double>(), 1e-12);
    EXPECT_EQ(output[1].narrow(0, 7, 5).abs().max().item<double>(), 0.0);
    // And what stands in the padding is never read.
    x[1].narrow(0, 7, 5).fill_(1e6);
    AttentionState again{.valid = valid};
    EXPECT_TRUE(layer->forward(x, again)[1].equal(output[1]));
  }
}

TEST(MultiHeadAttention, CrossAttentionReadsTheMemoryOnly) {
  AttentionConfig config{
      .kind = AttentionKind::cross, .width = 8, .head_groups = {{.pattern = FullPattern{}, .heads = 2}}};
  MultiHeadAttention layer(config, LayerPlace{}, kDoubles);
  const at::Tensor x = random_tensor({1, 5, 8}, 1);
  const at::Tensor memory = random_tensor({1, 9, 8}, 2);
  AttentionState state{.memory = memory};
  const at::Tensor output = layer->forward(x, state);
  EXPECT_EQ(output.sizes(), at::IntArrayRef({1, 5, 8}));
  EXPECT_EQ(state.plans[0].num_keys, 9);
  at::Tensor memory_valid = at::ones({1, 9}, at::kBool);
  memory_valid[0][8] = false;
  AttentionState shorter{.memory = memory.narrow(1, 0, 8)};
  AttentionState masked{.memory = memory, .memory_valid = memory_valid};
  EXPECT_LT((layer->forward(x, shorter) - layer->forward(x, masked)).abs().max().item<double>(), 1e-12);
}

TEST(MultiHeadAttention, RandomPatternsAreRedrawnInTrainingAndFixedInEvaluation) {
  AttentionConfig config{.width = 8, .head_groups = {{.pattern = RandomPattern{.groups = 4, .window = 6}, .heads = 2}}};
  MultiHeadAttention layer(config, LayerPlace{}, kDoubles);
  const at::Tensor x = random_tensor({1, 40, 8}, 1);
  const auto plan_at = [&](bool training, std::uint64_t step) {
    layer->train(training);
    AttentionState state{.step = step};
    layer->forward(x, state);
    return state.plans[0];
  };
  EXPECT_TRUE(plan_at(true, 1) == plan_at(true, 1));
  EXPECT_FALSE(plan_at(true, 1) == plan_at(true, 2));
  EXPECT_TRUE(plan_at(false, 1) == plan_at(false, 2));
}

TEST(MultiHeadAttention, DropsOutInTrainingOnlyAndAnewAtEachStep) {
  AttentionConfig config = mixed_config();
  config.dropout = 0.5;
  MultiHeadAttention layer(config, LayerPlace{}, kDoubles);
  const at::Tensor x = random_tensor({2, 15, 24}, 1);
  const auto output_at = [&](bool training, std::uint64_t step) {
    layer->train(training);
    AttentionState state{.step = step};
    return layer->forward(x, state);
  };
  EXPECT_TRUE(output_at(true, 1).equal(output_at(true, 1)));
  EXPECT_FALSE(output_at(true, 1).equal(output_at(true, 2)));
  EXPECT_FALSE(output_at(true, 1).equal(output_at(false, 1)));
  EXPECT_TRUE(output_at(false, 1).equal(output_at(false, 2)));
}

TEST(MultiHeadAttention, ReusedPlansAreNotMadeAnew) {
  MultiHeadAttention layer(mixed_config(), LayerPlace{}, kDoubles);
  AttentionState state;
  const at::Tensor x = random_tensor({1, 15, 24}, 1);
  const at::Tensor output = layer->forward(x, state);
  state.reuse_plans = true;
  EXPECT_TRUE(layer->forward(x, state).equal(output));
  // Over other input the same plans, not the ones its own content would give.
  const Plan lsh = state.plans[1];
  layer->forward(random_tensor({1, 15, 24}, 2), state);
  EXPECT_TRUE(state.plans[1] == lsh);
  AttentionState fresh;
  layer->forward(random_tensor({1, 15, 24}, 2), fresh);
  EXPECT_FALSE(fresh.plans[1] == lsh);
}

TEST(MultiHeadAttention, PrecisionOfTheProjectionsIsThatOfTheState) {
  AttentionConfig config = mixed_config();
  config.head_groups = {{.pattern = FullPattern{}, .heads = 4}};
  MultiHeadAttention layer(config, LayerPlace{}, at::TensorOptions(at::kFloat));
  layer->eval();
  const at::Tensor x = random_tensor({2, 15, 24}, 1).to(at::kFloat);
  AttentionState exact;
  AttentionState rounding{.precision = MatmulPrecision::bf16};
  const at::Tensor output = layer->forward(x, exact);
  const at::Tensor rounded = layer->forward(x, rounding);
  EXPECT_FALSE(rounded.equal(output));
  // Two products in a row, each of factors rounded by at most 2^-9.
  EXPECT_LT((rounded - output).norm().item<double>(), 4.0 * 0x1.0p-8 * output.norm().item<double>());
}

// ALiBi by its formula: the logits of full head h lose 2^(-16 (h+1) / heads) for every token between query and key.
TEST(MultiHeadAttention, RecencyLowersTheLogitsOfDistantKeys) {
  AttentionConfig config;
  config.width = 12;
  config.head_groups = {{.pattern = FullPattern{},
                         .heads = 3,
                         .relative = RelativePosition::true_offset,
                         .max_relative = 2,
                         .recency = true}};
  MultiHeadAttention layer(config, LayerPlace{}, at::TensorOptions(at::kDouble));
  const at::Tensor x = random_tensor({2, 9, 12}, 1);
  AttentionState state;
  const at::Tensor output = layer->forward(x, state);
  const auto project = [&](const char* name) {
    return at::matmul(x, parameter(layer, name).t()).view({2, 9, 3, 4}).transpose(1, 2);
  };
  const at::Tensor q = project("query_weight");
  const at::Tensor offset = at::arange(9).unsqueeze(0) - at::arange(9).unsqueeze(1);  // key minus query
  const at::Tensor rows = offset.clamp(-2, 2) + 2;
  const at::Tensor relative_key =
      parameter(layer, "group0_relative_key").index_select(0, rows.flatten()).view({9, 9, 4});
  const at::Tensor relative_value =
      parameter(layer, "group0_relative_value").index_select(0, rows.flatten()).view({9, 9, 4});
  at::Tensor logits =
      at::matmul(q, project("key_weight").transpose(2, 3)) + at::einsum("bhid,ijd->bhij", {q, relative_key});
  logits = logits / 2.0;
  for (std::int64_t head = 0; head < 3; ++head) {
    logits.select(1, head).add_(offset.to(at::kDouble) * std::exp2(-16.0 * static_cast<double>(head + 1) / 3.0));
  }
  const at::Tensor weights = at::softmax(logits.masked_fill(offset > 0, -INFINITY), -1);
  const at::Tensor mixed =
      at::matmul(weights, project("value_weight")) + at::einsum("bhij,ijd->bhid", {weights, relative_value});
  const at::Tensor expected = at::matmul(mixed.transpose(1, 2).flatten(2), parameter(layer, "output_weight").t());
  EXPECT_TRUE(at::allclose(output, expected, 1e-10, 1e-12));
  config.head_groups[0].recency = false;
  AttentionState plain;
  EXPECT_FALSE(at::allclose(MultiHeadAttention(config, LayerPlace{}, at::TensorOptions(at::kDouble))->forward(x, plain),
                            expected, 1e-3, 1e-3));
}

TEST(MultiHeadAttention, CanBeBuiltOnTheMetaDevice) {
  MultiHeadAttention layer(mixed_config(), LayerPlace{}, at::TensorOptions(at::kMeta));
  EXPECT_EQ(parameter(layer, "query_weight").numel(), 24 * 24);
  for (const auto& item : layer->named_buffers()) EXPECT_TRUE(item.value().is_meta()) << item.key();
  EXPECT_EQ(layer->named_buffers().size(), 1U);
}

TEST(MultiHeadAttention, BadCallsAreRefused) {
  MultiHeadAttention layer(mixed_config(), LayerPlace{}, kDoubles);
  AttentionState state;
  EXPECT_THROW(layer->forward(random_tensor({1, 5, 23}, 1), state), InputError);
  AttentionState with_memory{.memory = random_tensor({1, 5, 24}, 1)};
  EXPECT_THROW(layer->forward(random_tensor({1, 5, 24}, 1), with_memory), InputError);
  AttentionState wrong_mask{.valid = at::ones({1, 6}, at::kBool)};
  EXPECT_THROW(layer->forward(random_tensor({1, 5, 24}, 1), wrong_mask), InputError);
  AttentionState no_plans{.reuse_plans = true};
  EXPECT_THROW(layer->forward(random_tensor({1, 5, 24}, 1), no_plans), InputError);
  AttentionConfig bad = mixed_config();
  bad.head_groups[0].heads = 3;
  EXPECT_THROW(MultiHeadAttention(bad, LayerPlace{}, kDoubles), ConfigError);
}

}  // namespace
}  // namespace routing::multi_head_test
