// Where thresholds go after a step, and where dead centroids go.
#include "routing/attention/routing/centroids.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace routing {
namespace {

constexpr double kSmallestDeviation = 1e-12;

// The share-quantile of the scores of sampled vectors against one centroid: about (1 - share) of them, and at least
// one, lie at or above it.
float score_quantile(const float* centroid, const Vectors& vectors, double share) {
  std::vector<double> scores;
  scores.reserve(vectors.size());
  for (const auto& vector : vectors) scores.push_back(dot_product(centroid, vector));
  const auto rank = std::min(scores.size() - 1, static_cast<std::size_t>(share * static_cast<double>(scores.size())));
  std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(rank), scores.end());
  return static_cast<float>(scores[rank]);
}

double deviation(const ClusterTotals& totals, std::int64_t cluster) {
  const auto c = static_cast<std::size_t>(cluster);
  const auto n = static_cast<double>(totals.tokens);
  const double mean = totals.score_sum[c] / n;
  return std::sqrt(std::max(0.0, totals.score_square_sum[c] / n - mean * mean));
}

// Vectors in ascending order of their best score against any centroid; equal ones keep their order.
Vectors worst_served_first(const CentroidView& view, Vectors vectors) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    double best = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < view.clusters; ++c) {
      best = std::max(best, dot_product(view.centroids + c * view.dim, vectors[i]));
    }
    order.emplace_back(best, i);
  }
  std::sort(order.begin(), order.end());
  Vectors sorted;
  sorted.reserve(vectors.size());
  for (const auto& [score, i] : order) sorted.push_back(std::move(vectors[i]));
  return sorted;
}

// Within a thousandth of the vector's length: smoothing moves a centroid by that little off the token it stands on.
bool is_same_place(const float* centroid, const std::vector<float>& vector) {
  double distance = 0.0;
  double length = 0.0;
  for (std::size_t d = 0; d < vector.size(); ++d) {
    const double difference = static_cast<double>(centroid[d]) - static_cast<double>(vector[d]);
    distance += difference * difference;
    length += static_cast<double>(vector[d]) * static_cast<double>(vector[d]);
  }
  return distance <= 1e-6 * length;
}

}  // namespace

double Centroids::start_tau(const HostCentroids& host, const ClusterTotals& totals, std::int64_t head) const {
  const Vectors vectors = sampled(head);
  if (vectors.empty()) return 0.0;
  const double share = 1.0 - target();
  double drift = 0.0;
  for (std::int64_t c = 0; c < pattern_.clusters; ++c) {
    float& tau = host.threshold(head, c);
    // Against the centroids as they are now: those of the next step's scores.
    const float started = score_quantile(host.centroid(head, c), vectors, share);
    drift += std::abs(started - tau) / std::max(kSmallestDeviation, deviation(totals, c));
    tau = started;
  }
  return drift / static_cast<double>(pattern_.clusters);
}

double Centroids::follow_tau(const HostCentroids& host, const ClusterTotals& totals, std::int64_t head) const {
  double drift = 0.0;
  for (std::int64_t c = 0; c < pattern_.clusters; ++c) {
    const auto passing = static_cast<double>(totals.passing[static_cast<std::size_t>(c)]);
    const double change = pattern_.balance_rate * (passing / static_cast<double>(totals.tokens) - target());
    float& tau = host.threshold(head, c);
    tau = static_cast<float>(tau + change * deviation(totals, c));
    drift += std::abs(change);
  }
  return drift / static_cast<double>(pattern_.clusters);
}

// As if just drawn there.
void Centroids::place(const HostCentroids& host, std::int64_t head, std::int64_t c, const std::vector<float>& vector,
                      const Vectors& sample) const {
  std::copy(vector.begin(), vector.end(), host.centroid(head, c));
  std::copy(vector.begin(), vector.end(), host.sum(head, c));
  host.count(head, c) = 1.0F;
  if (pattern_.balance == RoutingBalance::threshold) {
    host.threshold(head, c) = score_quantile(vector.data(), sample, 1.0 - target());
  }
}

// Dead centroids get the places of the sampled tokens that the others serve worst. Equal tokens have equal vectors in
// the lowest layer, so a place where a centroid of the head stands already is passed over: two in one place would be
// one, for good. Where no other place is left, centroids stay dead until the next update.
std::int64_t Centroids::revive_dead(const HostCentroids& host, const ClusterTotals& totals, std::int64_t head) {
  Vectors vectors;
  std::size_t next = 0;
  std::int64_t revived = 0;
  const auto is_taken = [&](const std::vector<float>& vector) {
    for (std::int64_t c = 0; c < pattern_.clusters; ++c) {
      if (is_same_place(host.centroid(head, c), vector)) return true;
    }
    return false;
  };
  for (std::int64_t c = 0; c < pattern_.clusters; ++c) {
    at::Tensor waited = empty_updates_[head][c];
    const bool dead = is_dead(totals.members[static_cast<std::size_t>(c)], totals.tokens, pattern_);
    waited.fill_(dead ? waited.item<std::int64_t>() + 1 : 0);
    if (waited.item<std::int64_t>() < pattern_.dead_patience) continue;
    if (vectors.empty()) vectors = worst_served_first(host.view(head), sampled(head));
    while (next < vectors.size() && is_taken(vectors[next])) ++next;
    if (next >= vectors.size()) continue;
    place(host, head, c, vectors[next++], vectors);
    waited.fill_(0);
    ++revived;
  }
  return revived;
}

}  // namespace routing
