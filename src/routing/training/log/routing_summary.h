// What routed heads and learned spans of all layers are like, as a few numbers for logs.
#pragma once

#include "routing/model/sequence_model.h"

#include <string>
#include <utility>
#include <vector>

namespace routing {

// Name and value, in a fixed order; empty without routed heads. Occupancy is a cluster's share of all memberships of
// its head; entropies are relative to log(clusters).
//
//   occupancy_min, occupancy_max            the extremes over clusters, heads and layers
//   occupancy_entropy_min, …_mean           over heads and layers
//   choice_entropy_min                      of argmax (score - tau)
//   moving_entropy_min, …_mean              of the tokens that move each centroid
//   fallback_fraction, …_max                tokens that pass no threshold: mean and most over heads and layers
//   dead_centroids, revived                 summed
//   unrouted_fraction, overlap_fraction,
//   memberships, tau_drift, commitment_loss averaged over groups of routed heads
std::vector<std::pair<std::string, double>> routing_summary(const std::vector<LayerStatistics>& layers);

// Likewise of learned spans; empty without any. In tokens:
//
//   mean, largest                           of the spans z over heads and layers
//   keys_mean                               keys that a head reads with its span, over heads and layers
std::vector<std::pair<std::string, double>> span_summary(const std::vector<HeadSpan>& spans);

}  // namespace routing
