// Divergences worked by hand, and those of a model against dense matrices.
#include "lab/heads/jensen_shannon.h"

#include "lab/heads/probed_heads.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/model/transformer.h"
#include "support/dense_attention.h"
#include "support/small_experiment.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace routing::jensen_shannon_test {
namespace {

TEST(JensenShannon, IsZeroForEqualRowsAndLnTwoForDisjointOnes) {
  const AttentionRow row{{1, 4, 9}, {0.5, 0.25, 0.25}};
  EXPECT_EQ(jensen_shannon(row, row), 0.0);
  EXPECT_DOUBLE_EQ(jensen_shannon(row, {{0, 2, 3, 10}, {0.1, 0.2, 0.3, 0.4}}), std::numbers::ln2);
  EXPECT_LE(jensen_shannon(row, {{0, 2, 3, 10}, {0.1, 0.2, 0.3, 0.4}}), std::numbers::ln2);
}

TEST(JensenShannon, EqualsNumbersWorkedByHandInBothOrders) {
  // p = (1, 0), q = (1/2, 1/2), m = (3/4, 1/4): KL(p||m) = ln 4/3, KL(q||m) = (ln 2/3 + ln 2) / 2.
  const AttentionRow p{{3}, {1.0}};
  const AttentionRow q{{3, 5}, {0.5, 0.5}};
  const double expected = 0.5 * (std::log(4.0 / 3.0) + 0.5 * (std::log(2.0 / 3.0) + std::log(2.0)));
  EXPECT_NEAR(expected, 0.2157615543, 1e-9);
  EXPECT_DOUBLE_EQ(jensen_shannon(p, q), expected);
  EXPECT_DOUBLE_EQ(jensen_shannon(q, p), expected);
  // The same key at another position is another key.
  EXPECT_DOUBLE_EQ(jensen_shannon({{2}, {1.0}}, q), std::numbers::ln2);
}

TEST(JensenShannon, DividesRowsByTheirSums) {
  EXPECT_NEAR(jensen_shannon({{3}, {0.9}}, {{3, 5}, {0.4, 0.4}}), 0.2157615543, 1e-9);
}

TEST(JensenShannon, RefusesRowsWithoutKeys) {
  EXPECT_THROW(jensen_shannon({}, {{3}, {1.0}}), InputError);
  EXPECT_THROW(jensen_shannon({{3}, {1.0}}, {}), InputError);
}

Transformer small_model(const ExperimentConfig& config) {
  Transformer model(config, at::TensorOptions().dtype(at::kDouble));
  model->eval();
  return model;
}

// [heads][queries, keys] of one sequence.
std::vector<at::Tensor> dense_heads(const std::vector<GroupProbe>& layer) {
  std::vector<at::Tensor> heads;
  for (const GroupProbe& probe : layer) {
    const at::Tensor matrix = support::dense_attention(probe)[0];
    for (std::int64_t head = 0; head < probe.heads(); ++head) heads.push_back(matrix[head]);
  }
  return heads;
}

// Mean over the queries that both heads have; their number.
std::pair<double, std::int64_t> dense_divergence(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor both = (first.sum(1) > 0).logical_and(second.sum(1) > 0).nonzero().flatten();
  if (both.numel() == 0) return {0.0, 0};
  const auto rows = [&](const at::Tensor& a) {
    const at::Tensor kept = a.index_select(0, both);
    return kept / kept.sum(1, true);
  };
  const at::Tensor p = rows(first);
  const at::Tensor q = rows(second);
  const at::Tensor m = (p + q) / 2;
  const auto kl = [&](const at::Tensor& a) { return at::where(a > 0, a * (a / m).log(), at::zeros_like(a)).sum(1); };
  return {((kl(p) + kl(q)) / 2).mean().item<double>(), both.numel()};
}

TEST(HeadDivergence, MatricesAreThoseOfDenseAttentionForEveryContent) {
  for (const ContentCase& item : content_cases()) {
    Transformer model = small_model(item.config);
    const at::Tensor tokens = random_tokens(2, 32, 256, 1);
    const HeadDivergence result = head_divergence(*model, tokens, {.queries = 0});
    EXPECT_EQ(result.sequences, 2);
    EXPECT_EQ(result.length, 32);
    EXPECT_EQ(result.queries, 32);
    ASSERT_EQ(result.layers.size(), 2U);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const LayerDivergence& mine = result.layers[layer];
      ASSERT_EQ(mine.heads(), 4);
      std::vector<std::vector<at::Tensor>> dense;
      for (std::int64_t s = 0; s < 2; ++s) {
        dense.push_back(
            dense_heads(model->probe(tokens.narrow(0, s, 1), {.sample_ids = at::full({1}, s, at::kLong)})[layer]));
      }
      for (std::int64_t a = 0; a < 4; ++a) {
        double empty = 0.0;
        for (const auto& heads : dense) {
          empty += (heads[static_cast<std::size_t>(a)].sum(1) == 0).to(at::kDouble).sum().item<double>();
        }
        EXPECT_DOUBLE_EQ(mine.reads_nothing[static_cast<std::size_t>(a)], empty / 64) << item.name;
        EXPECT_EQ(mine.between(a, a), 0.0);
        for (std::int64_t b = 0; b < 4; ++b) {
          double total = 0.0;
          std::int64_t queries = 0;
          for (const auto& heads : dense) {
            const auto [mean, count] =
                dense_divergence(heads[static_cast<std::size_t>(a)], heads[static_cast<std::size_t>(b)]);
            total += mean * static_cast<double>(count);
            queries += count;
          }
          EXPECT_NEAR(mine.between(a, b), total / static_cast<double>(queries), 1e-12) << item.name << a << b;
          EXPECT_EQ(mine.between(a, b), mine.between(b, a));
        }
      }
    }
  }
}

TEST(HeadDivergence, DrawsAreOfTheirKindsOfHeads) {
  Transformer model = small_model(small_experiment("routing"));
  // One sequence, heads 0 and 1 local, 2 and 3 routed: one pair of each like kind, which every draw takes.
  const HeadDivergence one = head_divergence(*model, random_tokens(1, 32, 256, 1), {.draws = 3, .queries = 0});
  const LayerDivergence& layer = one.layers[0];
  EXPECT_EQ(layer.patterns, (std::vector<std::string>{"local", "local", "routing", "routing"}));
  EXPECT_EQ(layer.local_local.draws, 3);
  EXPECT_DOUBLE_EQ(layer.local_local.mean, layer.between(0, 1));
  EXPECT_DOUBLE_EQ(layer.content_content.mean, layer.between(2, 3));
  EXPECT_NEAR(layer.local_local.deviation, 0.0, 1e-15);
  EXPECT_NE(layer.local_local.mean, layer.content_content.mean);
  // Many draws: mean and deviation of the four mixed pairs.
  const HeadDivergence many = head_divergence(*model, random_tokens(1, 32, 256, 1), {.draws = 40000, .queries = 0});
  std::vector<double> mixed;
  for (const std::int64_t local : {0, 1}) {
    for (const std::int64_t routed : {2, 3}) mixed.push_back(layer.between(local, routed));
  }
  const double mean = (mixed[0] + mixed[1] + mixed[2] + mixed[3]) / 4;
  double variance = 0.0;
  for (const double value : mixed) variance += (value - mean) * (value - mean) / 4;
  EXPECT_NEAR(many.layers[0].local_content.mean, mean, 4.0 * std::sqrt(variance / 40000));
  EXPECT_NEAR(many.layers[0].local_content.deviation, std::sqrt(variance), 0.03 * std::sqrt(variance));
}

TEST(HeadDivergence, SaysWhereThereIsNoSuchPairAndWhatWasLeftOut) {
  Transformer local = small_model(small_experiment("local"));
  const LayerDivergence layer = head_divergence(*local, random_tokens(1, 32, 256, 1), {}).layers[0];
  EXPECT_EQ(layer.local_local.draws, 10);
  EXPECT_EQ(layer.local_content.draws, 0);
  EXPECT_TRUE(std::isnan(layer.local_content.mean));
  EXPECT_EQ(layer.content_content.draws, 0);
  EXPECT_EQ(layer.local_local.left_out, 0.0);
  // Balanced routing leaves tokens in no cluster: two of four clusters of 4 cover at most 16 of 32.
  ExperimentConfig config = small_experiment("routing");
  config.routing.routing().selection = RoutingSelection::balanced;
  config.routing.routing().window = 4;
  Transformer model = small_model(config);
  const LayerDivergence routed = head_divergence(*model, random_tokens(1, 32, 256, 1), {.queries = 0}).layers[0];
  EXPECT_GE(routed.reads_nothing[2], 0.5);
  EXPECT_EQ(routed.reads_nothing[0], 0.0);
  EXPECT_NEAR(routed.local_content.left_out, (routed.reads_nothing[2] + routed.reads_nothing[3]) / 2, 1e-12);
  EXPECT_GE(routed.content_content.left_out, std::max(routed.reads_nothing[2], routed.reads_nothing[3]));
}

TEST(HeadDivergence, DoesNotDependOnThreadsAndFollowsTheSeed) {
  const support::ThreadGuard guard;
  Transformer model = small_model(small_experiment("routing"));
  const at::Tensor tokens = random_tokens(3, 32, 256, 1);
  set_num_threads(1);
  const HeadDivergence one = head_divergence(*model, tokens, {.queries = 9});
  set_num_threads(3);
  const HeadDivergence three = head_divergence(*model, tokens, {.queries = 9});
  EXPECT_EQ(one.queries, 9);
  EXPECT_EQ(one.layers[1].matrix, three.layers[1].matrix);
  EXPECT_EQ(one.layers[1].local_content.mean, three.layers[1].local_content.mean);
  EXPECT_NE(head_divergence(*model, tokens, {.queries = 9, .seed = 2}).layers[1].matrix, one.layers[1].matrix);
}

TEST(HeadDivergence, RefusesWhatMakesNoSenseAndTellsProgress) {
  Transformer model = small_model(small_experiment("local"));
  EXPECT_THROW(head_divergence(*model, at::zeros({32}, at::kLong), {}), InputError);
  EXPECT_THROW(head_divergence(*model, random_tokens(1, 32, 256, 1), {.draws = 0}), InputError);
  std::vector<std::int64_t> told;
  head_divergence(*model, random_tokens(2, 8, 256, 1), {.progress = [&](std::int64_t done, std::int64_t all) {
    told.push_back(done);
    EXPECT_EQ(all, 2);
  }});
  EXPECT_EQ(told, (std::vector<std::int64_t>{1, 2}));
}

// The sums of the six columns, added up from the paper's source by a script.
TEST(PublishedDivergence, HasTheTenLayersOfThePaper) {
  std::array<double, 6> sums{};
  for (const PublishedDivergence& layer : published_divergence()) {
    std::size_t column = 0;
    for (const auto& entry : {layer.local_local, layer.local_routing, layer.routing_routing}) {
      sums[column++] += entry.mean;
      sums[column++] += entry.deviation;
    }
    EXPECT_LT(layer.local_local.mean, layer.routing_routing.mean);
    EXPECT_LT(layer.routing_routing.mean, layer.local_routing.mean);
  }
  const std::array<double, 6> expected{1.7760, 0.5670, 6.0441, 0.1595, 4.1810, 0.3311};
  for (std::size_t column = 0; column < 6; ++column) EXPECT_NEAR(sums[column], expected[column], 1e-9) << column;
}

TEST(ProbedHeads, SamplesAreDistinctAscendingAndInRange) {
  const std::vector<std::int64_t> some = sampled_queries({.first = 1, .length = 100, .count = 10, .seed = 3});
  ASSERT_EQ(some.size(), 10U);
  for (std::size_t i = 1; i < some.size(); ++i) EXPECT_LT(some[i - 1], some[i]);
  EXPECT_GE(some.front(), 1);
  EXPECT_LT(some.back(), 100);
  EXPECT_NE(some, sampled_queries({.first = 1, .length = 100, .count = 10, .seed = 3, .sequence = 1}));
  EXPECT_EQ(sampled_queries({.first = 1, .length = 4, .count = 0}), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(sampled_queries({.first = 1, .length = 4, .count = 3}), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(ProbedHeads, AreThoseOfTheirGroupsInOrder) {
  Transformer model = small_model(small_experiment("routing"));
  const auto probes = model->probe(random_tokens(1, 16, 256, 1), {});
  const std::vector<ProbedHead> heads = heads_of(probes[0]);
  ASSERT_EQ(heads.size(), 4U);
  EXPECT_EQ(heads[1].kind(), HeadKind::local);
  EXPECT_EQ(heads[2].kind(), HeadKind::content);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(heads[i].probe->first_head + heads[i].head, static_cast<std::int64_t>(i));
    EXPECT_EQ(heads[i].row(0, 7).weights, attention_row(*heads[i].probe, 0, heads[i].head, 7).weights);
  }
}

}  // namespace
}  // namespace routing::jensen_shannon_test
