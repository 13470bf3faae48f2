// How much of dense attention does a head's plan keep? For a query i, with the head's own vectors:
//
//   p_j      = softmax of dense_logits over all earlier positions j < i
//   mass     = sum of p_j over the keys that the plan lets the query read
//   top k    = share of the k keys with the largest inner product q_i . k_j that the plan holds (maximum inner
//              product search); of all i where there are fewer than k
//
// The query itself is left out everywhere: every pattern lets it be read or not as a rule, not by search, and where
// keys are queries it has the largest product of all by construction.
//
// Two plans with just as many distinct earlier keys, m, show what that is worth:
//
//   recent   the m positions before the query
//   random   m positions drawn uniformly; mass and every top k are m / i on average, exactly
//
// Dense logits have relative positions by true offset and recency where the head has them, but nothing for ranks
// (attention/head_probe.h). Inner products are of queries and keys alone. One query takes memory for its n products.
#pragma once

#include "lab/heads/probed_heads.h"
#include "routing/attention/head_probe.h"
#include "routing/model/sequence_model.h"
#include "routing/ops/precision.h"

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace routing {

inline constexpr std::array<std::int64_t, 3> kCoverageTops{1, 8, 64};

// Shares from 0 to 1.
struct PlanCoverage {
  double mass = 0.0;
  // For each of kCoverageTops. Keys that tie for the last places count as if these were drawn among them.
  std::array<double, kCoverageTops.size()> top = {};
};

// Of one query, or the mean over several.
struct Coverage {
  double keys = 0.0;           // distinct earlier keys that are read: m
  double reads_nothing = 0.0;  // share of queries with an empty row: not routed. Their coverage is 0 and counts.
  PlanCoverage plan = {};
  PlanCoverage recent = {};
  double random = 0.0;  // mass and every top k: m / i
};

// `at.query` must have an earlier position. Throws an InputError otherwise.
Coverage coverage_of_query(const GroupProbe& probe, const ProbedQuery& at);

struct AttentionCoverageOptions {
  std::int64_t queries = 64;  // sampled in each sequence, the same for every head; 0 means all but the first
  std::uint64_t seed = 1;
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::function<void(std::int64_t done, std::int64_t sequences)> progress = {};
};

struct HeadCoverage {
  std::string pattern;
  Coverage coverage;
};

struct CoverageReport {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t queries = 0;                       // looked at in each sequence
  std::vector<std::vector<HeadCoverage>> layers;  // [layer][head]
};

// tokens int64 [sequences, n], n >= 2. One pass of the model for each sequence. The model must be in evaluation mode.
CoverageReport attention_coverage(SequenceModel& model, const at::Tensor& tokens,
                                  const AttentionCoverageOptions& options);

// The mean over the heads of one kind; nothing if there are none.
std::optional<Coverage> mean_coverage(const std::vector<HeadCoverage>& layer, HeadKind kind);

}  // namespace routing
