// Rows of attention from probes against the attention operation itself, its dense twin, and numbers worked by hand.
#include "routing/attention/head_probe.h"

#include "routing/attention/multi_head.h"
#include "routing/attention/plan/plan_builder.h"
#include "routing/core/error.h"
#include "support/dense_oracle.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace routing::head_probe_test {
namespace {

using support::CaseInputs;
using support::every_pattern_case;
using support::PatternCase;
using support::random_tensor;

const at::TensorOptions kDoubles{at::kDouble};

// Rows of all queries of one (sequence, head) as a dense matrix [queries, keys].
at::Tensor dense_rows(const GroupProbe& probe, std::int64_t sequence, std::int64_t head) {
  at::Tensor matrix = at::zeros({probe.num_queries(), probe.num_keys()}, at::kDouble);
  for (std::int64_t query = 0; query < probe.num_queries(); ++query) {
    const AttentionRow row = attention_row(probe, sequence, head, query);
    EXPECT_EQ(row.keys.size(), row.weights.size());
    EXPECT_TRUE(std::is_sorted(row.keys.begin(), row.keys.end()));
    EXPECT_EQ(std::adjacent_find(row.keys.begin(), row.keys.end()), row.keys.end()) << "keys are distinct";
    for (std::size_t i = 0; i < row.keys.size(); ++i) matrix[query][row.keys[i]] = row.weights[i];
  }
  return matrix;
}

// sum_j A_ij v_j for all queries of all units.
at::Tensor rows_times_values(const GroupProbe& probe, const at::Tensor& v) {
  std::vector<at::Tensor> outputs;
  for (std::int64_t sequence = 0; sequence < v.size(0); ++sequence) {
    for (std::int64_t head = 0; head < v.size(1); ++head) {
      outputs.push_back(at::mm(dense_rows(probe, sequence, head), v[sequence][head].to(at::kDouble)));
    }
  }
  return at::stack(outputs).view({v.size(0), v.size(1), probe.num_queries(), v.size(3)});
}

double distance(const at::Tensor& first, const at::Tensor& second) {
  return (first - second).abs().max().item<double>();
}

GroupProbe probe_of(const CaseInputs& inputs, const AttendOptions& options) {
  return {.queries = inputs.q,
          .keys = inputs.k,
          .plan = inputs.plan,
          .scale = options.scale,
          .merge = options.merge,
          .merge_eps = options.merge_eps,
          .relative = options.relative,
          .relative_key = options.relative_key,
          .recency = options.recency};
}

TEST(HeadProbe, RowsTimesValuesAreWhatAttendGivesForEveryPatternMergeAndRelativeKind) {
  const at::Tensor table = random_tensor({7, 4}, 5);
  for (const PatternCase& pattern_case : every_pattern_case()) {
    const CaseInputs inputs = make_inputs(pattern_case, {.batch = 2, .tokens = 23, .ragged = true});
    for (const Merge merge : kEvery<Merge>) {
      for (const RelativePosition relative : kEvery<RelativePosition>) {
        AttendOptions options{.scale = 0.7, .merge = merge, .merge_eps = 0.25, .relative = relative};
        if (relative != RelativePosition::none) options.relative_key = table;
        const at::Tensor mine = rows_times_values(probe_of(inputs, options), inputs.v);
        const std::string what =
            pattern_case.name + " " + std::string(to_string(merge)) + " " + std::string(to_string(relative));
        const at::Tensor real = attend(inputs.q, inputs.k, inputs.v, inputs.plan, options).output;
        EXPECT_LT(distance(mine, real), 1e-12) << what;
        const at::Tensor dense = support::dense_attend(inputs.q, inputs.k, inputs.v, inputs.plan, options).output;
        EXPECT_LT(distance(mine, dense), 1e-12) << what;
      }
    }
  }
}

TEST(HeadProbe, RowsTimesValuesAreWhatAttendGivesWithRecency) {
  for (const PatternCase& pattern_case : support::pattern_cases(AttentionKind::causal_self)) {
    const CaseInputs inputs = make_inputs(pattern_case, {.batch = 2, .tokens = 23});
    for (const RelativePosition relative : kEvery<RelativePosition>) {
      AttendOptions options{.scale = 0.7, .relative = relative, .recency = at::tensor({0.5, 0.01}, kDoubles)};
      if (relative != RelativePosition::none) options.relative_key = random_tensor({7, 4}, 5);
      const at::Tensor mine = rows_times_values(probe_of(inputs, options), inputs.v);
      const std::string what = pattern_case.name + " " + std::string(to_string(relative));
      const at::Tensor real = attend(inputs.q, inputs.k, inputs.v, inputs.plan, options).output;
      EXPECT_LT(distance(mine, real), 1e-12) << what;
      const at::Tensor dense = support::dense_attend(inputs.q, inputs.k, inputs.v, inputs.plan, options).output;
      EXPECT_LT(distance(mine, dense), 1e-12) << what;
    }
  }
}

// Heads of a whole layer: its weights, the normalisation of queries and keys, scales and first heads are right too.
TEST(HeadProbe, ProbesOfALayerGiveItsOutput) {
  for (const PatternCase& pattern_case : every_pattern_case()) {
    for (const RelativePosition relative : kEvery<RelativePosition>) {
      // Cross-attention has no common origin of positions.
      if (pattern_case.kind == AttentionKind::cross && relative != RelativePosition::none) continue;
      const bool by_rank = relative == RelativePosition::rank;
      if (by_rank && std::holds_alternative<SpanPattern>(pattern_case.group.pattern)) continue;
      HeadGroupConfig group = pattern_case.group;
      group.relative = relative;
      group.max_relative = relative == RelativePosition::none ? 0 : 3;
      group.merge = Merge::mean;
      group.merge_eps = 0.125;
      group.recency = pattern_case.kind == AttentionKind::causal_self && relative == RelativePosition::none;
      AttentionConfig config{.kind = pattern_case.kind, .width = 16, .head_groups = {group, group}};
      config.head_groups[1].pattern = FullPattern{};
      config.head_groups[1].shared_query_key = false;
      config.head_groups[1].key_shift = 0;
      MultiHeadAttention layer(config, LayerPlace{}, kDoubles);
      layer->eval();
      const at::NoGradGuard no_gradient;
      for (auto& item : layer->named_parameters()) {
        if (item.key().ends_with("relative_value")) item.value().zero_();
      }
      AttentionState state{.keep_probes = true};
      const at::Tensor x = random_tensor({2, 19, 16}, 1);
      if (pattern_case.kind == AttentionKind::cross) state.memory = random_tensor({2, 11, 16}, 2);
      const at::Tensor output = layer->forward(x, state);
      ASSERT_EQ(state.probes.size(), 2U);
      EXPECT_EQ(state.probes[0].pattern_name, pattern_name(group.pattern));
      EXPECT_EQ(state.probes[1].pattern_name, "full");
      EXPECT_EQ(state.probes[0].first_head, 0);
      EXPECT_EQ(state.probes[1].first_head, 2);

      const at::Tensor& source = state.memory.defined() ? state.memory : x;
      const at::Tensor v =
          at::matmul(source, layer->named_parameters()["value_weight"].t()).view({2, -1, 4, 4}).transpose(1, 2);
      std::vector<at::Tensor> heads;
      for (const GroupProbe& probe : state.probes) {
        heads.push_back(rows_times_values(probe, v.narrow(1, probe.first_head, probe.heads())));
      }
      const at::Tensor expected =
          at::matmul(at::cat(heads, 1).transpose(1, 2).flatten(2), layer->named_parameters()["output_weight"].t());
      EXPECT_LT(distance(output, expected), 1e-12) << pattern_case.name << " " << to_string(relative);
    }
  }
}

TEST(HeadProbe, LayersKeepNothingUnlessAskedNorInTrainingAndGiveTheSameBits) {
  MultiHeadAttention layer(AttentionConfig{.width = 8, .head_groups = {{.pattern = LocalPattern{.window = 3}}}},
                           LayerPlace{}, kDoubles);
  layer->eval();
  const at::Tensor x = random_tensor({1, 9, 8}, 1);
  AttentionState plain;
  const at::Tensor output = layer->forward(x, plain);
  EXPECT_TRUE(plain.probes.empty());
  AttentionState kept{.keep_probes = true};
  EXPECT_TRUE(at::equal(layer->forward(x, kept), output));
  EXPECT_EQ(kept.probes.size(), 1U);
  EXPECT_FALSE(kept.probes[0].queries.requires_grad());
  EXPECT_TRUE(at::equal(layer->forward(x, kept), output));
  EXPECT_EQ(kept.probes.size(), 1U) << "those of the last forward only";
  layer->train();
  layer->forward(x, kept);
  EXPECT_TRUE(kept.probes.empty());
}

// Three tokens. Group one: queries 0 and 2, keys 0 and 2. Group two: query 2, all keys. Token 1 is a query of no group.
GroupProbe two_groups(Merge merge) {
  const auto list = [](std::vector<std::int32_t> values) { return at::tensor(values, at::kInt); };
  Plan tensors{.batch = 1, .heads = 1, .num_queries = 3, .num_keys = 3};
  tensors.query_order = list({0, 2, 2});
  tensors.key_order = list({0, 2, 0, 1, 2});
  tensors.groups = at::tensor(std::vector<std::int64_t>{0, 2, 0, 2, 2, 3, 2, 5}, at::kLong).view({2, 4});
  tensors.unit_offsets = at::tensor(std::vector<std::int64_t>{0, 2}, at::kLong);
  // Logits of query 2: 0 with key 0, ln 2 with key 1, ln 3 with itself.
  const double dim1[] = {0.0, std::log(2.0), std::log(3.0)};
  return {.queries = at::ones({1, 1, 3, 1}, at::kDouble),
          .keys = at::tensor(at::ArrayRef<double>(dim1, 3), kDoubles).view({1, 1, 3, 1}),
          .plan = complete_plan(tensors),
          .merge = merge};
}

TEST(HeadProbe, AKeyReadTwiceCountsTwiceInOneSoftmax) {
  // exp: group one 1, 3; group two 1, 2, 3; together 10.
  const AttentionRow row = attention_row(two_groups(Merge::lse), 0, 0, 2);
  EXPECT_EQ(row.keys, (std::vector<std::int32_t>{0, 1, 2}));
  ASSERT_EQ(row.weights.size(), 3U);
  EXPECT_NEAR(row.weights[0], 0.2, 1e-15);
  EXPECT_NEAR(row.weights[1], 0.2, 1e-15);
  EXPECT_NEAR(row.weights[2], 0.6, 1e-15);
}

TEST(HeadProbe, TheMeanOfGroupsIsDividedByTheirNumberAndEps) {
  GroupProbe probe = two_groups(Merge::mean);
  probe.merge_eps = 0.5;
  // (1/4, 0, 3/4) and (1/6, 2/6, 3/6), divided by 2.5.
  const AttentionRow row = attention_row(probe, 0, 0, 2);
  ASSERT_EQ(row.weights.size(), 3U);
  EXPECT_NEAR(row.weights[0], (1.0 / 4 + 1.0 / 6) / 2.5, 1e-15);
  EXPECT_NEAR(row.weights[1], (2.0 / 6) / 2.5, 1e-15);
  EXPECT_NEAR(row.weights[2], (3.0 / 4 + 3.0 / 6) / 2.5, 1e-15);
}

TEST(HeadProbe, AQueryOfNoGroupHasAnEmptyRow) {
  for (const Merge merge : kEvery<Merge>) {
    EXPECT_TRUE(attention_row(two_groups(merge), 0, 0, 1).keys.empty());
    EXPECT_EQ(attention_row(two_groups(merge), 0, 0, 0).keys, (std::vector<std::int32_t>{0}));
  }
}

TEST(HeadProbe, LogitsOfAnyKeysHaveTheTermsOfPositionsButNoRanks) {
  GroupProbe probe = two_groups(Merge::lse);
  probe.scale = 2.0;
  probe.relative_key = at::tensor({1.0, 10.0, 100.0}, kDoubles).view({3, 1});  // offsets -1, 0, 1
  const std::vector<std::int32_t> keys{0, 1, 2};
  const ProbedQuery at{.query = 1};
  EXPECT_EQ(inner_products(probe, at, keys), (std::vector<double>{0.0, std::log(2.0), std::log(3.0)}));
  const auto expect_extra = [&](double first, double second, double third) {
    const std::vector<double> logits = dense_logits(probe, at, keys);
    ASSERT_EQ(logits.size(), 3U);
    EXPECT_NEAR(logits[0], first, 1e-12);
    EXPECT_NEAR(logits[1], 2.0 * std::log(2.0) + second, 1e-12);
    EXPECT_NEAR(logits[2], 2.0 * std::log(3.0) + third, 1e-12);
  };
  probe.relative = RelativePosition::true_offset;
  expect_extra(2.0, 20.0, 200.0);
  probe.relative = RelativePosition::rank;
  expect_extra(0.0, 0.0, 0.0);
  probe.recency = at::tensor({1.0 / 256}, kDoubles);
  expect_extra(-1.0 / 256, 0.0, 1.0 / 256);
}

TEST(HeadProbe, VectorsOfSinglePrecisionGiveTheRowsOfTheirValues) {
  GroupProbe probe = two_groups(Merge::lse);
  probe.recency = at::tensor({0.25}, kDoubles);
  const AttentionRow exact = attention_row(probe, 0, 0, 2);
  probe.queries = probe.queries.to(at::kFloat);
  probe.keys = probe.keys.to(at::kFloat);
  probe.recency = probe.recency.to(at::kFloat);
  const AttentionRow row = attention_row(probe, 0, 0, 2);
  EXPECT_EQ(row.keys, exact.keys);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(row.weights[i], exact.weights[i], 1e-7);
}

TEST(HeadProbe, PlacesOutsideOfTheProbeAreNamed) {
  const GroupProbe probe = two_groups(Merge::lse);
  EXPECT_THROW(attention_row(probe, 1, 0, 0), InputError);
  EXPECT_THROW(attention_row(probe, 0, 1, 0), InputError);
  EXPECT_THROW(attention_row(probe, 0, 0, 3), InputError);
  EXPECT_THROW(attention_row(probe, 0, 0, -1), InputError);
}

TEST(HeadProbe, ProbeVectorsAreContiguousAndWithoutAGraph) {
  const at::Tensor vectors = random_tensor({2, 3, 4, 5}, 1).set_requires_grad(true).transpose(1, 2);
  const at::Tensor kept = probe_vectors(vectors);
  EXPECT_TRUE(kept.is_contiguous());
  EXPECT_FALSE(kept.requires_grad());
  EXPECT_TRUE(at::equal(kept, vectors));
  EXPECT_FALSE(probe_vectors({}).defined());
}

}  // namespace
}  // namespace routing::head_probe_test
