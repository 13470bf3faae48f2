#include "routing/attention/routing/centroids.h"

#include "routing/core/error.h"
#include "routing/ops/random_fill.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routing {
namespace {

constexpr double kNormEps = 1e-6;
// The first step's thresholds and k-means see up to so many tokens per head, all of them in most first batches.
constexpr std::size_t kFirstSample = 16384;
// Later samples only place revived centroids: enough for the (1 - 1/k) quantile of their scores.
constexpr std::size_t kSamplePerCluster = 8;

at::Tensor on_host(const at::Tensor& buffer) {
  return buffer.to(at::kCPU, at::kFloat).contiguous();
}

}  // namespace

CentroidView HostCentroids::view(std::int64_t head) const {
  return {.centroids = centroid(head, 0), .tau = &threshold(head, 0), .clusters = clusters(), .dim = dim()};
}

Centroids::Centroids(const RoutingPattern& pattern, std::int64_t heads, std::int64_t dim, std::uint64_t key,
                     const at::TensorOptions& options)
    : pattern_(pattern), heads_(heads), dim_(dim), key_(key) {
  const at::TensorOptions floats = at::TensorOptions(at::kFloat).device(options.device());
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(options.device());
  at::Tensor start = at::empty({heads, pattern.clusters, dim}, floats);
  for (std::int64_t head = 0; head < heads; ++head) {
    fill_normal(start[head], 0.0, 1.0, RandomStream(key, "centroids", {static_cast<std::uint64_t>(head)}));
  }
  if (!start.is_meta()) start = at::layer_norm(start, {dim}, {}, {}, kNormEps);
  centroids_ = register_buffer("centroids", start);
  counts_ = register_buffer("counts", at::full({heads, pattern.clusters}, pattern.initial_count, floats));
  // The authors start counts at 0 and the sum at the centroid all the same.
  sums_ = register_buffer("sums", start * (pattern.initial_count > 0.0 ? pattern.initial_count : 1.0));
  tau_ = register_buffer("tau", at::zeros({heads, pattern.clusters}, floats));
  empty_updates_ = register_buffer("empty_updates", at::zeros({heads, pattern.clusters}, integers));
  updates_ = register_buffer("updates", at::zeros({}, integers));
}

std::size_t Centroids::sample_size() const {
  const bool needed_first =
      pattern_.balance == RoutingBalance::threshold || pattern_.init == CentroidInit::first_batch_kmeans;
  if (needed_first && updates() == 0) return kFirstSample;
  // Only a centroid about to lose its patience needs a place to go.
  const bool waiting = pattern_.revive && empty_updates_.max().item<std::int64_t>() + 1 >= pattern_.dead_patience;
  return waiting ? kSamplePerCluster * static_cast<std::size_t>(pattern_.clusters) : 0;
}

std::uint64_t Centroids::sample_key() const {
  return stream_key(key_, "token sample", {static_cast<std::uint64_t>(updates())});
}

HostCentroids Centroids::host() const {
  HostCentroids host;
  host.centroids = on_host(centroids_);
  host.counts = on_host(counts_);
  host.sums = on_host(sums_);
  host.tau = on_host(tau_);
  return host;
}

void Centroids::set_centroids(const at::Tensor& centroids) {
  require<InputError>(centroids.sizes() == centroids_.sizes(), "centroids are ", centroids.sizes(), ", but must be ",
                      centroids_.sizes());
  centroids_.copy_(centroids);
  sums_.copy_(centroids * (pattern_.initial_count > 0.0 ? pattern_.initial_count : 1.0));
}

void Centroids::collect(const StepTotals& totals, bool training) {
  (training ? pending_ : evaluation_).add(totals);
}

Vectors Centroids::sampled(std::int64_t head) const {
  const auto index = static_cast<std::size_t>(head);
  return index < pending_.sample.size() ? pending_.sample[index].vectors() : Vectors();
}

void Centroids::apply_mean(const HostCentroids& host, const ClusterTotals& moved, std::int64_t head) const {
  const double decay = pattern_.decay;
  const auto stays = [&](std::int64_t c) {
    return moved.moving[static_cast<std::size_t>(c)] == 0 && !pattern_.decay_empty;
  };
  double total = 0.0;
  for (std::int64_t c = 0; c < pattern_.clusters; ++c) {
    const auto n = static_cast<double>(moved.moving[static_cast<std::size_t>(c)]);
    float& count = host.count(head, c);
    if (!stays(c)) count = static_cast<float>(decay * count + (1.0 - decay) * n);
    total += count;
  }
  const double smoothing = static_cast<double>(pattern_.clusters) * pattern_.laplace;
  for (std::int64_t c = 0; c < pattern_.clusters; ++c) {
    if (stays(c)) continue;
    const double smoothed = (host.count(head, c) + pattern_.laplace) / (total + smoothing) * total;
    float* sum = host.sum(head, c);
    float* centroid = host.centroid(head, c);
    const double* moving_sum = moved.moving_sum.data() + c * dim_;
    for (std::int64_t d = 0; d < dim_; ++d) {
      sum[d] = static_cast<float>(decay * sum[d] + (1.0 - decay) * moving_sum[d]);
      if (smoothed > 0.0) centroid[d] = static_cast<float>(sum[d] / smoothed);
    }
  }
}

void Centroids::apply_sum(const HostCentroids& host, std::int64_t head) const {
  const auto index = static_cast<std::size_t>(head);
  const ClusterTotals& queries = pending_.totals[0][index];
  // Shared queries and keys count as both.
  const ClusterTotals& keys = pending_.totals[1].empty() ? queries : pending_.totals[1][index];
  float* centroids = host.centroid(head, 0);
  for (std::int64_t place = 0; place < pattern_.clusters * dim_; ++place) {
    const auto at = static_cast<std::size_t>(place);
    const double moved = (queries.moving_sum[at] + keys.moving_sum[at]) / 2.0;
    centroids[place] = static_cast<float>(pattern_.decay * centroids[place] + (1.0 - pattern_.decay) * moved);
  }
}

void Centroids::move_head(const HostCentroids& host, std::int64_t head) const {
  if (pattern_.update_from == UpdateFrom::none) return;
  const auto index = static_cast<std::size_t>(head);
  if (pattern_.update == CentroidUpdate::sum) {
    apply_sum(host, head);
  } else if (pattern_.separate_update == SeparateUpdate::sequential && !pending_.totals[1].empty()) {
    apply_mean(host, pending_.totals[0][index], head);
    apply_mean(host, pending_.totals[1][index], head);
  } else {
    apply_mean(host, pending_.pooled(head), head);
  }
}

void Centroids::start_from_kmeans(const HostCentroids& host, std::int64_t head) const {
  const Vectors vectors = sampled(head);
  if (vectors.empty()) return;
  const Vectors means = kmeans(vectors, pattern_.clusters, pattern_.kmeans_iterations,
                               RandomStream(key_, "kmeans", {static_cast<std::uint64_t>(head)}));
  for (std::int64_t c = 0; c < pattern_.clusters; ++c) {
    const auto& mean = means[static_cast<std::size_t>(c)];
    std::copy(mean.begin(), mean.end(), host.centroid(head, c));
    // As if it had been the mean of one token for long.
    std::copy(mean.begin(), mean.end(), host.sum(head, c));
    host.count(head, c) = 1.0F;
  }
}

bool Centroids::pending_is_finite() const {
  for (std::int64_t head = 0; !pending_.empty() && head < heads_; ++head) {
    if (!std::isfinite(pending_.pooled(head).squared_distance)) return false;
  }
  return true;
}

RoutingStatistics Centroids::update() {
  const at::NoGradGuard no_gradient;
  const StepTotals totals = pending_;
  if (totals.empty() || totals.pooled(0).tokens == 0) {
    pending_ = {};
    return {};
  }
  require<InputError>(pending_is_finite(),
                      "centroids: a head saw tokens that are not finite; set_pending({}) forgets them");
  const bool first = updates() == 0;
  const HostCentroids state = host();
  RoutingStatistics statistics = statistics_of(totals, pattern_, dim_);
  double drift = 0.0;
  for (std::int64_t head = 0; head < heads_; ++head) {
    const ClusterTotals all = totals.pooled(head);
    if (first && pattern_.init == CentroidInit::first_batch_kmeans) {
      start_from_kmeans(state, head);
    } else {
      move_head(state, head);
    }
    if (pattern_.balance == RoutingBalance::threshold) {
      drift += first ? start_tau(state, all, head) : follow_tau(state, all, head);
    }
    if (pattern_.revive) statistics.revived += revive_dead(state, all, head);
  }
  statistics.tau_drift = drift / static_cast<double>(heads_);
  const std::vector<std::pair<at::Tensor, at::Tensor>> moved{
      {centroids_, state.centroids}, {counts_, state.counts}, {sums_, state.sums}, {tau_, state.tau}};
  for (const auto& [buffer, host_copy] : moved) {
    if (!buffer.is_same(host_copy)) buffer.copy_(host_copy);
  }
  updates_ += 1;
  pending_ = {};
  return statistics;
}

RoutingStatistics Centroids::take_evaluation_statistics() {
  return statistics_of(std::exchange(evaluation_, {}), pattern_, dim_);
}

}  // namespace routing
