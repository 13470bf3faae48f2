// How differently do two heads look at the same sequence? The paper's table of Jensen-Shannon divergences.
//
//   JSD(p || q) = (KL(p || m) + KL(q || m)) / 2,   m = (p + q) / 2,   natural logarithm
//
// 0 for equal distributions, ln 2 for such as have no key in common. A distribution is one row of attention, at the
// true positions of its keys over the whole sequence; zero where a head does not look.
#pragma once

#include "routing/attention/head_probe.h"
#include "routing/model/sequence_model.h"
#include "routing/ops/precision.h"

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace routing {

// Rows are first divided by their sums, which are a little below 1 under Merge::mean. Rows must not be empty.
double jensen_shannon(const AttentionRow& p, const AttentionRow& q);

struct DivergenceOptions {
  std::int64_t draws = 10;     // of a pair of heads and a sequence
  std::int64_t queries = 256;  // sampled in each sequence; 0 means all
  std::uint64_t seed = 1;
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::function<void(std::int64_t done, std::int64_t sequences)> progress = {};
};

// Over the draws: each takes a random sequence and a random pair of different heads of two kinds, and is the mean over
// the queries. Queries where one of the two heads reads nothing (not routed) have no divergence and are left out.
struct Divergence {
  std::int64_t draws = 0;  // 0 if the layer has no such pair
  double mean = std::numeric_limits<double>::quiet_NaN();
  double deviation = std::numeric_limits<double>::quiet_NaN();  // standard deviation of the draws, by draws - 1
  double left_out = 0.0;  // share of the queries, over all pairs of these kinds and all sequences
};

struct LayerDivergence {
  std::vector<std::string> patterns;  // one per head
  std::vector<double> reads_nothing;  // one per head: the share of queries with an empty row
  // [heads, heads]: mean over all sequences and queries; 0 on the diagonal, NaN where two heads have no query in
  // common.
  std::vector<double> matrix;
  // Local heads and those of any other pattern.
  Divergence local_local, local_content, content_content;

  std::int64_t heads() const { return static_cast<std::int64_t>(patterns.size()); }
  double between(std::int64_t first, std::int64_t second) const {
    return matrix[static_cast<std::size_t>(first * heads() + second)];
  }
};

struct HeadDivergence {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t queries = 0;  // looked at in each sequence
  std::vector<LayerDivergence> layers;
};

// tokens int64 [sequences, n]. One pass of the model for each sequence; n x n matrices are never made. The model must
// be in evaluation mode. Bits do not depend on the number of threads.
HeadDivergence head_divergence(SequenceModel& model, const at::Tensor& tokens, const DivergenceOptions& options);

// The paper's table, for comparison only: its local rows stand at wrong positions (docs/facts.md E7).
struct PublishedDivergence {
  struct Entry {
    double mean, deviation;
  };
  Entry local_local, local_routing, routing_routing;
};
const std::array<PublishedDivergence, 10>& published_divergence();

}  // namespace routing
