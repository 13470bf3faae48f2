// One layer's attention without its projections: make the plan, attend over it, go back. What `bench attention` and
// `bench scaling` time.
#pragma once

#include "lab/bench/attention_sizes.h"
#include "lab/bench/row.h"
#include "routing/attention/patterns/pattern.h"
#include "routing/ops/attend/attend.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routing::bench {

// local, nearest, threshold, balanced, full, strided, random, lsh, fixed, local2d, local_offsets, span, memory.
const std::vector<std::string>& attention_patterns();

// The heads of one pattern, causal, as a layer would have them:
//
//   local                   sliding, the last `window` tokens
//   nearest, threshold,     routing preset "ours" with that selection: `clusters` clusters, `window` of each, keys are
//   balanced                the queries
//   full, strided           all earlier tokens; every (n / window)th, so that a group has `window` members
//   fixed                   the last 8 of every 8 n / window tokens, `window` keys at the end
//   local2d                 a square image, blocks and flanges as large as make a pixel read `window` values on average
//   random                  `clusters` sets of `window` tokens
//   lsh                     `clusters` buckets in one round, `window` of each, keys are the queries
//   local_offsets           local with relative tables
//   span                    the same keys by a learned span, with relative tables; the last keys lie on its ramp
//   memory                  local; of the n tokens the first half is remembered, keys without queries
//
// Throws  ConfigError  an unknown pattern, naming the nearest; sizes below 1; a window longer than the sequence
HeadGroupConfig attention_heads(const std::string& pattern, const AttentionSizes& sizes);

class AttentionWork {
 public:
  // Tokens come from a mixture of Gaussians, one centre per cluster and head, and are layer-normalised. Centroids learn
  // from some training forwards first, so that thresholds are those of training and clusters equally large.
  AttentionWork(const std::string& pattern, const AttentionSizes& sizes, std::uint64_t seed);

  // A plan as in a training forward, from vectors that are normalised already; forward also attends; forward_backward
  // also computes the gradients of q, k and v, of relative tables and of the span. Precision means nothing to plans.
  void run(Pass pass, MatmulPrecision precision) const;

  // The parts of it. Leaves are q and v, and k where it is not q, as tensors of their own.
  Plan make_plan() const;
  std::vector<at::Tensor> leaves() const;
  at::Tensor attend_over(const Plan& plan, const std::vector<at::Tensor>& leaves, MatmulPrecision precision) const;

  std::int64_t pairs() const { return pairs_; }
  // Clusters a token is a member of, on average; empty for patterns without clusters.
  std::optional<double> memberships() const { return memberships_; }

 private:
  // What is learned beside the projections: relative tables and spans.
  std::vector<at::Tensor> learned() const;

  HeadGroupConfig heads_;
  AttentionSizes sizes_;
  TokenLayout layout_;
  std::int64_t remembered_ = 0;
  std::shared_ptr<Pattern> pattern_;
  at::Tensor q_, k_, v_, output_gradient_;    // k_ undefined where keys are the queries
  at::Tensor relative_key_, relative_value_;  // undefined without relative positions
  std::int64_t pairs_ = 0;
  std::optional<double> memberships_;
};

// Runs each pattern once at a small size. What the process keeps for good from then on (threads, generated code) is no
// longer charged to the first case whose memory is measured.
void run_small_once(const std::vector<std::string>& patterns, const std::vector<MatmulPrecision>& precisions);

// What the pass needs: flops.h of the attended pairs; 0 for plans.
double attention_flops(Pass pass, std::int64_t pairs, std::int64_t dim);

// A pass over the work as a row to be measured. The name of the benchmark and the memory are the caller's to fill in.
struct TimedPass {
  Pass pass = Pass::forward_backward;
  MatmulPrecision precision = MatmulPrecision::fp32;
};
Subject attention_subject(const std::string& pattern, const AttentionSizes& sizes,
                          const std::shared_ptr<const AttentionWork>& work, const TimedPass& timed);

}  // namespace routing::bench
