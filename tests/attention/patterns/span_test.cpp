#include "routing/attention/patterns/span.h"

#include "routing/attention/multi_head.h"
#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing::span_test {
namespace {

using support::random_tensor;

std::shared_ptr<SpanHeads> heads_with(const SpanPattern& pattern, at::ScalarType type = at::kDouble) {
  const auto made = make_pattern({.pattern = pattern}, {.dim = 4, .options = at::TensorOptions(type)});
  return std::dynamic_pointer_cast<SpanHeads>(made);
}

// The share that makes z = span.
SpanPattern pattern_at(double span, std::int64_t limit = 16, std::int64_t ramp = 4) {
  return {.limit = limit, .ramp = ramp, .initial = span / static_cast<double>(limit)};
}

// One layer with the given groups, in double.
MultiHeadAttention layer_of(std::vector<HeadGroupConfig> groups, std::int64_t width,
                            AttentionKind kind = AttentionKind::causal_self) {
  MultiHeadAttention layer(
      AttentionConfig{.kind = kind, .width = width, .initial_scale = 4.0, .head_groups = std::move(groups)},
      LayerPlace{.seed = 3}, at::TensorOptions(at::kDouble));
  layer->eval();
  return layer;
}

at::Tensor parameter(MultiHeadAttention& layer, const std::string& name) {
  return layer->named_parameters()[name];
}

// The layer by its formula, for one group of one head per span: dense matrices with m as a factor of exp(s), and
// nothing of plans, tables or columns. `valid` bool [tokens].
at::Tensor dense_layer(MultiHeadAttention& layer, const at::Tensor& input, const std::vector<at::Tensor>& spans,
                       const at::Tensor& valid = {}) {
  const AttentionConfig& config = layer->config();
  const std::int64_t n = input.size(1);
  const std::int64_t dim = head_dim(config);
  const auto heads_of = [&](const char* weight) {
    return at::matmul(input, parameter(layer, weight).t()).view({input.size(0), n, -1, dim}).transpose(1, 2);
  };
  const at::Tensor q = heads_of("query_weight");
  const at::Tensor k = heads_of("key_weight");
  const at::Tensor v = heads_of("value_weight");
  const at::Tensor places = at::arange(n, at::kDouble);
  const at::Tensor back = places.unsqueeze(1) - places;  // i - j
  std::vector<at::Tensor> outputs;
  for (std::size_t head = 0; head < spans.size(); ++head) {
    const HeadGroupConfig& group = config.head_groups[head];
    const auto& pattern = std::get<SpanPattern>(group.pattern);
    const auto index = static_cast<std::int64_t>(head);
    at::Tensor score = at::matmul(q.select(1, index), k.select(1, index).transpose(1, 2));
    at::Tensor values_of_pair = v.select(1, index).unsqueeze(1);  // [batch, 1, keys, dim]
    if (group.relative != RelativePosition::none) {
      const at::Tensor row = (-back).clamp(-group.max_relative, group.max_relative).to(at::kLong) + group.max_relative;
      const at::Tensor a = parameter(layer, "group0_relative_key").index({row});
      score = score + (q.select(1, index).unsqueeze(2) * a).sum(-1);
      values_of_pair = values_of_pair + parameter(layer, "group0_relative_value").index({row});
    }
    const at::Tensor distance = config.kind == AttentionKind::causal_self ? back : back.abs();
    const auto ramp = static_cast<double>(pattern.ramp);
    at::Tensor m = ((spans[head] + ramp - distance) / ramp).clamp(0.0, 1.0);
    m = m * (distance < static_cast<double>(pattern.limit)) * (distance >= 0);
    if (valid.defined()) m = m * valid.to(at::kDouble);
    const at::Tensor weights = m * (score / std::sqrt(static_cast<double>(dim))).exp();
    outputs.push_back(((weights / weights.sum(-1, true)).unsqueeze(-1) * values_of_pair).sum(2));
  }
  at::Tensor merged = at::stack(outputs, 2).flatten(2);
  if (valid.defined()) merged = merged.masked_fill(valid.logical_not().unsqueeze(-1), 0.0);
  return at::matmul(merged, parameter(layer, "output_weight").t());
}

TEST(Span, WeightsAreOneInsideTheSpanAndFallAlongTheRamp) {
  const SpanPattern pattern = pattern_at(2.0);
  const std::vector<double> by_hand{1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0};
  for (std::size_t x = 0; x < by_hand.size(); ++x) {
    EXPECT_DOUBLE_EQ(span_weight(pattern, 2.0, static_cast<std::int64_t>(x)), by_hand[x]) << "distance " << x;
  }
  EXPECT_DOUBLE_EQ(span_weight(pattern, 2.5, 4), 0.625);
  EXPECT_DOUBLE_EQ(span_weight(pattern, 0.0, 0), 1.0) << "a token always reads itself";
}

TEST(Span, KeysAreThoseWhoseWeightIsAboveZeroAndBelowTheLimit) {
  const SpanPattern pattern = pattern_at(0.0);
  EXPECT_EQ(span_keys(pattern, 0.0), 4);  // 1, 3/4, 1/2, 1/4
  EXPECT_EQ(span_keys(pattern, 2.0), 6);
  EXPECT_EQ(span_keys(pattern, 2.001), 7);
  EXPECT_EQ(span_keys(pattern, 11.999), 16);
  EXPECT_EQ(span_keys(pattern, 16.0), 16) << "the limit";
  EXPECT_EQ(span_keys({.limit = 5, .ramp = 1}, 0.0), 1);
  for (const double span : {0.0, 0.3, 1.0, 2.0 - 1e-12, 2.0 + 1e-12, 7.77}) {
    const std::int64_t keys = span_keys(pattern, span);
    EXPECT_GT(span_weight(pattern, span, keys - 1), 0.0) << span;
    EXPECT_EQ(span_weight(pattern, span, keys), 0.0) << span;
  }
}

TEST(Span, LogWeightsAreThoseWorkedOutByHand) {
  const auto heads = heads_with(pattern_at(2.0));
  EXPECT_DOUBLE_EQ(heads->span(), 2.0);
  EXPECT_EQ(heads->keys(), 6);
  const at::Tensor logs = heads->log_weights();
  ASSERT_EQ(logs.size(0), 7);
  const std::vector<double> by_hand{0.0, 0.0, 0.0, std::log(0.75), std::log(0.5), std::log(0.25)};
  for (std::size_t x = 0; x < by_hand.size(); ++x) {
    EXPECT_DOUBLE_EQ(logs[static_cast<std::int64_t>(x)].item<double>(), by_hand[x]) << "distance " << x;
  }
  EXPECT_EQ(std::exp(logs[6].item<double>()), 0.0) << "what lies farther away does not count";
}

// d log m / dz = 1 / (ramp + z - x) on the ramp: 1/3 + 1/2 + 1 at z = 2.
TEST(Span, LogWeightsAreDifferentiatedOnTheRampOnly) {
  const auto heads = heads_with(pattern_at(2.0));
  heads->log_weights().narrow(0, 0, 6).sum().backward();
  EXPECT_DOUBLE_EQ(heads->parameters().front().grad().item<double>(), 16.0 * (1.0 / 3 + 1.0 / 2 + 1.0));
}

TEST(Span, SharesAreClampedToTheirBounds) {
  const auto heads = heads_with(pattern_at(3.0));
  const at::NoGradGuard no_gradient;
  heads->parameters().front().fill_(1.25);
  heads->clamp();
  EXPECT_DOUBLE_EQ(heads->span(), 16.0);
  heads->parameters().front().fill_(-0.25);
  heads->clamp();
  EXPECT_DOUBLE_EQ(heads->span(), 0.0);
  EXPECT_EQ(heads->keys(), 4);
}

// Three heads of different spans at several lengths: spans 0, inside, near a whole number, at the limit.
TEST(Span, LayersEqualTheDenseFormula) {
  for (const RelativePosition relative : {RelativePosition::true_offset, RelativePosition::none}) {
    for (const std::vector<double>& spans :
         {std::vector<double>{0.0, 2.6, 16.0}, std::vector<double>{3.0, 4.0 + 1e-9, 12.5}}) {
      std::vector<HeadGroupConfig> groups;
      for (const double span : spans) {
        HeadGroupConfig group{.pattern = pattern_at(span), .relative = relative, .max_relative = 10};
        groups.push_back(group);
      }
      // Alike but for where they begin, so that they share tables.
      for (HeadGroupConfig& group : groups) group.pattern = pattern_at(0.0);
      MultiHeadAttention layer = layer_of(groups, 12);
      std::vector<at::Tensor> given;
      for (std::size_t head = 0; head < spans.size(); ++head) {
        const at::NoGradGuard no_gradient;
        parameter(layer, "group" + std::to_string(head) + ".span_share").fill_(spans[head] / 16.0);
        given.push_back(at::full({1}, spans[head], at::kDouble));
      }
      for (const std::int64_t tokens : {1, 2, 5, 17, 70}) {
        const at::Tensor input = random_tensor({2, tokens, 12}, 5);
        AttentionState state;
        const at::Tensor difference = layer->forward(input, state) - dense_layer(layer, input, given);
        EXPECT_LT(difference.abs().max().item<double>(), 1e-12) << tokens << " tokens, spans from " << spans[0];
        EXPECT_EQ(state.plans[1].rules.lookback, span_keys(pattern_at(0.0), spans[1]));
      }
    }
  }
}

TEST(Span, HeadsOfAnEncoderReadAsFarOnBothSides) {
  const HeadGroupConfig group{.pattern = pattern_at(2.6), .relative = RelativePosition::true_offset, .max_relative = 9};
  MultiHeadAttention layer = layer_of({group}, 4, AttentionKind::bidirectional_self);
  const at::Tensor input = random_tensor({1, 19, 4}, 6);
  AttentionState state;
  const at::Tensor expected = dense_layer(layer, input, {at::full({1}, 2.6, at::kDouble)});
  EXPECT_LT((layer->forward(input, state) - expected).abs().max().item<double>(), 1e-12);
}

// Padding between tokens brings far ones near in the list of keys, but not in distance.
TEST(Span, DistancesCountPaddingToo) {
  const HeadGroupConfig group{.pattern = pattern_at(1.5), .relative = RelativePosition::true_offset, .max_relative = 9};
  MultiHeadAttention layer = layer_of({group}, 4);
  const at::Tensor input = random_tensor({1, 30, 4}, 7);
  at::Tensor valid = at::ones({1, 30}, at::kBool);
  valid[0].narrow(0, 8, 11).fill_(false);
  valid[0][22] = false;
  AttentionState state{.valid = valid};
  const at::Tensor expected = dense_layer(layer, input, {at::full({1}, 1.5, at::kDouble)}, valid[0]);
  EXPECT_LT((layer->forward(input, state) - expected).abs().max().item<double>(), 1e-12);
}

// Central differences of the dense formula, which has no log m that could run away.
TEST(Span, GradientsInTheSpanEqualFiniteDifferences) {
  const HeadGroupConfig group{.pattern = pattern_at(0.0), .relative = RelativePosition::true_offset, .max_relative = 9};
  MultiHeadAttention layer = layer_of({group}, 4);
  const at::Tensor input = random_tensor({2, 40, 4}, 8);
  const at::Tensor direction = random_tensor({2, 40, 4}, 9);
  const at::Tensor share = parameter(layer, "group0.span_share");
  // Inside, at the ends of the ramp on either side of a whole number, and where the limit cuts the ramp off.
  for (const double span : {0.4, 2.5, 3.0 - 1e-4, 3.0 + 1e-4, 3.0 + 1e-7, 13.3, 14.9, 15.5}) {
    {
      const at::NoGradGuard no_gradient;
      share.fill_(span / 16.0);
    }
    const double exact_span = share.item<double>() * 16.0;
    share.mutable_grad().reset();
    AttentionState state;
    (layer->forward(input, state) * direction).sum().backward();
    const auto value = [&](double at) {
      const at::NoGradGuard no_gradient;
      return (dense_layer(layer, input, {at::full({1}, at, at::kDouble)}) * direction).sum().item<double>();
    };
    const double step = span == 3.0 + 1e-7 ? 2e-8 : 1e-5;
    const double difference = (value(exact_span + step) - value(exact_span - step)) / (2 * step);
    const double gradient = share.grad().item<double>() / 16.0;
    EXPECT_NEAR(gradient, difference, 1e-6 * std::max(1.0, std::abs(difference))) << "span " << span;
    EXPECT_EQ(std::abs(gradient) > 1e-6, span < 15.0) << "beyond the last key of the limit nothing changes";
  }
}

// Just above a whole number, the last key weighs next to nothing, and its log m is steep.
TEST(Span, GradientsInFloat32StayRightWhereTheLastKeyFades) {
  const HeadGroupConfig group{
      .pattern = pattern_at(0.0, 256, 32), .relative = RelativePosition::true_offset, .max_relative = 64};
  const AttentionConfig config{.width = 16, .initial_scale = 4.0, .head_groups = {group}};
  MultiHeadAttention exact(config, LayerPlace{}, at::TensorOptions(at::kDouble));
  MultiHeadAttention fused(config, LayerPlace{}, at::TensorOptions(at::kFloat));
  const at::Tensor input = random_tensor({1, 150, 16}, 10, at::kFloat);
  const at::Tensor direction = random_tensor({1, 150, 16}, 11, at::kFloat);
  for (const double excess : {0.0, 1e-5, 1e-2, 0.5}) {
    const auto gradient = [&](MultiHeadAttention& layer) {
      const at::Tensor share = parameter(layer, "group0.span_share");
      {
        const at::NoGradGuard no_gradient;
        share.fill_(static_cast<float>((40.0 + excess) / 256.0));
        for (const auto& item : exact->named_parameters()) {
          layer->named_parameters()[item.key()].copy_(item.value());
        }
        share.fill_(static_cast<float>((40.0 + excess) / 256.0));
      }
      share.mutable_grad().reset();
      AttentionState state;
      (layer->forward(input.to(share.scalar_type()), state) * direction.to(share.scalar_type())).sum().backward();
      return share.grad().item<double>();
    };
    const double wanted = gradient(exact);
    EXPECT_NEAR(gradient(fused), wanted, 1e-4 * std::max(1.0, std::abs(wanted))) << "40 and " << excess;
  }
}

// A logit of -3.4 (m = 1/32) in one bfloat16 column would be off by up to 0.03, 3 % of the weight.
TEST(Span, TwoColumnsHoldWhatOneInBfloat16WouldRound) {
  const auto heads = heads_with(pattern_at(40.3, 256, 32), at::kFloat);
  const AttendOptions options = heads->with_span({.scale = 1.0 / std::sqrt(48.0)}, 6);
  const at::Tensor columns = options.relative_key.narrow(1, 6, 2);
  const at::Tensor rounded = columns.to(at::kBFloat16).to(at::kDouble).sum(1) / std::sqrt(48.0);
  const std::int64_t keys = heads->keys();
  ASSERT_EQ(columns.size(0), 2 * keys + 1);
  double largest = 0.0;
  double one_column = 0.0;
  for (std::int64_t x = 0; x < keys; ++x) {
    const double log = std::log(span_weight(pattern_at(0.0, 256, 32), heads->span(), x));
    largest = std::max(largest, std::abs(rounded[keys - x].item<double>() - log));
    const double one = columns[keys - x].sum().to(at::kBFloat16).item<double>() / std::sqrt(48.0);
    one_column = std::max(one_column, std::abs(one - log));
  }
  EXPECT_LT(largest, 3e-5);
  EXPECT_GT(one_column, 3e-3) << "or the second column is not needed";
}

TEST(Span, ASpanAtItsLimitIsLocalAttention) {
  const HeadGroupConfig span{
      .pattern = pattern_at(16.0), .relative = RelativePosition::true_offset, .max_relative = 16};
  HeadGroupConfig local = span;
  local.pattern = LocalPattern{.window = 16};
  MultiHeadAttention one = layer_of({span}, 4);
  MultiHeadAttention other = layer_of({local}, 4);
  const at::Tensor input = random_tensor({2, 50, 4}, 12);
  AttentionState state;
  AttentionState local_state;
  const at::Tensor difference = one->forward(input, state) - other->forward(input, local_state);
  EXPECT_LT(difference.abs().max().item<double>(), 1e-14);
  EXPECT_EQ(state.plans[0], local_state.plans[0]);
}

TEST(Span, PenaltyIsThatOfTheMeanSpanOfALayer) {
  HeadGroupConfig group{.pattern = pattern_at(8.0)};
  std::get<SpanPattern>(group.pattern).penalty = 0.5;
  MultiHeadAttention layer = layer_of({{.pattern = FullPattern{}, .heads = 1}, group, group}, 6);
  {
    const at::NoGradGuard no_gradient;
    parameter(layer, "group2.span_share").fill_(0.25);
  }
  layer->train();
  AttentionState state;
  layer->forward(random_tensor({1, 5, 6}, 13), state);
  EXPECT_DOUBLE_EQ(state.auxiliary_loss.item<double>(), 0.5 * (8.0 + 4.0) / 2);
  state.auxiliary_loss.backward();
  EXPECT_DOUBLE_EQ(parameter(layer, "group1.span_share").grad().item<double>(), 0.5 * 16.0 / 2);
  layer->eval();
  layer->forward(random_tensor({1, 5, 6}, 13), state);
  EXPECT_FALSE(state.auxiliary_loss.defined());
}

TEST(Span, PenaltyCountsEveryHeadOfAGroupThatSharesASpan) {
  HeadGroupConfig one{.pattern = pattern_at(8.0)};
  std::get<SpanPattern>(one.pattern).penalty = 0.5;
  HeadGroupConfig two = one;
  two.heads = 2;
  MultiHeadAttention layer = layer_of({two, one}, 6);
  {
    const at::NoGradGuard no_gradient;
    parameter(layer, "group1.span_share").fill_(0.25);
  }
  layer->train();
  AttentionState state;
  layer->forward(random_tensor({1, 5, 6}, 13), state);
  EXPECT_NEAR(state.auxiliary_loss.item<double>(), 0.5 * (8.0 + 8.0 + 4.0) / 3, 1e-12);
}

TEST(Span, HeadsOfOneLayerShareTheirTables) {
  const HeadGroupConfig group{.pattern = pattern_at(8.0), .relative = RelativePosition::true_offset, .max_relative = 9};
  MultiHeadAttention layer = layer_of({group, group, group}, 12);
  std::int64_t tables = 0;
  for (const auto& item : layer->named_parameters()) {
    if (item.key().find("relative_") != std::string::npos) ++tables;
  }
  EXPECT_EQ(tables, 2);
}

TEST(Span, CachesKeepTheKeysOfTheSpanAndNoMore) {
  const HeadGroupConfig group{.pattern = pattern_at(2.0)};
  MultiHeadAttention layer(AttentionConfig{.width = 4, .head_groups = {group}}, LayerPlace{},
                           at::TensorOptions(at::kFloat));
  layer->eval();
  EXPECT_EQ(heads_with(pattern_at(2.0))->list_rules(), (ListRules{.lookback = 6}));
  AttentionCache cache = layer->make_cache();
  cache.add_sequence(0);
  const std::vector<std::int64_t> sequences{0};
  const at::Tensor input = random_tensor({1, 200, 4}, 14, at::kFloat);
  AttentionState state;
  const at::Tensor whole = layer->forward(input, state);
  for (std::int64_t token = 0; token < 200; ++token) {
    const at::Tensor row =
        layer->forward_cached(input.narrow(1, token, 1).contiguous(), cache, sequences, MatmulPrecision::fp32);
    ASSERT_TRUE(at::equal(row[0][0], whole[0][token])) << "token " << token;
  }
  EXPECT_LT(cache.last_plan(0).key_order.size(), 6U + kernels::kAttendTile) << "whole tiles, and no more";
}

TEST(Span, ImpossibleHeadsAreRefusedWithAReason) {
  const auto refusal = [](const HeadGroupConfig& group, AttentionKind kind) {
    return message_of<ConfigError>([&] { validate_head_group("layer 0", group, kind); });
  };
  const HeadGroupConfig good{.pattern = pattern_at(1.0)};
  const auto with = [&](const SpanPattern& pattern) {
    HeadGroupConfig group = good;
    group.pattern = pattern;
    return refusal(group, AttentionKind::causal_self);
  };
  EXPECT_EQ(with({.limit = 0}), "layer 0: limit is 0, but it must be at least 1");
  EXPECT_EQ(with({.ramp = 0}), "layer 0: ramp is 0, but it must be at least 1");
  EXPECT_EQ(with({.initial = 1.5}),
            "layer 0: initial is 1.5, but the first span is a share of the limit between 0 and 1");
  EXPECT_EQ(with({.penalty = -1.0}), "layer 0: penalty is -1, but it must be a finite number not below 0");
  EXPECT_NE(refusal(good, AttentionKind::cross).find("no common time"), std::string::npos);
  HeadGroupConfig alone = good;
  alone.self = SelfRule::only_if_alone;
  EXPECT_NE(refusal(alone, AttentionKind::causal_self).find("begins at the token itself; use allowed"),
            std::string::npos);
  HeadGroupConfig shifted = good;
  shifted.shared_query_key = true;
  shifted.key_shift = 1;
  EXPECT_NE(refusal(shifted, AttentionKind::causal_self).find("use 0"), std::string::npos);
  HeadGroupConfig by_rank = good;
  by_rank.relative = RelativePosition::rank;
  by_rank.max_relative = 4;
  EXPECT_NE(refusal(by_rank, AttentionKind::causal_self).find("use true_offset or none"), std::string::npos);
}

}  // namespace
}  // namespace routing::span_test
