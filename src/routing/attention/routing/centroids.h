// The centroids of one group of routed heads: what they are and how they learn.
//
// Everything is a buffer, so that the optimiser never sees it and checkpoints always do. A forward pass hands its
// totals to collect(); update(), once after the optimiser's step, applies what was collected since the last one. So
// accumulation steps count together, a recomputed forward (activation checkpointing) counts once because it reuses its
// plan, and several ranks can add their totals in between.
//
// With n tokens that move a centroid, S their sum, s the scores of a step and k clusters:
//
//   mean:  count <- decay count + (1 - decay) n
//          sum <- decay sum + (1 - decay) S
//          centroid = sum / ((count + laplace) / (total + k laplace) total), total the sum of all counts
//
//   sum:   centroid <- decay centroid + (1 - decay) / 2 (S of the queries + S of the keys)
//
//   tau_c <- tau_c + rate sigma_c (f_c - target / k), f_c the share of tokens with s >= tau_c, sigma_c the deviation of
//            s over the step; after the very first step instead the (1 - target / k) quantile of the scores of a sample
//            of its tokens against the moved centroids
//
#pragma once

#include "routing/attention/routing/kmeans.h"
#include "routing/attention/routing/routing_statistics.h"
#include "routing/config/routing_pattern.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace routing {

// The state in float32 on the CPU, where plans are made and updates computed; the buffers themselves where they are
// that already, copies otherwise.
struct HostCentroids {
  at::Tensor centroids, counts, sums, tau;

  CentroidView view(std::int64_t head) const;
  std::int64_t clusters() const { return centroids.size(1); }
  std::int64_t dim() const { return centroids.size(2); }
  // Where cluster c of a head begins.
  float* centroid(std::int64_t head, std::int64_t c) const { return row(centroids, head, c); }
  float* sum(std::int64_t head, std::int64_t c) const { return row(sums, head, c); }
  float& count(std::int64_t head, std::int64_t c) const { return counts.data_ptr<float>()[head * clusters() + c]; }
  float& threshold(std::int64_t head, std::int64_t c) const { return tau.data_ptr<float>()[head * clusters() + c]; }

 private:
  float* row(const at::Tensor& rows, std::int64_t head, std::int64_t c) const {
    return rows.data_ptr<float>() + (head * clusters() + c) * dim();
  }
};

class Centroids : public torch::nn::Module {
 public:
  // `key` names the random streams; head h of the group draws its own whatever the others are.
  Centroids(const RoutingPattern& pattern, std::int64_t heads, std::int64_t dim, std::uint64_t key,
            const at::TensorOptions& options);

  // Tokens of this step to sample for each head; 0 where nothing needs a sample.
  std::size_t sample_size() const;
  // Names the priorities of sampled tokens.
  std::uint64_t sample_key() const;

  HostCentroids host() const;
  const at::Tensor& centroids() const { return centroids_; }  // float [heads, clusters, dim]
  const at::Tensor& tau() const { return tau_; }              // float [heads, clusters]
  const at::Tensor& counts() const { return counts_; }        // float [heads, clusters]
  const at::Tensor& sums() const { return sums_; }            // float [heads, clusters, dim]
  std::int64_t updates() const { return updates_.item<std::int64_t>(); }

  // Sets the centroids, for tests and imports, as if they had been drawn: moving averages start from them.
  void set_centroids(const at::Tensor& centroids);

  void collect(const StepTotals& totals, bool training);
  // What has been collected in training since the last update, for ranks to add up; and what to apply instead. Setting
  // nothing forgets it, for a step that is skipped.
  const StepTotals& pending() const { return pending_; }
  void set_pending(StepTotals totals) { pending_ = std::move(totals); }

  // The same of forward passes in evaluation.
  const StepTotals& evaluated() const { return evaluation_; }
  void set_evaluated(StepTotals totals) { evaluation_ = std::move(totals); }

  // Were all tokens collected since the last update finite?
  bool pending_is_finite() const;
  // Applies and clears the collected totals. Nothing happens where no token was seen. Throws an InputError, with the
  // state as it was, if a token was not finite.
  RoutingStatistics update();
  // Statistics of the forward passes in evaluation since the last call; changes no state.
  RoutingStatistics take_evaluation_statistics();

 private:
  Vectors sampled(std::int64_t head) const;
  void apply_mean(const HostCentroids& host, const ClusterTotals& moved, std::int64_t head) const;
  void apply_sum(const HostCentroids& host, std::int64_t head) const;
  void move_head(const HostCentroids& host, std::int64_t head) const;
  void start_from_kmeans(const HostCentroids& host, std::int64_t head) const;
  // Both return the mean |change| of tau in standard deviations.
  double start_tau(const HostCentroids& host, const ClusterTotals& totals, std::int64_t head) const;
  double follow_tau(const HostCentroids& host, const ClusterTotals& totals, std::int64_t head) const;
  void place(const HostCentroids& host, std::int64_t head, std::int64_t c, const std::vector<float>& vector,
             const Vectors& sample) const;
  double target() const { return pattern_.target_share / static_cast<double>(pattern_.clusters); }
  std::int64_t revive_dead(const HostCentroids& host, const ClusterTotals& totals, std::int64_t head);

  RoutingPattern pattern_;
  std::int64_t heads_, dim_;
  std::uint64_t key_;
  at::Tensor centroids_, counts_, sums_, tau_;
  at::Tensor empty_updates_;  // int64 [heads, clusters]: updates in a row without members
  at::Tensor updates_;        // int64 scalar
  StepTotals pending_, evaluation_;
};

}  // namespace routing
