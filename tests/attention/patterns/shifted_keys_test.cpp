#include "routing/attention/patterns/shifted_keys.h"

#include "routing/attention/multi_head.h"
#include "routing/attention/patterns/position_patterns.h"
#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace routing::shifted_keys_test {
namespace {

using support::random_tensor;

const at::TensorOptions kDoubles{at::kDouble};

at::Tensor parameter_of(const MultiHeadAttention& layer, const std::string& name) {
  const auto* found = layer->named_parameters().find(name);
  EXPECT_NE(found, nullptr) << name;
  return found == nullptr ? at::Tensor() : *found;
}

TEST(WithShiftedKeys, FullHeadsReadAllButTheFirstToken) {
  const TokenLayout layout = self_layout(1, 2, 4);
  const Plan plan = with_shifted_keys(full_plan(layout, true, SelfRule::allowed), layout);
  const std::vector<std::int32_t> expected{0, 0, 0, 0,   //
                                           0, 1, 0, 0,   //
                                           0, 1, 1, 0,   //
                                           0, 1, 1, 1};  //
  for (std::int64_t head = 0; head < 2; ++head) {
    EXPECT_TRUE(at::equal(plan.to_dense_counts()[0][head].flatten(), at::tensor(expected, at::kInt)));
  }
}

TEST(WithShiftedKeys, ATokenBehindPaddingHasNoKey) {
  // Tokens 1, 2 and 4 of five are real: only 2 follows a real one.
  const at::Tensor valid = at::tensor(std::vector<int>{0, 1, 1, 0, 1}, at::kInt).to(at::kBool).view({1, 5});
  const TokenLayout layout = self_layout(1, 1, 5, valid);
  const at::Tensor counts = with_shifted_keys(full_plan(layout, true, SelfRule::allowed), layout).to_dense_counts();
  EXPECT_EQ(counts.sum().item<std::int64_t>(), 2);
  EXPECT_EQ(counts[0][0][2][2].item<std::int32_t>(), 1);
  EXPECT_EQ(counts[0][0][4][2].item<std::int32_t>(), 1);
}

// Query i joins clusters C(i); it reads, list by list, the last w tokens j <= i with j - 1 in the list.
TEST(WithShiftedKeys, RoutedHeadsReadWhatFollowedTheMembersOfTheirClusters) {
  const std::int64_t tokens = 40;
  for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
    const RoutingPattern pattern{.selection = selection, .clusters = 3, .window = 5, .max_memberships = 2};
    HeadGroupConfig group{.pattern = pattern, .heads = 2, .shared_query_key = true};
    const PatternContext context{.dim = 6, .place = {.seed = 4}, .options = kDoubles};
    const TokenLayout layout = self_layout(2, 2, tokens);
    const at::Tensor q = random_tensor({2, 2, tokens, 6}, 9);
    const PlanRequest request{.layout = layout, .queries = q};
    const Plan members = make_pattern(group, context)->plan(request);
    group.key_shift = 1;
    const at::Tensor counts = make_pattern(group, context)->plan(request).to_dense_counts();
    for (std::int64_t unit = 0; unit < 4; ++unit) {
      at::Tensor expected = at::zeros({tokens, tokens}, at::kInt);
      for (std::int64_t number = unit * 3; number < (unit + 1) * 3; ++number) {
        const GroupRange range = group_range(members, number);
        const auto* position = members.query_order.data_ptr<std::int32_t>();
        for (std::int64_t query = range.q_begin; query < range.q_end; ++query) {
          std::vector<std::int32_t> seen;
          for (std::int64_t key = range.k_begin; key < range.k_end; ++key) {
            if (position[key] + 1 <= position[query]) seen.push_back(position[key] + 1);
          }
          for (std::size_t last = seen.size() > 5 ? seen.size() - 5 : 0; last < seen.size(); ++last) {
            expected[position[query]][seen[last]] += 1;
          }
        }
      }
      EXPECT_TRUE(at::equal(counts[unit / 2][unit % 2], expected)) << to_string(selection) << " unit " << unit;
    }
  }
}

TEST(ShiftedLists, AreThoseOfTheTokenBefore) {
  // Two sequences of one head; the first begins, the second goes on after a token of lists 0 and 2.
  const std::vector<TokenLists> before{{.counts = {1}, .lists = {3}}, {.counts = {2}, .lists = {0, 2}}};
  const std::vector<TokenLists> lists{{.counts = {1, 2, 1}, .lists = {4, 0, 1, 2}},
                                      {.counts = {1, 1, 2}, .lists = {4, 5, 0, 1}}};
  const std::vector<TokenLists> keys = shifted_lists(before, lists, std::vector<std::int64_t>{0, 7});
  EXPECT_EQ(keys[0].counts, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(keys[0].lists, (std::vector<std::int32_t>{4, 0, 1}));
  EXPECT_EQ(keys[1].counts, (std::vector<std::int32_t>{2, 1, 1}));
  EXPECT_EQ(keys[1].lists, (std::vector<std::int32_t>{0, 2, 4, 5}));
}

// a b c a: what came after a was b. Weights are the identity, so that values are the tokens themselves.
TEST(ShiftedKeys, AQueryFindsItsContextAndReadsWhatCameNext) {
  AttentionConfig config{
      .width = 3, .head_groups = {{.pattern = FullPattern{}, .shared_query_key = true, .key_shift = 1, .scale = 50.0}}};
  MultiHeadAttention layer(config, LayerPlace{}, kDoubles);
  layer->eval();
  const at::NoGradGuard no_gradient;
  for (const char* name : {"query_weight", "value_weight", "output_weight"}) {
    parameter_of(layer, name).copy_(at::eye(3, kDoubles));
  }
  const at::Tensor one_hot = at::eye(3, kDoubles);
  const at::Tensor input = at::stack({one_hot[0], one_hot[1], one_hot[2], one_hot[0]}).unsqueeze(0);
  AttentionState state;
  const at::Tensor output = layer->forward(input, state);
  EXPECT_LT((output[0][3] - one_hot[1]).abs().max().item<double>(), 1e-12);
  EXPECT_EQ(output[0][0].abs().max().item<double>(), 0.0) << "the first token reads nothing";
}

AttentionConfig one_routed_head() {
  return {.width = 8,
          .head_dim = 4,
          .initial_scale = 1.0,
          .head_groups = {{.pattern = RoutingPattern{.clusters = 1, .window = 9},
                           .heads = 2,
                           .shared_query_key = true,
                           .key_shift = 1,
                           .scale = 0.7,
                           .learned_scale = true}}};
}

// One cluster: all keys of a window of 9, by the formula.
TEST(ShiftedKeys, WithALearnedScaleEqualTheFormula) {
  MultiHeadAttention layer(one_routed_head(), LayerPlace{}, kDoubles);
  layer->eval();
  const at::NoGradGuard no_gradient;
  parameter_of(layer, "group0_log_scale").copy_(at::tensor(std::vector<double>{0.3, -1.1}, kDoubles));
  const std::int64_t n = 14;
  const at::Tensor x = random_tensor({2, n, 8}, 3);
  AttentionState state;
  const at::Tensor output = layer->forward(x, state);
  const auto heads = [&](const char* name) {
    return at::matmul(x, parameter_of(layer, name).t()).view({2, n, 2, 4}).transpose(1, 2);
  };
  const at::Tensor q = at::layer_norm(heads("query_weight"), {4}, {}, {}, 1e-6);
  const at::Tensor v = heads("value_weight");
  at::Tensor mixed = at::zeros({2, 2, n, 4}, kDoubles);
  for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
    for (std::int64_t head = 0; head < 2; ++head) {
      const double scale = 0.7 * std::exp(head == 0 ? 0.3 : -1.1);
      for (std::int64_t i = 1; i < n; ++i) {
        const std::int64_t first = std::max<std::int64_t>(1, i - 8);
        const at::Tensor logits =
            scale * at::mv(q[sequence][head].narrow(0, first - 1, i - first + 1), q[sequence][head][i]);
        mixed[sequence][head][i].copy_(
            at::mv(v[sequence][head].narrow(0, first, i - first + 1).t(), at::softmax(logits, 0)));
      }
    }
  }
  const at::Tensor expected = at::matmul(mixed.transpose(1, 2).flatten(2), parameter_of(layer, "output_weight").t());
  EXPECT_LT((output - expected).abs().max().item<double>(), 1e-12);
}

TEST(ShiftedKeys, HaveTheGradientsOfFiniteDifferences) {
  MultiHeadAttention layer(one_routed_head(), LayerPlace{}, kDoubles);
  layer->eval();
  const at::Tensor scale = parameter_of(layer, "group0_log_scale");
  const at::Tensor weight = parameter_of(layer, "query_weight");
  const auto output = [&](const std::vector<at::Tensor>& inputs) {
    // The layer's own tensors, as functions of the inputs.
    scale.set_data(inputs[1].detach());
    weight.set_data(inputs[2].detach());
    AttentionState state;
    return layer->forward(inputs[0], state).flatten();
  };
  // Autograd reaches the layer's own leaves, so they are compared by themselves.
  const at::Tensor x = random_tensor({1, 6, 8}, 5).requires_grad_();
  EXPECT_LT(support::directional_error(
                [&](const auto& inputs) {
                  return output({inputs[0], scale, weight});
                },
                {x.detach()}, 4),
            1e-6);
  const at::Tensor direction = random_tensor({48}, 6);
  const auto loss = [&](double step, const at::Tensor& along_scale, const at::Tensor& along_weight) {
    const at::NoGradGuard no_gradient;
    return output({x.detach(), scale + step * along_scale, weight + step * along_weight}).dot(direction).item<double>();
  };
  layer->zero_grad();
  AttentionState state;
  layer->forward(x.detach(), state).flatten().dot(direction).backward();
  const at::Tensor d_scale = scale.grad().clone();
  const at::Tensor d_weight = weight.grad().clone();
  const at::Tensor scale_before = scale.detach().clone();
  const at::Tensor weight_before = weight.detach().clone();
  const auto difference = [&](const at::Tensor& along_scale, const at::Tensor& along_weight) {
    const double step = 1e-5;
    const double above = loss(step, along_scale, along_weight);
    scale.set_data(scale_before);
    weight.set_data(weight_before);
    const double below = loss(-step, along_scale, along_weight);
    scale.set_data(scale_before);
    weight.set_data(weight_before);
    return (above - below) / (2.0 * step);
  };
  const at::Tensor along_scale = random_tensor({2}, 7);
  const at::Tensor along_weight = random_tensor({8, 8}, 8);
  EXPECT_NEAR(difference(along_scale, at::zeros_like(along_weight)), (d_scale * along_scale).sum().item<double>(),
              1e-7);
  EXPECT_NEAR(difference(at::zeros_like(along_scale), along_weight), (d_weight * along_weight).sum().item<double>(),
              1e-6);
}

// At the start a layer computes what it would without them; its other weights are the same numbers.
TEST(AddedHeads, AreSilentAtTheStart) {
  const HeadGroupConfig local{
      .pattern = LocalPattern{.window = 4}, .heads = 2, .relative = RelativePosition::true_offset, .max_relative = 3};
  HeadGroupConfig added = one_routed_head().head_groups[0];
  added.added = true;
  const AttentionConfig alone{.width = 8, .head_dim = 4, .initial_scale = 1.0, .head_groups = {local}};
  AttentionConfig both = alone;
  both.head_groups.push_back(added);
  MultiHeadAttention before(alone, LayerPlace{}, kDoubles);
  MultiHeadAttention after(both, LayerPlace{}, kDoubles);
  for (const char* name : {"query_weight", "key_weight", "value_weight"}) {
    EXPECT_TRUE(at::equal(parameter_of(after, name).narrow(0, 0, 8), parameter_of(before, name))) << name;
  }
  EXPECT_EQ(parameter_of(after, "query_weight").size(0), 16);
  EXPECT_EQ(parameter_of(after, "key_weight").size(0), 8) << "added heads share queries and keys";
  EXPECT_TRUE(at::equal(parameter_of(after, "output_weight").narrow(1, 0, 8), parameter_of(before, "output_weight")));
  // Drawn like the others, from a stream of their own.
  const at::Tensor drawn = parameter_of(after, "query_weight").narrow(0, 8, 8);
  EXPECT_FALSE(at::equal(drawn, parameter_of(before, "query_weight")));
  EXPECT_NEAR(drawn.std().item<double>(), parameter_of(before, "query_weight").std().item<double>(), 0.1);

  const at::Tensor x = random_tensor({2, 10, 8}, 3);
  AttentionState state;
  AttentionState other;
  const at::Tensor output = after->forward(x, state);
  EXPECT_LT((output - before->forward(x, other)).abs().max().item<double>(), 1e-14);
  // They do learn: a gradient reaches the columns that read them.
  output.square().sum().backward();
  EXPECT_GT(parameter_of(after, "output_weight").grad().narrow(1, 8, 8).abs().max().item<double>(), 1e-3);
}

TEST(AddedHeads, ComeLast) {
  HeadGroupConfig added{.pattern = FullPattern{}};
  added.added = true;
  const AttentionConfig config{
      .width = 8, .head_dim = 4, .head_groups = {added, {.pattern = LocalPattern{.window = 4}}}};
  EXPECT_NE(message_of<ConfigError>([&] { validate(config); }).find("added heads come last"), std::string::npos);
}

TEST(ShiftedKeys, AreForCausalHeadsThatShareQueriesAndKeys) {
  HeadGroupConfig group{.pattern = FullPattern{}, .shared_query_key = true, .key_shift = 1};
  const auto message = [&](AttentionKind kind) {
    return message_of<ConfigError>([&] { validate_head_group("group", group, kind); });
  };
  EXPECT_NE(message(AttentionKind::bidirectional_self).find("only causal self-attention"), std::string::npos);
  group.shared_query_key = false;
  EXPECT_NE(message(AttentionKind::causal_self).find("shared_query_key is false"), std::string::npos);
  group.shared_query_key = true;
  group.key_shift = 2;
  EXPECT_NE(message(AttentionKind::causal_self).find("key_shift is 2"), std::string::npos);
}

}  // namespace
}  // namespace routing::shifted_keys_test
