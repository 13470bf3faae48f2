// How likely does a model find a text? Every byte is predicted exactly once; nothing is dropped at the end.
#pragma once

#include "routing/model/transformer.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace routing {

struct LikelihoodOptions {
  std::int64_t sequence_length = 2048;
  // New bytes a window: sequence_length - stride bytes before them are context only. 0 means disjoint windows, each
  // starting without context.
  std::int64_t stride = 0;
  std::int64_t batch_size = 4;
  std::int64_t limit_bytes = 0;  // only the first so many; 0 means all
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::function<void(std::int64_t windows_done, std::int64_t windows)> progress = {};
};

struct Likelihood {
  double nats = 0.0;  // summed over all scored bytes
  std::int64_t bytes = 0;
  std::int64_t windows = 0;
  std::int64_t sequence_length = 0;
  std::int64_t stride = 0;                    // new bytes a window; sequence_length for disjoint windows
  std::vector<LayerStatistics> routing = {};  // over the windows; empty without routed heads

  double nats_per_byte() const { return nats / static_cast<double>(bytes); }
  double bits_per_byte() const;
};

// Puts the model into evaluation mode for the time of the call. Bits do not depend on threads or batch_size.
Likelihood byte_likelihood(TransformerImpl& model, std::span<const std::uint8_t> bytes,
                           const LikelihoodOptions& options);

// The smallest relative occupancy entropy over layers and heads; 1 is perfectly even. Of nothing it is 1.
double smallest_occupancy_entropy(const std::vector<LayerStatistics>& routing);

}  // namespace routing
