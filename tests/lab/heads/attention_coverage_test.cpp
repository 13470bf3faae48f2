// Coverage worked by hand, against dense matrices on a model, and of patterns whose coverage is known.
#include "lab/heads/attention_coverage.h"

#include "routing/attention/patterns/position_patterns.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/model/transformer.h"
#include "support/dense_attention.h"
#include "support/small_experiment.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>

#include <cmath>

namespace routing::attention_coverage_test {
namespace {

const at::TensorOptions kDoubles{at::kDouble};

// One head, one sequence. Query i reads the keys of its list; keys have one number each and every query is 1, so that
// products are those numbers.
GroupProbe probe_of(const std::vector<double>& keys, const std::vector<std::int32_t>& read_by_last) {
  const auto n = static_cast<std::int64_t>(keys.size());
  const auto list = [](const std::vector<std::int32_t>& values) { return at::tensor(values, at::kInt); };
  Plan tensors{.batch = 1, .heads = 1, .num_queries = n, .num_keys = n};
  tensors.query_order = list({static_cast<std::int32_t>(n - 1)});
  tensors.key_order = list(read_by_last);
  tensors.groups =
      at::tensor(std::vector<std::int64_t>{0, 1, 0, static_cast<std::int64_t>(read_by_last.size())}, at::kLong)
          .view({1, 4});
  tensors.unit_offsets = at::tensor(std::vector<std::int64_t>{0, 1}, at::kLong);
  return {.queries = at::ones({1, 1, n, 1}, at::kDouble),
          .keys = at::tensor(keys, kDoubles).view({1, 1, n, 1}),
          .plan = complete_plan(tensors)};
}

TEST(AttentionCoverage, EqualsSharesWorkedByHand) {
  // Weights of the four earlier keys: 1, 2, 3, 4 of 10. The query itself, large as it is, is left out.
  const std::vector<double> keys{std::log(1.0), std::log(3.0), std::log(4.0), std::log(2.0), 50.0};
  const Coverage coverage = coverage_of_query(probe_of(keys, {0, 2, 4}), {.query = 4});
  EXPECT_EQ(coverage.keys, 2.0);
  EXPECT_EQ(coverage.reads_nothing, 0.0);
  EXPECT_NEAR(coverage.plan.mass, 0.5, 1e-12);    // 1 + 4
  EXPECT_NEAR(coverage.recent.mass, 0.6, 1e-12);  // 4 + 2
  EXPECT_EQ(coverage.random, 0.5);                // 2 of 4
  EXPECT_EQ(coverage.plan.top[0], 1.0) << "key 2 is the largest";
  EXPECT_EQ(coverage.plan.top[1], 0.5) << "two of all four, which are fewer than 8";
  EXPECT_EQ(coverage.recent.top[0], 1.0);
  EXPECT_EQ(coverage_of_query(probe_of(keys, {0, 1}), {.query = 4}).plan.top[0], 0.0);
}

TEST(AttentionCoverage, TopEightAreTheEightLargest) {
  std::vector<double> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(i < 8 ? 2.0 + 0.01 * i : 1.0 - 0.01 * i);
  // Three of the eight largest, and two others.
  const Coverage coverage = coverage_of_query(probe_of(keys, {0, 3, 5, 9, 11}), {.query = 19});
  EXPECT_DOUBLE_EQ(coverage.plan.top[1], 3.0 / 8);
  EXPECT_EQ(coverage.plan.top[0], 0.0) << "key 7 is the largest";
  EXPECT_DOUBLE_EQ(coverage.plan.top[2], 5.0 / 19);
  EXPECT_EQ(coverage.recent.top[1], 0.0);
  EXPECT_DOUBLE_EQ(coverage.random, 5.0 / 19);
}

TEST(AttentionCoverage, TiesCountAsIfTheLastPlacesWereDrawn) {
  // Seven above, then four that tie for the eighth place; the plan has two of the seven and one of the four.
  const std::vector<double> keys{5, 5, 5, 5, 5, 5, 5, 4, 4, 4, 4, 1, 0};
  const Coverage coverage = coverage_of_query(probe_of(keys, {1, 2, 8}), {.query = 12});
  EXPECT_DOUBLE_EQ(coverage.plan.top[1], (2.0 + 0.25) / 8);
  EXPECT_DOUBLE_EQ(coverage.plan.top[0], 2.0 / 7) << "seven tie for the first place";
}

TEST(AttentionCoverage, AQueryThatReadsNothingKeepsNothing) {
  const Coverage coverage = coverage_of_query(probe_of({1.0, 2.0, 3.0, 4.0}, {0, 1}), {.query = 2});
  EXPECT_EQ(coverage.reads_nothing, 1.0);
  EXPECT_EQ(coverage.keys, 0.0);
  EXPECT_EQ(coverage.plan.mass, 0.0);
  EXPECT_EQ(coverage.recent.mass, 0.0);
  EXPECT_EQ(coverage.plan.top[2], 0.0);
  EXPECT_EQ(coverage.random, 0.0);
  EXPECT_THROW(coverage_of_query(probe_of({1.0, 2.0}, {0}), {.query = 0}), InputError);
}

Transformer small_model(const ExperimentConfig& config) {
  Transformer model(config, at::TensorOptions().dtype(at::kDouble));
  model->eval();
  return model;
}

TEST(AttentionCoverage, OfAFullPatternIsExactlyOne) {
  ExperimentConfig config = small_experiment("full");
  Transformer model = small_model(config);
  const CoverageReport report = attention_coverage(*model, random_tokens(2, 32, 256, 1), {.queries = 0});
  EXPECT_EQ(report.queries, 31) << "all but the first";
  for (const auto& layer : report.layers) {
    for (const std::size_t head : {2U, 3U}) {
      EXPECT_EQ(layer[head].pattern, "full");
      EXPECT_EQ(layer[head].coverage.plan.mass, 1.0);
      for (const double share : layer[head].coverage.plan.top) EXPECT_EQ(share, 1.0);
      EXPECT_EQ(layer[head].coverage.random, 1.0);
      EXPECT_EQ(layer[head].coverage.keys, 16.0) << "the mean of 1 … 31";
    }
  }
}

// The same from n x n matrices: dense softmax below the diagonal, masks from the plan's dense counts, torch's topk.
TEST(AttentionCoverage, EqualsDenseMatricesForEveryContent) {
  for (const ContentCase& item : content_cases()) {
    Transformer model = small_model(item.config);
    const at::Tensor tokens = random_tokens(1, 32, 256, 1);
    const CoverageReport report = attention_coverage(*model, tokens, {.queries = 0});
    const auto probes = model->probe(tokens, {});
    for (std::size_t layer = 0; layer < probes.size(); ++layer) {
      for (const GroupProbe& probe : probes[layer]) {
        // Dense attention is that over the full plan, less itself, and without ranks.
        GroupProbe full = probe;
        full.plan =
            full_plan(self_layout(1, probe.heads(), 32, at::Tensor()), /*causal=*/true, SelfRule::only_if_alone);
        if (full.relative == RelativePosition::rank) full.relative = RelativePosition::none;
        if (full.relative == RelativePosition::none) full.relative_key = at::Tensor();
        full.merge = Merge::lse;
        const at::Tensor dense = support::dense_attention(full)[0];
        const at::Tensor counts = probe.plan.to_dense_counts()[0];
        for (std::int64_t head = 0; head < probe.heads(); ++head) {
          const HeadCoverage& mine = report.layers[layer][static_cast<std::size_t>(probe.first_head + head)];
          EXPECT_EQ(mine.pattern, probe.pattern_name);
          const at::Tensor products = at::mm(probe.queries[0][head], probe.keys[0][head].t());
          double mass = 0.0;
          double recent_mass = 0.0;
          double keys = 0.0;
          double random = 0.0;
          double top8 = 0.0;
          for (std::int64_t i = 1; i < 32; ++i) {
            const at::Tensor held = (counts[head][i].narrow(0, 0, i) > 0).to(at::kDouble);
            const at::Tensor row = dense[head][i].narrow(0, 0, i);
            const auto m = held.sum().item<std::int64_t>();
            const at::Tensor best = std::get<1>(products[i].narrow(0, 0, i).topk(std::min<std::int64_t>(8, i)));
            mass += (row * held).sum().item<double>();
            recent_mass += row.narrow(0, i - m, m).sum().item<double>();
            keys += static_cast<double>(m);
            random += static_cast<double>(m) / static_cast<double>(i);
            top8 += held.index_select(0, best).mean().item<double>();
          }
          EXPECT_NEAR(mine.coverage.plan.mass, mass / 31, 1e-12) << item.name;
          EXPECT_NEAR(mine.coverage.recent.mass, recent_mass / 31, 1e-12) << item.name;
          EXPECT_NEAR(mine.coverage.keys, keys / 31, 1e-12) << item.name;
          EXPECT_NEAR(mine.coverage.random, random / 31, 1e-12) << item.name;
          // Equal tokens have equal keys in the first layer: there torch draws its own lots.
          if (layer > 0) {
            EXPECT_NEAR(mine.coverage.plan.top[1], top8 / 31, 1e-12) << item.name;
          }
        }
      }
    }
  }
}

TEST(AttentionCoverage, LocalHeadsWithASlidingWindowAreTheirOwnBaseline) {
  Transformer model = small_model(small_experiment("local"));
  const CoverageReport report = attention_coverage(*model, random_tokens(2, 32, 256, 1), {.queries = 10});
  EXPECT_EQ(report.queries, 10);
  for (const HeadCoverage& head : report.layers[1]) {
    EXPECT_DOUBLE_EQ(head.coverage.plan.mass, head.coverage.recent.mass);
    EXPECT_EQ(head.coverage.plan.top, head.coverage.recent.top);
    EXPECT_EQ(head.coverage.reads_nothing, 0.0);
  }
}

TEST(AttentionCoverage, MeansAreOverTheHeadsOfOneKind) {
  Transformer model = small_model(small_experiment("routing"));
  const auto layer = attention_coverage(*model, random_tokens(2, 32, 256, 1), {.queries = 10}).layers[0];
  const auto local = mean_coverage(layer, HeadKind::local);
  const auto content = mean_coverage(layer, HeadKind::content);
  ASSERT_TRUE(local && content);
  EXPECT_DOUBLE_EQ(local->plan.mass, (layer[0].coverage.plan.mass + layer[1].coverage.plan.mass) / 2);
  EXPECT_DOUBLE_EQ(content->plan.top[1], (layer[2].coverage.plan.top[1] + layer[3].coverage.plan.top[1]) / 2);
  EXPECT_DOUBLE_EQ(content->keys, (layer[2].coverage.keys + layer[3].coverage.keys) / 2);
  EXPECT_DOUBLE_EQ(content->random, (layer[2].coverage.random + layer[3].coverage.random) / 2);
  EXPECT_FALSE(mean_coverage({layer[0]}, HeadKind::content).has_value());
}

TEST(AttentionCoverage, DoesNotDependOnThreadsAndFollowsTheSeed) {
  const support::ThreadGuard guard;
  Transformer model = small_model(small_experiment("routing"));
  const at::Tensor tokens = random_tokens(2, 32, 256, 1);
  set_num_threads(1);
  const double one = attention_coverage(*model, tokens, {.queries = 9}).layers[1][2].coverage.plan.mass;
  set_num_threads(3);
  EXPECT_EQ(attention_coverage(*model, tokens, {.queries = 9}).layers[1][2].coverage.plan.mass, one);
  EXPECT_NE(attention_coverage(*model, tokens, {.queries = 9, .seed = 2}).layers[1][2].coverage.plan.mass, one);
  EXPECT_THROW(attention_coverage(*model, at::zeros({1, 1}, at::kLong), {}), InputError);
}

}  // namespace
}  // namespace routing::attention_coverage_test
