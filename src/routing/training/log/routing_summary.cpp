#include "routing/training/log/routing_summary.h"

#include <algorithm>
#include <numeric>

namespace routing {

std::vector<std::pair<std::string, double>> routing_summary(const std::vector<LayerStatistics>& layers) {
  if (layers.empty()) return {};
  double occupancy_min = 1.0;
  double occupancy_max = 0.0;
  double entropy_min = 1.0;
  double entropy_sum = 0.0;
  double choice_min = 1.0;
  double moving_min = 1.0;
  double moving_sum = 0.0;
  double fallback_max = 0.0;
  double fallback_sum = 0.0;
  double heads = 0.0;
  double dead = 0.0;
  double revived = 0.0;
  double unrouted = 0.0;
  double overlap = 0.0;
  double memberships = 0.0;
  double drift = 0.0;
  double commitment = 0.0;
  for (const LayerStatistics& layer : layers) {
    const RoutingStatistics& s = layer.statistics;
    for (const double value : s.occupancy_min) occupancy_min = std::min(occupancy_min, value);
    for (const double value : s.occupancy_max) occupancy_max = std::max(occupancy_max, value);
    for (const double value : s.occupancy_entropy) entropy_min = std::min(entropy_min, value);
    for (const double value : s.choice_entropy) choice_min = std::min(choice_min, value);
    for (const double value : s.moving_entropy) moving_min = std::min(moving_min, value);
    for (const double value : s.fallback_fraction) fallback_max = std::max(fallback_max, value);
    moving_sum += std::accumulate(s.moving_entropy.begin(), s.moving_entropy.end(), 0.0);
    fallback_sum += std::accumulate(s.fallback_fraction.begin(), s.fallback_fraction.end(), 0.0);
    entropy_sum += std::accumulate(s.occupancy_entropy.begin(), s.occupancy_entropy.end(), 0.0);
    heads += static_cast<double>(s.occupancy_entropy.size());
    for (const std::int64_t count : s.dead_centroids) dead += static_cast<double>(count);
    revived += static_cast<double>(s.revived);
    unrouted += s.unrouted_fraction;
    overlap += s.overlap_fraction;
    memberships += s.mean_memberships;
    drift += s.tau_drift;
    commitment += s.commitment_loss;
  }
  const auto count = static_cast<double>(layers.size());
  return {{"occupancy_min", occupancy_min},
          {"occupancy_max", occupancy_max},
          {"occupancy_entropy_min", entropy_min},
          {"occupancy_entropy_mean", entropy_sum / std::max(heads, 1.0)},
          {"choice_entropy_min", choice_min},
          {"moving_entropy_min", moving_min},
          {"moving_entropy_mean", moving_sum / std::max(heads, 1.0)},
          {"fallback_fraction", fallback_sum / std::max(heads, 1.0)},
          {"fallback_fraction_max", fallback_max},
          {"dead_centroids", dead},
          {"revived", revived},
          {"unrouted_fraction", unrouted / count},
          {"overlap_fraction", overlap / count},
          {"memberships", memberships / count},
          {"tau_drift", drift / count},
          {"commitment_loss", commitment / count}};
}

std::vector<std::pair<std::string, double>> span_summary(const std::vector<HeadSpan>& spans) {
  if (spans.empty()) return {};
  double sum = 0.0;
  double largest = 0.0;
  double keys = 0.0;
  for (const HeadSpan& head : spans) {
    sum += head.span;
    largest = std::max(largest, head.span);
    keys += static_cast<double>(head.keys);
  }
  const auto count = static_cast<double>(spans.size());
  return {{"mean", sum / count}, {"largest", largest}, {"keys_mean", keys / count}};
}

}  // namespace routing
