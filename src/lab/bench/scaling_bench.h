// `bench scaling`: how time and memory of one layer's attention grow with the sequence, and what the number of clusters
// does to them. Routing costs n k for the plan and n w for attention; with w = n / k both are equal at k = sqrt(n), and
// the whole grows as n^1.5.
#pragma once

#include "lab/bench/attention_sizes.h"
#include "lab/bench/row.h"
#include "routing/ops/precision.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace routing::bench {

struct ScalingBench {
  std::vector<std::string> patterns = {"threshold", "local"};
  std::int64_t from = 1024;  // tokens, doubled until more than `to`
  std::int64_t to = 131072;
  std::int64_t full_to = 8192;   // full attention stops here
  std::int64_t fit_from = 4096;  // shorter sequences are left out of the fit: overheads weigh too much there
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::int64_t dim = 64;
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::uint64_t seed = 1;
  RunnerOptions runner = {};
};

// round(sqrt(n)) clusters; the window that makes clusters times window the sequence, rounded.
AttentionSizes scaling_sizes(const ScalingBench& bench, std::int64_t n);
AttentionSizes sweep_sizes(const ScalingBench& bench, std::int64_t n, std::int64_t clusters);

// Rows of forward+backward with the plan, handed over length by length, and returned all together.
//
//   ratio   seconds per pair relative to the shortest sequence of the same pattern
std::vector<Row> bench_scaling(const ScalingBench& bench, const std::function<void(const std::vector<Row>&)>& done);

struct GrowthFit {
  std::string pattern = {};
  std::int64_t from = 0;  // tokens
  std::int64_t to = 0;
  int points = 0;
  std::optional<double> seconds = std::nullopt;  // exponents of n; empty if there are too few points
  std::optional<double> bytes = std::nullopt;
};
// For each pattern, over its rows from `fit_from` tokens on.
std::vector<GrowthFit> fit_growth(const std::vector<Row>& rows, std::int64_t fit_from);

struct ClusterSweep {
  std::int64_t n = 16384;
  std::int64_t from = 16;  // clusters, doubled until more than `to`
  std::int64_t to = 1024;
};

// The first pattern at a fixed length, with w = n / k, all in one series of rounds.
//
//   ratio       seconds relative to the fewest
//   plan_share  of the plan in forward+backward
std::vector<Row> bench_cluster_sweep(const ScalingBench& bench, const ClusterSweep& sweep);

}  // namespace routing::bench
