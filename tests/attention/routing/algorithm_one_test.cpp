// Algorithm 1 of the paper, line by line, against the `paper` preset with its centroids as printed (sums); and the
// authors' code (docs/facts.md A1 to A16), as plain loops, against the `code` preset.
#include "routing/attention/multi_head.h"
#include "routing/attention/patterns/routing.h"
#include "routing/config/routing_settings.h"
#include "routing/ops/attend/attend.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace routing::algorithm_one_test {
namespace {

using support::random_tensor;
using Matrix = std::vector<std::vector<double>>;

Matrix rows_of(const at::Tensor& tensor) {
  Matrix rows(static_cast<std::size_t>(tensor.size(0)));
  const at::Tensor values = tensor.to(at::kDouble).contiguous();
  for (std::int64_t i = 0; i < tensor.size(0); ++i) {
    const auto* row = values.data_ptr<double>() + i * tensor.size(1);
    rows[static_cast<std::size_t>(i)].assign(row, row + tensor.size(1));
  }
  return rows;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) total += a[d] * b[d];
  return total;
}

// Lines 8 and 9: layer norm with scale and bias disabled.
Matrix layer_normed(Matrix rows, double eps = 1e-6) {
  for (auto& row : rows) {
    double mean = 0.0;
    double variance = 0.0;
    for (const double value : row) mean += value / static_cast<double>(row.size());
    for (const double value : row) variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
    for (double& value : row) value = (value - mean) / std::sqrt(variance + eps);
  }
  return rows;
}

// mu X^T, [k][n].
Matrix products(const Matrix& centroids, const Matrix& rows) {
  Matrix result(centroids.size(), std::vector<double>(rows.size()));
  for (std::size_t c = 0; c < centroids.size(); ++c) {
    for (std::size_t i = 0; i < rows.size(); ++i) result[c][i] = dot(centroids[c], rows[i]);
  }
  return result;
}

// sort(top-k(prod, w)): the positions of the w largest, ascending.
std::vector<std::vector<std::size_t>> sorted_top(const Matrix& prod, std::size_t w) {
  std::vector<std::vector<std::size_t>> index;
  for (const auto& scores : prod) {
    std::vector<std::size_t> order(scores.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    order.resize(std::min(w, order.size()));
    std::sort(order.begin(), order.end());
    index.push_back(order);
  }
  return index;
}

std::size_t argmax_centroid(const Matrix& prod, std::size_t token) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < prod.size(); ++c) {
    if (prod[c][token] > prod[best][token]) best = c;
  }
  return best;
}

struct Algorithm {
  Matrix output;     // X
  Matrix centroids;  // mu after the update
};

// The pseudo-code. `causal` is "left to right mask". A token scattered from several clusters gets their mean (the paper
// does not say), one in none zero.
Algorithm algorithm_one(Matrix q, Matrix k, const Matrix& v, const Matrix& mu, std::size_t w, bool causal) {
  const std::size_t n = q.size();
  if (causal) k = q;                                              // 4, 5
  q = layer_normed(q);                                            // 8
  k = layer_normed(k);                                            // 9
  const Matrix q_prod = products(mu, q);                          // 10
  const Matrix k_prod = products(mu, k);                          // 12; equal to q_prod when causal
  const auto q_index = sorted_top(q_prod, w);                     // 15, 16
  const auto k_index = causal ? q_index : sorted_top(k_prod, w);  // 17 to 21
  Algorithm result;
  result.output.assign(n, std::vector<double>(v[0].size(), 0.0));
  std::vector<double> scattered(n, 0.0);
  for (std::size_t c = 0; c < mu.size(); ++c) {
    for (const std::size_t i : q_index[c]) {  // 22 to 30: gather, A, ltr, softmax, A V', scatter
      double total = 0.0;
      std::vector<double> mixed(v[0].size(), 0.0);
      for (const std::size_t j : k_index[c]) {
        if (causal && j > i) continue;
        const double weight = std::exp(dot(q[i], k[j]));
        total += weight;
        for (std::size_t d = 0; d < mixed.size(); ++d) mixed[d] += weight * v[j][d];
      }
      for (std::size_t d = 0; d < mixed.size(); ++d) result.output[i][d] += mixed[d] / total;
      scattered[i] += 1.0;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (double& value : result.output[i]) value /= std::max(1.0, scattered[i]);
  }
  const double lambda = 0.999;
  result.centroids = mu;
  for (auto& centroid : result.centroids) {
    for (double& value : centroid) value *= lambda;
  }
  for (std::size_t i = 0; i < n; ++i) {  // 31 to 34
    auto& q_centroid = result.centroids[argmax_centroid(q_prod, i)];
    auto& k_centroid = result.centroids[argmax_centroid(k_prod, i)];
    for (std::size_t d = 0; d < q[i].size(); ++d) {
      q_centroid[d] += (1.0 - lambda) * q[i][d] / 2.0;
      k_centroid[d] += (1.0 - lambda) * k[i][d] / 2.0;
    }
  }
  return result;
}

struct RoutedLayer {
  MultiHeadAttention layer{nullptr};

  RoutedLayer(RoutingPreset preset, const RoutingSizes& sizes, std::int64_t width)
      : RoutedLayer(routing_preset(preset, sizes), sizes, width) {}
  RoutedLayer(const RoutingSettings& settings, const RoutingSizes& sizes, std::int64_t width) {
    layer = MultiHeadAttention(AttentionConfig{.kind = sizes.kind,
                                               .width = width,
                                               .head_mix = settings.head_mix,
                                               .unused_key_columns = settings.unused_key_columns,
                                               .head_groups = {settings.group}},
                               LayerPlace{.seed = 5}, at::TensorOptions(at::kDouble));
    // Weights as large as trained ones, so that attention is not flat.
    const at::NoGradGuard no_gradient;
    for (at::Tensor& parameter : layer->parameters()) parameter.mul_(3.0);
  }
  at::Tensor weight(const std::string& name) const { return layer->named_parameters()[name]; }
  Matrix project(const at::Tensor& x, const std::string& name, std::int64_t head, std::int64_t dim) const {
    return rows_of(at::matmul(x, weight(name).narrow(0, head * dim, dim).t()));
  }
};

double largest_difference(const Matrix& a, const Matrix& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t d = 0; d < a[i].size(); ++d) worst = std::max(worst, std::abs(a[i][d] - b[i][d]));
  }
  return worst;
}

// Line 31 to 34 as printed: the preset takes means instead, because sums let one centroid win every token.
RoutingSettings as_printed(const RoutingSizes& sizes) {
  RoutingSettings settings = routing_preset(RoutingPreset::paper, sizes);
  settings.routing().update = CentroidUpdate::sum;
  return settings;
}

TEST(AlgorithmOne, ReproducesThePseudoCodeStepByStep) {
  for (const AttentionKind kind : {AttentionKind::causal_self, AttentionKind::bidirectional_self}) {
    const std::int64_t n = 24;
    const std::int64_t dim = 6;
    const std::int64_t clusters = 4;
    const RoutingSizes sizes{.heads = 2, .clusters = clusters, .window = n / clusters, .kind = kind};
    RoutedLayer routed(as_printed(sizes), sizes, 2 * dim);
    const at::Tensor x = random_tensor({1, n, 2 * dim}, 3);
    const Centroids& centroids = *routed.layer->centroids(0);
    const at::Tensor mu = centroids.centroids().clone();
    AttentionState state;
    const at::Tensor output = routed.layer->forward(x, state);
    routed.layer->centroids(0)->update();
    const bool causal = kind == AttentionKind::causal_self;
    std::vector<at::Tensor> heads;
    for (std::int64_t head = 0; head < 2; ++head) {
      const Matrix q = routed.project(x[0], "query_weight", head, dim);
      const Matrix k = causal ? q : routed.project(x[0], "key_weight", head, dim);
      const Matrix v = routed.project(x[0], "value_weight", head, dim);
      const Algorithm expected = algorithm_one(q, k, v, rows_of(mu[head]), 6, causal);
      at::Tensor rows = at::empty({n, dim}, at::kDouble);
      for (std::int64_t i = 0; i < n; ++i)
        rows[i] = at::tensor(expected.output[static_cast<std::size_t>(i)], at::kDouble);
      heads.push_back(rows);
      // Centroids are float32.
      EXPECT_LT(largest_difference(rows_of(centroids.centroids()[head]), expected.centroids), 1e-6);
    }
    const at::Tensor expected = at::matmul(at::cat(heads, 1), routed.weight("output_weight").t());
    EXPECT_LT((output[0] - expected).abs().max().item<double>(), 1e-10) << "causal " << causal;
  }
}

// Four tokens of dimension 2. Layer norm of (a, b) is (1, -1) or (-1, 1): tokens 0, 1, 3 become u = (1, -1), token 2
// becomes -u. Centroids (1, 0) and (0, 1) score u 1 and -1. With w = 2 the first centroid takes tokens 0 and 1 (ties go
// to the earlier), the second takes token 2 and, of the tied rest, token 0.
TEST(AlgorithmOne, HandWorkedTinyCase) {
  const at::Tensor q = at::tensor({2.0, 0.0, 5.0, 1.0, 0.0, 3.0, 1.0, -1.0}, at::kDouble).view({1, 1, 4, 2});
  const at::Tensor v = at::tensor({10.0, 20.0, 30.0, 40.0}, at::kDouble).view({1, 1, 4, 1});
  const HeadGroupConfig group = as_printed({.heads = 1, .clusters = 2, .window = 2}).group;
  const auto pattern = make_pattern(group, {.dim = 2, .options = at::TensorOptions(at::kDouble)});
  pattern->centroids()->set_centroids(at::tensor({1.0, 0.0, 0.0, 1.0}).view({1, 2, 2}));
  const at::Tensor normed = at::layer_norm(q, {2}, {}, {}, 1e-6);
  const Plan planned = pattern->plan({.layout = self_layout(1, 1, 4), .queries = normed, .training = true});
  EXPECT_TRUE(planned.query_order.equal(at::tensor({0, 1, 0, 2}, at::kInt)));
  EXPECT_TRUE(planned.query_choice.flatten().equal(at::tensor({0, 0, 1, 0}, at::kInt)));

  // Logits: u.u = 2, u.(-u) = -2. Token 1 mixes tokens 0 and 1 evenly; token 2 weighs 0 and itself e^-2 : e^2; token 0
  // is scattered from both clusters and reads only itself in each; token 3 is in none.
  const at::Tensor out = attend(normed, normed, v, planned, {.scale = 1.0, .merge = Merge::mean}).output.flatten();
  EXPECT_NEAR(out[0].item<double>(), 10.0, 1e-9);
  EXPECT_NEAR(out[1].item<double>(), 15.0, 1e-4);  // the eps of layer norm
  const double far = std::exp(-2.0);
  const double near = std::exp(2.0);
  EXPECT_NEAR(out[2].item<double>(), (10.0 * far + 30.0 * near) / (far + near), 1e-4);
  EXPECT_EQ(out[3].item<double>(), 0.0);

  // mu_0 <- 0.999 (1, 0) + 0.001 * 3 (1, -1); mu_1 <- 0.999 (0, 1) + 0.001 (-1, 1).
  pattern->centroids()->update();
  const at::Tensor mu = pattern->centroids()->centroids()[0];
  EXPECT_NEAR(mu[0][0].item<double>(), 0.999 + 0.003, 1e-6);
  EXPECT_NEAR(mu[0][1].item<double>(), -0.003, 1e-6);
  EXPECT_NEAR(mu[1][0].item<double>(), -0.001, 1e-6);
  EXPECT_NEAR(mu[1][1].item<double>(), 0.999 + 0.001, 1e-6);
}

// docs/facts.md A1 to A13 for one sequence, causal with shared queries and keys: scale, normalise, top-w, rank
// positions, ltr with the diagonal, softmax, scatter with count + 0.01, head mixing, output projection.
TEST(CodePreset, EqualsAPlainLoopImplementation) {
  const std::size_t n = 20;
  const std::int64_t dim = 8;
  const std::size_t w = 7;
  RoutedLayer routed(RoutingPreset::code, {.heads = 2, .clusters = 3, .window = static_cast<std::int64_t>(w)}, 2 * dim);
  const at::Tensor x = random_tensor({1, static_cast<std::int64_t>(n), 2 * dim}, 4);
  AttentionState state;
  const at::Tensor output = routed.layer->forward(x, state);
  EXPECT_EQ(routed.weight("key_weight").size(0), 2 * dim);  // A13: columns that nothing reads
  const Matrix relative_key = rows_of(routed.weight("group0_relative_key"));
  const Matrix relative_value = rows_of(routed.weight("group0_relative_value"));
  ASSERT_EQ(relative_key.size(), 2 * w + 1);

  std::vector<at::Tensor> heads;
  double squares = 0.0;
  for (std::int64_t head = 0; head < 2; ++head) {
    Matrix q = routed.project(x[0], "query_weight", head, dim);
    const Matrix v = routed.project(x[0], "value_weight", head, dim);
    for (auto& row : q) {
      for (double& value : row) value /= std::sqrt(static_cast<double>(dim));  // A1: scaled before the norm
    }
    q = layer_normed(q);
    const Matrix mu = rows_of(routed.layer->centroids(0)->centroids()[head]);
    const Matrix prod = products(mu, q);
    const auto index = sorted_top(prod, w);
    at::Tensor sum = at::zeros({static_cast<std::int64_t>(n), dim}, at::kDouble);
    std::vector<double> count(n, 0.0);
    for (std::size_t c = 0; c < mu.size(); ++c) {
      for (std::size_t a = 0; a < index[c].size(); ++a) {
        const std::size_t i = index[c][a];
        std::vector<double> weight(a + 1);
        double total = 0.0;
        for (std::size_t b = 0; b <= a; ++b) {  // A9: lower triangle of ranks, diagonal included
          const auto row = static_cast<std::size_t>(static_cast<std::int64_t>(w + b) - static_cast<std::int64_t>(a));
          weight[b] = std::exp(dot(q[i], q[index[c][b]]) + dot(q[i], relative_key[row]));  // A2, A10
          total += weight[b];
        }
        for (std::size_t b = 0; b <= a; ++b) {
          const auto row = static_cast<std::size_t>(static_cast<std::int64_t>(w + b) - static_cast<std::int64_t>(a));
          for (std::int64_t d = 0; d < dim; ++d) {
            const auto place = static_cast<std::size_t>(d);
            sum[static_cast<std::int64_t>(i)][d] +=
                weight[b] / total * (v[index[c][b]][place] + relative_value[row][place]);
          }
        }
        count[i] += 1.0;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      sum[static_cast<std::int64_t>(i)] /= count[i] + 0.01;  // A11
      const auto& nearest = mu[argmax_centroid(prod, i)];
      for (std::size_t d = 0; d < nearest.size(); ++d) squares += (q[i][d] - nearest[d]) * (q[i][d] - nearest[d]);
    }
    heads.push_back(at::matmul(sum, routed.weight("head_mix_weight").t()));  // A12
  }
  const at::Tensor expected = at::matmul(at::cat(heads, 1), routed.weight("output_weight").t());
  EXPECT_LT((output[0] - expected).abs().max().item<double>(), 1e-10);
  // A8: mean over tokens, heads and dimensions, weight 1e-4, counted twice.
  const double commitment = 2.0 * 1e-4 * squares / (2.0 * static_cast<double>(n) * static_cast<double>(dim));
  EXPECT_NEAR(state.auxiliary_loss.item<double>(), commitment, 1e-10);
}

// docs/facts.md A6 over many steps: counts from 0, sums from the centroids, Laplace smoothing, argmax of the whole
// batch; with separate queries and keys first the queries' update, then the keys'.
TEST(CodePreset, UpdateEqualsPlainLoopsOverManySteps) {
  for (const bool shared : {true, false}) {
    const std::int64_t dim = 6;
    const std::size_t clusters = 5;
    HeadGroupConfig group =
        routing_preset(RoutingPreset::code,
                       {.heads = 1, .clusters = 5, .window = 8, .kind = AttentionKind::bidirectional_self})
            .group;
    group.shared_query_key = shared;
    const auto pattern = make_pattern(
        group, {.kind = AttentionKind::bidirectional_self, .dim = dim, .options = at::TensorOptions(at::kDouble)});
    Centroids& centroids = *pattern->centroids();
    Matrix mu = rows_of(centroids.centroids()[0]);
    Matrix sums = mu;
    std::vector<double> counts(clusters, 0.0);
    for (std::uint64_t step = 0; step < 40; ++step) {
      const at::Tensor q = at::layer_norm(random_tensor({2, 1, 30, dim}, 100 + step), {dim}, {}, {}, 1e-6);
      const at::Tensor k = at::layer_norm(random_tensor({2, 1, 30, dim}, 900 + step), {dim}, {}, {}, 1e-6);
      pattern->plan(
          {.layout = self_layout(2, 1, 30), .queries = q, .keys = shared ? at::Tensor() : k, .training = true});
      centroids.update();
      // Both sides chose with the old centroids.
      const Matrix old = mu;
      for (const at::Tensor& side : shared ? std::vector{q} : std::vector{q, k}) {
        const Matrix rows = rows_of(side.reshape({60, dim}));
        const Matrix prod = products(old, rows);
        std::vector<double> n(clusters, 0.0);
        Matrix s(clusters, std::vector<double>(static_cast<std::size_t>(dim), 0.0));
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const std::size_t c = argmax_centroid(prod, i);
          n[c] += 1.0;
          for (std::size_t d = 0; d < rows[i].size(); ++d) s[c][d] += rows[i][d];
        }
        double total = 0.0;
        for (std::size_t c = 0; c < clusters; ++c) total += counts[c] = 0.999 * counts[c] + 0.001 * n[c];
        for (std::size_t c = 0; c < clusters; ++c) {
          const double smoothed = (counts[c] + 1e-5) / (total + static_cast<double>(clusters) * 1e-5) * total;
          for (std::size_t d = 0; d < s[c].size(); ++d) {
            sums[c][d] = 0.999 * sums[c][d] + 0.001 * s[c][d];
            mu[c][d] = sums[c][d] / smoothed;
          }
        }
      }
      // Relative to the size of the centroids, which jumps at the first step with an empty cluster (docs/facts.md A7).
      double largest = 1.0;
      for (const auto& row : mu) {
        for (const double value : row) largest = std::max(largest, std::abs(value));
      }
      ASSERT_LT(largest_difference(rows_of(centroids.centroids()[0]), mu), 1e-4 * largest)
          << "step " << step << " shared " << shared;
    }
    EXPECT_EQ(centroids.updates(), 40);
  }
}

TEST(ValidityLabel, IsEarnedByTheSelection) {
  RoutingPattern pattern;
  EXPECT_STREQ(validity_label(pattern, AttentionKind::causal_self), "causal");
  pattern.selection = RoutingSelection::nearest;
  EXPECT_STREQ(validity_label(pattern, AttentionKind::causal_self), "causal");
  pattern.selection = RoutingSelection::balanced;
  EXPECT_STREQ(validity_label(pattern, AttentionKind::causal_self), "selection reads the future");
  // A decoder's queries compete with later ones; an encoder has no future.
  EXPECT_STREQ(validity_label(pattern, AttentionKind::cross), "selection reads the future");
  EXPECT_STREQ(validity_label(pattern, AttentionKind::bidirectional_self), "causal");
}

}  // namespace
}  // namespace routing::algorithm_one_test
